"""A ledger in which everything went as promised, old enough to be judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.store.world import World, open_world
from tests.integration.verify.ledgers import Ledger, good_ledger


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    with open_world(emptied_database) as world:
        yield world


@pytest.fixture
def ledger(world: World) -> Ledger:
    return good_ledger(world)


@pytest.fixture
def unindexed_ledger(database_url: str) -> Iterator[Ledger]:
    """The same in a database whose unique index of runs is missing: a damaged one would not refuse either."""
    with open_world(database_url) as world:
        world.db.execute("alter table runs drop constraint runs_job_id_scheduled_for_origin_request_id_key")
        world.db.execute("create index on runs (job_id, scheduled_for, origin, request_id)")
        yield good_ledger(world)
