"""A world per test, and a desk: the parts of a worker that execute and record, on real threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.integration.store.world import World, open_world
from tests.integration.worker.desk import Desk
from tests.integration.worker.script_bench import Scripts
from tests.support.below import closed_without_trace


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
    with closed_without_trace(Scripts) as create:
        yield create


@pytest.fixture
def scripts(make_scripts: Callable[..., Scripts]) -> Scripts:
    return make_scripts()
