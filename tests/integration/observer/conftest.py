"""The ledger that an observer looks at, and observers whose looks a test asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.observer.watch_desk import WatchDesk
from tests.integration.store.world import World, open_world


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    with open_world(emptied_database) as opened:
        yield opened


@pytest.fixture
def watching(world: World, emptied_database: str) -> Iterator[Callable[..., WatchDesk]]:
    desks: list[WatchDesk] = []

    def make(**settings: Any) -> WatchDesk:
        desks.append(WatchDesk(world, emptied_database, **settings))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()
