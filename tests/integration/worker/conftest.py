"""A world per test, and a desk: the parts of a worker that execute and record, on real threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.integration.store.world import World, open_world
from tests.integration.worker.desk import Desk
from tests.integration.worker.script_bench import Scripts
from tests.support.below import below


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    with open_world(emptied_database) as world:
        yield world


@pytest.fixture
def desk(world: World) -> Iterator[Desk]:
    desk = Desk(world)
    yield desk
    desk.close()


@pytest.fixture
def make_scripts() -> Iterator[Callable[..., Scripts]]:
    made: list[Scripts] = []
    before = {process.pid for process in below()}

    def scripts(**more) -> Scripts:
        made.append(Scripts(**more))
        return made[-1]

    yield scripts
    for each in made:
        each.executors.close()
    # Neither a process nor a zombie is left of anything.
    assert [p for p in below() if p.pid not in before] == []


@pytest.fixture
def scripts(make_scripts: Callable[..., Scripts]) -> Scripts:
    return make_scripts()
