"""A world per test: a migrated database of its own, and sessions that are closed again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.store.world import World, open_world


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with open_world(database_url) as world:
        yield world
