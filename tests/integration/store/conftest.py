"""A world per test: the database that all take turns in, and sessions that are closed again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.store.world import World, open_world


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    with open_world(emptied_database) as world:
        yield world


@pytest.fixture
def fresh_world(database_url: str) -> Iterator[World]:
    """A database that no test has written to: where it matters at which place of a table a row lies."""
    with open_world(database_url) as world:
        yield world
