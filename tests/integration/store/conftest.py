"""A world per test: one migrated database, emptied before each test, and sessions that are closed again."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.integration.store.world import World, open_world
from tests.support.stack import Postgres


@pytest.fixture(scope="session")
def store_database(postgres_server: Postgres, template_database: str) -> Iterator[str]:
    """URL of the database that the tests of the store take turns in."""
    name = f"store_{uuid4().hex[:12]}"
    postgres_server.run(f"create database {name} template {template_database}")
    yield postgres_server.url_of(name)
    postgres_server.run(f"drop database {name} with (force)")


@pytest.fixture
def world(store_database: str) -> Iterator[World]:
    with open_world(store_database) as world:
        world.empty()
        yield world


@pytest.fixture
def fresh_world(database_url: str) -> Iterator[World]:
    """A database that no test has written to: where it matters at which place of a table a row lies."""
    with open_world(database_url) as world:
        yield world
