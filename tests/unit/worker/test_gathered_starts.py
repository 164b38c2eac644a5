"""While many runs arrive, a start waits for more of them; one of the high lane never waits."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from noonmark.core.states import Lane
from noonmark.worker.engine.starter import Starter
from noonmark.worker.in_flight import Load

ENOUGH = 800


class Slots:
    """Picks nothing; remembers that it was asked."""

    def __init__(self, free: int) -> None:
        self._free = free
        self.asked = 0

    def free(self, _load: Load) -> int:
        return self._free

    def pick(self, _readers: object, _load: Load) -> list[Any]:
        self.asked += 1
        return []


def starter(slots: Slots, waiting: dict[Lane, int]) -> Starter:
    service = SimpleNamespace(
        settings=SimpleNamespace(pool="default"),
        log=SimpleNamespace(bind=lambda **_: None),
        stop=threading.Event(),
    )
    readers = [SimpleNamespace(lane=lane, buffer=[None] * waiting.get(lane, 0)) for lane in Lane]
    made: Any = Starter(
        service,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        readers=readers,  # type: ignore[arg-type]
        slots=slots,  # type: ignore[arg-type]
        in_flight=SimpleNamespace(load=lambda: Load(0, 0, 0)),  # type: ignore[arg-type]
        topics=None,  # type: ignore[arg-type]
        shards=4,
    )
    return made


def is_held(waiting: dict[Lane, int], *, free: int = 1000, arrived: int = 5000) -> bool:
    """Return whether a start waits after one of `arrived` runs."""
    slots = Slots(free)
    made: Any = starter(slots, waiting)
    made._gathering.took(arrived)
    made.start_batch(None)
    return slots.asked == 0


@pytest.mark.parametrize("lane", [Lane.NORMAL, Lane.LOW])
def test_a_small_start_waits_while_many_runs_arrive(lane: Lane) -> None:
    assert is_held({lane: 100})


def test_the_engine_goes_on_meanwhile() -> None:
    made: Any = starter(Slots(1000), {Lane.NORMAL: 100})
    made._gathering.took(5000)

    assert made.start_batch(None)  # it comes back at once, after what else is due


def test_a_run_of_the_high_lane_does_not_wait() -> None:
    assert not is_held({Lane.HIGH: 1, Lane.NORMAL: 100})


def test_nothing_waits_while_few_runs_arrive() -> None:
    assert not is_held({Lane.NORMAL: 100}, arrived=400)


def test_a_start_that_is_large_enough_does_not_wait() -> None:
    assert not is_held({Lane.NORMAL: ENOUGH // 2, Lane.LOW: ENOUGH // 2})


@pytest.mark.parametrize("free", [0, 50, 200])
def test_a_start_does_not_wait_for_more_runs_than_it_can_have(free: int) -> None:
    assert not is_held({Lane.NORMAL: 200}, free=free)
