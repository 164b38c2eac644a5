"""Who measures shows it, and who does not any more shows nothing."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.integration.store.world import SHARDS, World, open_world

from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import REGISTRY
from noonmark.trigger.measure_loop import MeasureLoop

MEASURED = (
    *("due_timers", "due_oldest_seconds", "dead_letters", "workers", "pool_slots", "namespace_runs"),
    *("oldest_xmin_seconds", "dead_rows", "database_connections"),
)


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    with open_world(emptied_database) as world:
        yield world


@pytest.fixture
def leader(world: World) -> Iterator[Membership]:
    membership = Membership("trigger", shards=SHARDS, timeout_seconds=60)
    membership.beat(world.db)
    yield membership
    membership.leave(world.db)


@pytest.fixture
def loop(world: World, leader: Membership) -> Iterator[MeasureLoop]:
    settings = Settings(database_url=world.url)
    service = Service("trigger", settings, Health(), threading.Event(), get_logger())
    made = MeasureLoop(service, leader, shards=SHARDS)
    yield made
    leader.leads = False
    made.run_once(world.db)


def shown() -> set[str]:
    """Measured metrics that have a series now."""
    return {
        family.name.removeprefix("noonmark_")
        for family in REGISTRY.collect()
        if family.samples and family.name.removeprefix("noonmark_") in MEASURED
    }


def test_the_leader_shows_all_that_is_measured_also_without_any_worker(world, loop):
    world.db.execute("insert into pools (name) values ('gone')")
    world.put_run("waiting", reason="overlap")
    loop.run_once(world.db)

    assert shown() == set(MEASURED)
    none = {"pool": "gone", "state": "live"}
    assert REGISTRY.get_sample_value("noonmark_workers", none) == 0
    assert REGISTRY.get_sample_value("noonmark_due_timers", {"lane": "high"}) == 0


def test_whoever_does_not_lead_any_more_shows_nothing(world, loop, leader):
    loop.run_once(world.db)
    leader.leads = False
    loop.run_once(world.db)
    assert shown() == set()

    leader.leads = True
    loop.run_once(world.db)
    assert "due_timers" in shown()


def test_what_cannot_be_measured_is_not_shown(world, loop):
    loop.run_once(world.db)
    assert shown()
    lost = world.another()
    lost.close()
    loop._often_at = 0.0
    with pytest.raises(psycopg.Error):
        loop.run_once(lost)

    assert shown() == set()


def test_a_pool_that_is_removed_takes_its_series_along(world, loop):
    world.db.execute("insert into pools (name) values ('gone')")
    loop.run_once(world.db)
    world.db.execute("delete from pools where name = 'gone'")
    loop._often_at = 0.0
    loop.run_once(world.db)

    assert REGISTRY.get_sample_value("noonmark_workers", {"pool": "gone", "state": "live"}) is None
