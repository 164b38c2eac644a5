"""What the leading trigger measures, over rows that were put in place."""

from datetime import timedelta

from tests.integration.store.world import SHARDS, outcome

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane, RunState, TimerKind
from noonmark.store.documents.columns import NEVER
from noonmark.store.maintenance import measures
from noonmark.store.maintenance.measures import PoolMeasures
from noonmark.store.runs import held_runs, worker_lease


def add_pool(world, name="default"):
    world.db.execute("insert into pools (name) values (%s) on conflict do nothing", [name])


def dead_letter(world, namespace, count=1):
    world.db.execute(
        """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, fingerprint, died_at)
           select noonmark_uuid7(), now(), noonmark_uuid7(), %s, 1, 'attempts_used_up', 'x', now()
           from generate_series(1, %s)""",
        [namespace, count],
    )


def test_due_timers_are_counted_by_lane_with_the_age_of_the_oldest(world):
    now = world.now()
    for lane, ago in ((Lane.HIGH, 5), (Lane.HIGH, 50), (Lane.LOW, 1)):
        world.timer(world.job(lane=lane), now - timedelta(seconds=ago), lane=lane)
    world.timer(world.job(), now - timedelta(seconds=7), kind=TimerKind.RETRY)

    found = measures.due(world.db, shards=SHARDS)

    assert [found[lane].timers for lane in Lane] == [2, 1, 1]
    assert 50 <= found[Lane.HIGH].oldest_seconds < 110
    assert 7 <= found[Lane.NORMAL].oldest_seconds < 67


def test_a_timer_that_is_due_before_all_time_is_counted_without_an_age(world):
    world.timer(world.job(), world.now() - timedelta(seconds=5))
    world.timer(world.job(), world.now() - timedelta(seconds=7))
    world.db.execute(
        "update timers set fire_at = '-infinity' where fire_at = (select min(fire_at) from timers)"
    )

    found = measures.due(world.db, shards=SHARDS)

    assert found[Lane.NORMAL].timers == 2
    assert 5 <= found[Lane.NORMAL].oldest_seconds < 65


def test_timers_of_later_and_held_timers_are_not_due(world):
    world.timer(world.job(), world.now() + timedelta(hours=1))
    world.timer(world.job(), NEVER, scheduled_for=world.now())

    found = measures.due(world.db, shards=SHARDS)

    assert found == dict.fromkeys(Lane, (0, 0.0, 0.0))


def test_due_timers_are_counted_up_to_a_cap(world):
    job = world.job()
    world.timer(job, world.now() - timedelta(seconds=1))
    world.db.execute(
        "insert into timers select timers.* from timers, generate_series(1, %s)", [measures.DUE_CAP]
    )

    assert measures.due(world.db, shards=SHARDS)[Lane.NORMAL].timers == measures.DUE_CAP


def test_a_pool_without_workers_is_shown_and_a_removed_one_is_not(world):
    add_pool(world, "empty")
    add_pool(world, "gone")
    assert measures.pools(world.db)["empty"] == PoolMeasures(0, 0, 0, 0, 0)

    world.db.execute("delete from pools where name = 'gone'")

    assert "gone" not in measures.pools(world.db)


def test_workers_are_live_silent_or_draining_and_only_live_ones_have_slots(world):
    add_pool(world)

    def worker():
        return worker_lease.register(
            world.db, pool="default", host="h", pid=1, lease_seconds=20, catalogue="{}", slots=8
        )

    busy, silent, draining, left = worker(), worker(), worker(), worker()
    world.started(busy, 3)
    held_runs.drain(world.db, draining)
    worker_lease.leave(world.db, left)
    world.db.execute(
        "update workers set beat_at = now() - interval '11 seconds' where id = %s", [silent.worker]
    )

    assert measures.pools(world.db)["default"] == PoolMeasures(live=1, silent=1, draining=1, busy=3, free=5)


def test_a_worker_of_an_earlier_release_counts_with_what_it_holds(world):
    add_pool(world)
    world.started(world.worker(), 2)

    assert measures.pools(world.db)["default"] == PoolMeasures(live=1, silent=0, draining=0, busy=2, free=0)


def test_runs_that_have_ended_hold_no_slot_though_their_batch_is_still_there(world):
    add_pool(world)
    worker = world.worker()
    runs = world.started(worker, 2)
    world.record(worker, [outcome(runs[0])])

    assert measures.pools(world.db)["default"].busy == 1
    assert measures.namespaces(world.db) == {("tests", "running"): 1}


def test_a_worker_that_has_left_does_not_drain(world):
    worker = world.worker()
    worker_lease.leave(world.db, worker)
    held_runs.drain(world.db, worker)

    assert world.value("select draining_at from workers where id = %s", worker.worker) is None


def test_namespaces_beyond_the_first_are_added_up(world):
    for number, namespace in enumerate(("least", "more", "most")):
        dead_letter(world, namespace, count=number + 1)
    world.put_run(RunState.WAITING, reason="overlap")

    found = measures.namespaces(world.db, most=2)

    assert found == {
        ("most", "dead"): 3,
        ("more", "dead"): 2,
        ("_other", "dead"): 1,
        ("_other", "waiting"): 1,
    }


def test_namespaces_of_many_states_are_counted_by_state(world):
    worker = world.worker()
    world.started(worker, 2)
    world.put_run(RunState.WAITING, reason="overlap")
    world.db.execute(
        "insert into waits (run_id, scheduled_for, job_id, reason, since, namespace) values (%s, now(), %s, 'limit', now(), 'a')",
        [uuid7(), uuid7()],
    )
    dead_letter(world, "tests")

    assert measures.namespaces(world.db) == {
        ("tests", "running"): 2,
        ("tests", "waiting"): 1,
        ("tests", "dead"): 1,
        ("a", "waiting"): 1,
    }


def test_dead_letters_are_counted(world):
    assert measures.dead_letters(world.db) == 0
    dead_letter(world, "a", count=3)
    assert measures.dead_letters(world.db) == 3


def test_a_transaction_that_holds_a_snapshot_ages(world):
    holder = world.another()
    with holder.transaction():
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from jobs")
        # Its age is by the server's own clock, which no test turns.
        began = world.value("select xact_start from pg_stat_activity where pid = %s", holder.info.backend_pid)
        found = measures.database(world.db)
        passed = world.value("select extract(epoch from clock_timestamp() - %s)::float8", began)
        assert 0 < found.oldest_xmin_seconds <= passed
        assert found.idle_in_transaction >= 1
        assert found.active >= 1


def test_dead_rows_are_told_by_table_and_the_ledger_as_one(world):
    found = measures.dead_rows(world.db)

    assert {"timers", "outbox", "runs", "workers"} <= found.keys()
    assert not [table for table in found if table.startswith("runs_")]
