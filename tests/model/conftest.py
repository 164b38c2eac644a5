"""Everything here runs by `make test-model`, not by `make test`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.store.world import World, open_world


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with open_world(database_url) as world:
        yield world
