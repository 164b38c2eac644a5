"""What processes leave behind for the watchdog: that their loops go round, and what nobody has taken."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.support.cluster import wait_until
from tests.support.proxy import Network, Toxic

from noonmark.core.ids import uuid7
from noonmark.service import ownership
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.health import Health
from noonmark.service.ownership import OwnershipLoop
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster import processes
from noonmark.store.cluster.members import Membership
from noonmark.store.maintenance import housekeeping
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import REGISTRY

pytestmark = pytest.mark.postgres


def seen(world):
    return [(one.service, one.stuck) for one in processes.read(world.db)]


def test_one_that_is_alive_and_stands_still_makes_no_progress(world):
    process = uuid7()
    processes.note(world.db, "trigger", process, None)
    world.turn_clock(timedelta(seconds=70))
    processes.note(world.db, "trigger", process, "claim: hangs")

    (one,) = processes.read(world.db)
    assert (one.service, one.stuck) == ("trigger", "claim: hangs")
    assert one.progressed_seconds - one.seen_seconds >= 70

    processes.note(world.db, "trigger", process, None)
    (one,) = processes.read(world.db)
    assert (one.stuck, one.progressed_seconds) == (None, one.seen_seconds)
    processes.leave(world.db, "trigger", process)
    assert seen(world) == []


class SlowLoop(DatabaseLoop):
    """A loop whose statement takes too long in every pass, until it is `quick`."""

    quick = False

    def run_once(self, connection: psycopg.Connection) -> float:
        if not self.quick:
            connection.execute("set statement_timeout = '1ms'")
            connection.execute("select pg_sleep(10)")
        return 0.01


def test_a_loop_whose_every_pass_fails_makes_no_progress_though_it_is_alive(world, monkeypatch):
    monkeypatch.setattr(ownership, "_FAILING_SECONDS", 0.0)
    settings = Settings(database_url=world.url)
    service = Service("trigger", settings, Health(), threading.Event(), get_logger())
    slow = SlowLoop(service, "claim")
    member = OwnershipLoop(service, Membership("trigger", shards=4, timeout_seconds=5))
    thread = threading.Thread(target=slow.run, args=[service.stop])
    thread.start()
    try:
        wait_until(lambda: service.health.failing(0.0), "a pass to fail", 20)
        member.run_once(world.db)
        ((service_name, stuck),) = seen(world)
        assert service_name == "trigger"
        assert stuck.startswith("claim: every pass has failed for")
        assert "statement timeout" in stuck
        assert service.health.live()[0]
        slow.quick = True
        wait_until(lambda: not service.health.failing(0.0), "a pass to succeed", 20)
    finally:
        service.stop.set()
        slow.wake.set()
        thread.join(20)


def test_a_member_tells_which_of_its_loops_hang_and_says_good_bye(world):
    now = [0.0]
    service = Service("trigger", Settings(), Health(lambda: now[0]), threading.Event(), get_logger())
    member = Membership("trigger", shards=4, timeout_seconds=5)
    loop = OwnershipLoop(service, member)
    service.health.progress("claim", 15.0)

    loop.run_once(world.db)
    assert seen(world) == [("trigger", None)]

    now[0] = 20.0
    service.health.beat("trigger_ownership")
    loop._progress_at = 0.0
    loop.run_once(world.db)
    assert seen(world) == [("trigger", "claim: no progress for 20.0 s; the limit is 15 s")]

    loop.ending(world.db)
    assert seen(world) == []


def test_processes_that_died_without_a_word_are_forgotten_after_an_hour(world):
    processes.note(world.db, "trigger", uuid7(), None)
    world.turn_clock(timedelta(minutes=61))
    processes.note(world.db, "dispatcher", uuid7(), None)

    housekeeping.run_housekeeping(world.db, Settings())

    assert [one[0] for one in seen(world)] == ["dispatcher"]


def test_the_first_due_timer_of_each_queue_has_a_mark_that_changes_when_it_is_taken(world):
    world.db.execute(
        """insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
           select now() + after, now(), gen_random_uuid(), 1, shard, lane, 0, 'tests', 'default'
           from (values (interval '-1 minute', 2, 1), ('-1 minute', 2, 1), ('1 hour', 2, 0), ('-2 s', 3, 0))
                as t (after, shard, lane)"""
    )

    first = processes.due_heads(world.db)
    assert set(first) == {(2, 1, 0), (3, 0, 0)}
    world.db.execute(
        "delete from timers where ctid = (select ctid from timers where shard = 2 and lane = 1 limit 1)"
    )
    second = processes.due_heads(world.db)

    assert set(second) == set(first)
    assert second[2, 1, 0] != first[2, 1, 0]
    assert second[3, 0, 0] == first[3, 0, 0]


def test_the_first_row_of_the_outbox_is_shown_and_refused_events_are_not(world):
    world.db.execute(
        """insert into outbox (slice, lane, created_at, topic, key, value)
           select 1, lane, now(), 't', 'k', 'v' from unnest('{3,3,4}'::int[]) as lane"""
    )

    heads = processes.outbox_heads(world.db)

    assert heads == {(1, 3): str(world.value("select min(seq) from outbox where lane = 3"))}


@pytest.mark.parametrize("toxic", [Toxic(down=True), Toxic(silent=True)], ids=["refused", "unanswered"])
def test_one_that_cannot_reach_the_database_shows_that_it_owns_nothing(world, toxic):
    network = Network()
    url = conninfo_to_dict(world.url)
    proxy = network.proxy(int(url["port"]))
    reachable = make_conninfo(world.url, port=proxy.port)
    service = Service("trigger", Settings(database_url=reachable), Health(), threading.Event(), get_logger())
    member = OwnershipLoop(service, Membership("trigger", shards=4, timeout_seconds=1))
    thread = threading.Thread(target=member.run, args=[service.stop])

    def shown() -> list[float | None]:
        service.health.expose()
        names = ("noonmark_owned_shards", "noonmark_leads")
        return [REGISTRY.get_sample_value(name, {"role": "trigger"}) for name in names]

    thread.start()
    try:
        wait_until(lambda: shown() == [4, 1], "the shards to be owned", 20)
        proxy.set(toxic)
        wait_until(lambda: shown() == [0, 0], "the shards to be lost", 20)
        proxy.heal()
        wait_until(lambda: shown() == [4, 1], "the shards to be owned again", 20)
    finally:
        service.stop.set()
        member.wake.set()
        thread.join(20)
        network.close()
