"""Claims and outcomes are one transaction each: killed before the commit, they have left nothing."""

from datetime import timedelta
from functools import partial

import psycopg
import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, Planned, outcome

from noonmark.core.states import Lane, RunState, TimerKind
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import PlannedRun, TimerPlan
from noonmark.store.outbox import relay
from noonmark.store.runs import finish

TABLES = ("timers", "runs", "outbox", "slots", "waits", "attempts", "dead_letters", "start_batches")


def image(world):
    """Every row of every table that a transaction could have touched."""
    return {table: sorted(map(str, world.rows(f"select * from {table}"))) for table in TABLES}


def killer(world, victim, moment):
    """A hook that ends a session's backend at one moment, as a crash would."""
    pid = victim.info.backend_pid

    def hook(point, *_):
        if point == moment:
            world.db.execute("select pg_terminate_backend(%s, 5000)", [pid])

    return hook


def run_each(timer):
    return TimerPlan(
        [PlannedRun(timer.scheduled_for, RunState.QUEUED, wants_slot=True)],
        next_at=timer.now + timedelta(minutes=1),
    )


CLAIMS = {
    "once": claims.claim_once,
    "retries": claims.claim_retries,
    "planned": partial(
        claims.claim_planned,
        kind=TimerKind.PLANNED,
        plan=Planned(run_each),
        topics=TOPICS,
        install_shards=SHARDS,
    ),
}


def due(world, kind):
    """Ten due timers of a kind; returns their jobs."""
    at = world.now() - timedelta(seconds=1)
    jobs = [world.job(recurring=kind == "planned") for _ in range(10)]
    for job_id in jobs:
        run_id = world.put_run(RunState.RETRYING, job_id=job_id) if kind == "retries" else None
        scheduled_for = world.run(run_id)["scheduled_for"] if run_id else None
        number = {"once": TimerKind.ONCE, "retries": TimerKind.RETRY, "planned": TimerKind.PLANNED}[kind]
        world.timer(job_id, at, kind=number, run_id=run_id, scheduled_for=scheduled_for)
    return jobs


@pytest.mark.parametrize("kind", sorted(CLAIMS))
def test_a_claim_that_dies_before_its_commit_has_done_nothing(world, monkeypatch, kind):
    jobs = due(world, kind)
    before = image(world)
    victim = world.another()
    monkeypatch.setattr(claims, "hit", killer(world, victim, "trigger.before_commit"))

    with pytest.raises(psycopg.OperationalError):
        CLAIMS[kind](victim, Lane.NORMAL, EVERY_SHARD, 100)

    assert image(world) == before
    monkeypatch.undo()
    result = CLAIMS[kind](world.db, Lane.NORMAL, EVERY_SHARD, 100)
    assert (result.claimed, result.queued) == (10, 10)
    assert sorted(world.column("select job_id from outbox")) == sorted(jobs)
    assert world.value("select count(*) from runs where state = 'queued'") == 10


@pytest.mark.parametrize("kind", sorted(CLAIMS))
def test_a_claim_that_dies_after_its_commit_has_written_run_and_message(world, monkeypatch, kind):
    jobs = due(world, kind)
    victim = world.another()
    monkeypatch.setattr(claims, "hit", killer(world, victim, "trigger.after_commit"))

    CLAIMS[kind](victim, Lane.NORMAL, EVERY_SHARD, 100)

    assert sorted(world.column("select job_id from outbox")) == sorted(jobs)
    assert sorted(world.column("select job_id from runs where state = 'queued'")) == sorted(jobs)
    assert CLAIMS[kind](world.db, Lane.NORMAL, EVERY_SHARD, 100).claimed == 0


def test_a_planned_claim_that_dies_between_lock_and_insert_has_done_nothing(world):
    due(world, "planned")
    before = image(world)
    victim = world.another()

    def plan(timer):
        world.db.execute("select pg_terminate_backend(%s, 5000)", [victim.info.backend_pid])
        return run_each(timer)

    with pytest.raises(psycopg.OperationalError):
        claims.claim_planned(
            victim,
            Lane.NORMAL,
            EVERY_SHARD,
            100,
            kind=TimerKind.PLANNED,
            plan=Planned(plan),
            topics=TOPICS,
            install_shards=SHARDS,
        )

    assert image(world) == before


def test_outcomes_that_die_before_their_commit_have_written_nothing(world):
    worker = world.worker()
    runs = world.started(worker, 3)
    before = image(world)
    victim = world.another()
    outcomes = [
        outcome(runs[0]),
        outcome(runs[1], RunState.RETRYING, error="boom", retry_seconds=5.0),
        outcome(runs[2], RunState.DEAD, reason="retries_exhausted", error="boom"),
    ]

    def record_and_die():
        with victim.transaction():
            finish.record(victim, worker, TOPICS, outcomes, [runs[0].batch_id], shards=SHARDS)
            world.db.execute("select pg_terminate_backend(%s, 5000)", [victim.info.backend_pid])

    with pytest.raises(psycopg.OperationalError):
        record_and_die()

    assert image(world) == before
    assert len(world.record(worker, outcomes, [runs[0].batch_id]).states) == 3
    assert world.count("start_batches") == 0


