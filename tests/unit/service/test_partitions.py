"""A member without a partition is ready as a spare: later than the group needs, and only if it gets answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from noonmark.service.health import Health
from noonmark.service.partitions import SPARE_SECONDS, PartitionReadiness

ONE = frozenset({("topic", 0)})


class Scene:
    """A member of a group; a test sets its partitions, the time and whether the coordinator answers."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.answers = True
        self.asked = 0
        self.member: Any = SimpleNamespace(assigned=frozenset())
        self.health = Health()
        self.readiness = PartitionReadiness(
            self.health, "partitions", answers=self.ask, clock=lambda: self.now
        )

    def ask(self, member: Any) -> bool:
        assert member is self.member
        self.asked += 1
        return self.answers

    def is_ready(self, *, after: float = 0.0) -> bool:
        self.now += after
        self.readiness.report(self.member)
        return self.health.ready()[0]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_member_is_ready_as_soon_as_it_has_a_partition_and_nobody_is_asked(scene: Scene) -> None:
    assert not scene.is_ready()
    assert scene.health.ready()[1]["missing"] == {"partitions": "no partition is assigned yet"}
    scene.member.assigned = ONE
    assert scene.is_ready()
    assert scene.asked == 0


def test_a_member_without_a_partition_is_ready_after_a_while(scene: Scene) -> None:
    assert not scene.is_ready(after=SPARE_SECONDS - 1)
    assert scene.is_ready(after=1)
    assert [scene.is_ready(after=1) for _ in range(60)] == [True] * 60
    assert scene.asked <= 8


def test_a_member_that_gets_no_answer_is_no_spare_until_it_gets_one(scene: Scene) -> None:
    scene.answers = False
    assert not scene.is_ready(after=SPARE_SECONDS)
    assert not scene.is_ready(after=60)
    scene.answers = True
    assert scene.is_ready(after=5)
    scene.answers = False
    assert not scene.is_ready(after=15)


def test_a_member_that_loses_its_partitions_is_asked_about_at_once_unless_it_is_young(scene: Scene) -> None:
    scene.member.assigned = ONE
    assert scene.is_ready()
    scene.member.assigned = frozenset()
    assert not scene.is_ready(after=1)
    assert scene.asked == 0
    scene.member.assigned = ONE
    assert scene.is_ready(after=60)
    scene.member.assigned = frozenset()
    # Other members took them over: a rollout does not wait for this one again.
    assert scene.is_ready(after=0.1)
    scene.member.assigned = ONE
    assert scene.is_ready(after=0.1)
    # The cluster is away.
    scene.member.assigned, scene.answers = frozenset(), False
    assert not scene.is_ready(after=0.1)