def test_the_relay_reads_each_slice_in_order_and_high_lanes_first(world):
    world.due_once(60)
    for lane in reversed(Lane):
        claims.claim_once(world.db, lane, EVERY_SHARD, 100)
    worker = world.worker()
    world.record(worker, [outcome(run) for run in world.started(worker, 2)])

    rows = relay.read(world.db, EVERY_SHARD, 1000)

    assert len(rows) == 61
    assert [row.lane for row in rows] == sorted(row.lane for row in rows)
    for slice_ in EVERY_SHARD:
        for lane in range(4):
            mine = [row.seq for row in rows if (row.slice, row.lane) == (slice_, lane)]
            assert mine == sorted(mine)


def test_a_row_that_commits_late_under_a_lower_number_is_read_then(world):
    insert = """insert into outbox (slice, lane, created_at, topic, key, value)
                values (0, 3, now(), 't', 'k', 'v') returning seq"""
    slow = world.another()
    with slow.transaction():
        low = slow.execute(insert).fetchone()[0]
        high = world.value(insert)
        seen = relay.read(world.db, [0], 100)
        assert [row.seq for row in seen] == [high]
        relay.delete(world.db, seen)

    assert low < high
    assert [row.seq for row in relay.read(world.db, [0], 100)] == [low]


def test_acknowledged_rows_are_deleted_and_no_others(world):
    world.due_once(30)
    claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100)
    rows = relay.read(world.db, EVERY_SHARD, 100)

    assert relay.delete(world.db, rows[:4]) == 4
    assert relay.delete(world.db, rows[:4]) == 0
    assert sorted(world.column("select seq from outbox")) == sorted(row.seq for row in rows[4:])


def test_a_place_that_was_used_anew_is_not_mistaken_for_the_old_row(fresh_world):
    world = fresh_world
    world.due_once(3)
    claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100)
    (old,) = relay.read(world.db, EVERY_SHARD, 100)
    relay.delete(world.db, [old])
    world.db.execute("vacuum outbox")
    claims.claim_once(world.db, Lane.HIGH, EVERY_SHARD, 100)
    (new,) = relay.read(world.db, EVERY_SHARD, 100)
    assert new.place == old.place

    assert relay.delete(world.db, [old]) == 0
    assert world.count("outbox") == 1


def test_a_message_that_kafka_refuses_for_good_parks_its_run_and_nothing_else(world):
    world.due_once(30)
    claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100)
    refused, *rest = relay.read(world.db, EVERY_SHARD, 100)
    parked = relay.Parked(refused.run_id, refused.scheduled_for, refused.fence, "no topic \u201ct\u201d")

    assert relay.park(world.db, [refused], [parked], retry_seconds=30) == 1

    run = world.run(refused.run_id)
    assert (run["state"], run["reason"]) == ("waiting", "undeliverable")
    assert run["error"] == "no topic \u201ct\u201d"
    assert world.messages(refused.run_id) == []
    assert world.count("outbox") == len(rest)
    (timer,) = world.rows("select * from timers where kind = 2")
    assert (timer["run_id"], timer["scheduled_for"]) == (refused.run_id, refused.scheduled_for)
    assert world.column("select reason from waits") == ["undeliverable"]


def test_a_message_of_an_older_fence_parks_nothing(world):
    run_id = world.put_run(RunState.QUEUED, fence=3)
    parked = relay.Parked(run_id, world.run(run_id)["scheduled_for"], 2, "no topic")

    assert relay.park(world.db, [], [parked], retry_seconds=30) == 0
    assert world.run(run_id)["state"] == "queued"
    assert world.count("timers") == 0


def test_pressure_tells_age_and_depth_of_each_lane_of_a_slice_up_to_the_cap(world):
    quiet = relay.pressure(world.db, [0, 3], cap=10)
    assert {(p.slice, p.lane, p.age_seconds, p.rows) for p in quiet} == {
        (number, lane, None, 0) for number in (0, 3) for lane in range(4)
    }
    world.db.execute(
        """insert into outbox (slice, lane, created_at, topic, key, value)
           select 3, 2, now() - interval '1 minute', 't', 'k', 'v' from generate_series(1, 20)"""
    )

    measured = {(p.slice, p.lane): p for p in relay.pressure(world.db, [0, 3], cap=10)}

    busy = measured.pop((3, 2))
    assert busy.rows == 10
    assert 59 < busy.age_seconds < 120
    assert {p.rows for p in measured.values()} == {0}, "a lower lane's backlog is nobody else's"
