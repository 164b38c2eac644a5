"""Claims and outcomes are one transaction each: killed before the commit, they have left nothing."""

from collections import Counter, defaultdict
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, Planned, outcome

from noonmark.core.states import Lane, RunState, TimerKind
from noonmark.kafka.topics import Topics
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import PlannedRun, TimerPlan
from noonmark.store.cluster import capabilities
from noonmark.store.cluster.members import Membership
from noonmark.store.maintenance import housekeeping
from noonmark.store.outbox import progress, relay
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


# -- rows with several runs ------------------------------------------------------------------------------


def test_a_claim_writes_rows_with_several_runs_and_one_relay_reads_all_of_them(world):
    at = world.now() - timedelta(seconds=1)
    for _ in range(250):
        world.timer(world.job(), at)
    result = claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 1000, arrays=True)
    assert (result.claimed, result.queued) == (250, 250)
    rows = relay.read_runs(world.db, EVERY_SHARD, 4000, runs_per_row=1)
    assert {row.lane for row in rows} == {Lane.NORMAL + relay.ARRAYS}
    assert max(len(row.run_ids) for row in rows) <= relay.RUNS_PER_ROW
    assert len(rows) <= 250 / relay.RUNS_PER_ROW + 2 * SHARDS
    told = sorted(
        (run_id, job_id, at, version, row.namespace, row.pool, row.slice)
        for row in rows
        for run_id, job_id, at, version in zip(
            row.run_ids, row.job_ids, row.instants, row.job_versions, strict=True
        )
    )
    kept = world.db.execute(
        "select id, job_id, scheduled_for, job_version, namespace, pool, shard from runs order by id"
    ).fetchall()
    assert told == kept
    assert all(row.fence == 1 for row in rows)
    relay.delete(world.db, rows)
    assert world.count("outbox") == 0


def test_what_is_read_at_once_follows_how_many_runs_rows_have(world):
    at = world.now() - timedelta(seconds=1)
    for _ in range(400):
        world.timer(world.job(), at)
    claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 4000, arrays=True)
    assert len(relay.read_runs(world.db, [0], 80, runs_per_row=40)) == 2
    assert len(relay.read_runs(world.db, [0], 1, runs_per_row=40)) == 1
    every = world.count("outbox", "slice = 0")
    assert len(relay.read_runs(world.db, [0], 80, runs_per_row=0.5)) == every


def test_rows_with_several_runs_count_as_their_runs(world):
    at = world.now() - timedelta(seconds=1)
    for lane, count in ((Lane.LOW, 100), (Lane.NORMAL, 5), (Lane.NORMAL, 45)):
        for _ in range(count):
            world.timer(world.job(), at, lane=lane)
        claims.claim_once(world.db, lane, EVERY_SHARD, 1000, arrays=count != 5)
    assert world.count("outbox", f"lane = {Lane.NORMAL}") == 5
    rows: Counter[int] = Counter()
    for pressure in relay.pressure(world.db, EVERY_SHARD, cap=1000):
        rows[pressure.lane] += pressure.rows
        assert (pressure.rows > 0) == (pressure.age_seconds is not None)
    assert (rows[Lane.LOW], rows[Lane.NORMAL], rows[Lane.HIGH]) == (100, 50, 0)
    assert progress.unfinished(world.db).unsent == 150


def test_no_run_of_an_unsent_row_is_sent_again_and_each_that_vanished_is(world):
    at = world.now() - timedelta(seconds=1)
    for _ in range(90):
        world.timer(world.job(), at)
    claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 1000, arrays=True)
    world.db.execute("update runs set queued_at = queued_at - interval '10 minutes'")
    topics = Topics()
    progress.note_passed(world.db, topics.runs("default", Lane.NORMAL), world.now(), lost=True)
    assert housekeeping.resend_vanished(world.db, topics) == 0

    (first, *_) = relay.read_runs(world.db, EVERY_SHARD, 4000, runs_per_row=1)
    relay.delete(world.db, [first])
    assert housekeeping.resend_vanished(world.db, topics) == len(first.run_ids)
    assert set(world.column("select run_id from outbox where run_id is not null")) == set(first.run_ids)


def test_dispatchers_say_whether_all_of_them_read_rows_with_several_runs(world):
    assert not capabilities.reads_arrays(world.db, 10.0)
    new, old = (Membership("dispatcher", shards=SHARDS, timeout_seconds=10) for _ in range(2))
    new.beat(world.db)
    assert capabilities.reads_arrays(world.db, 10.0)
    old.beat(world.db)
    world.db.execute("update members set release = null, capabilities = default where id = %s", [old.id])
    old.beat(world.db)
    assert not capabilities.reads_arrays(world.db, 10.0)
    old.leave(world.db)
    assert capabilities.reads_arrays(world.db, 10.0)


def test_planned_runs_share_rows_and_keep_their_order(world):
    at = world.now() - timedelta(minutes=3)
    jobs = [world.job(recurring=True) for _ in range(60)]
    for job_id in jobs:
        world.timer(job_id, at, kind=TimerKind.PLANNED)

    def three_each(timer):
        runs = [
            PlannedRun(timer.scheduled_for + timedelta(seconds=n), RunState.QUEUED, wants_slot=False)
            for n in range(3)
        ]
        return TimerPlan(runs, next_at=timer.now + timedelta(minutes=1))

    claims.claim_planned(
        world.db,
        Lane.NORMAL,
        EVERY_SHARD,
        1000,
        kind=TimerKind.PLANNED,
        plan=Planned(three_each),
        topics=TOPICS,
        install_shards=SHARDS,
        arrays=True,
    )
    rows = relay.read_runs(world.db, EVERY_SHARD, 4000, runs_per_row=1)
    assert sum(len(row.run_ids) for row in rows) == 180
    assert len(rows) <= 180 / relay.RUNS_PER_ROW + SHARDS
    sent = defaultdict(list)
    for row in rows:
        for job_id, instant in zip(row.job_ids, row.instants, strict=True):
            sent[job_id].append(instant)
    assert set(sent) == set(jobs)
    assert all(instants == sorted(instants) and len(instants) == 3 for instants in sent.values())


def test_rows_of_both_kinds_are_read_in_the_order_of_their_sequence(world):
    at = world.now() - timedelta(seconds=1)
    for together in (False, True, False, True):
        for _ in range(80):
            world.timer(world.job(), at)
        claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 4000, arrays=together)
    every = world.rows("select slice, seq from outbox order by seq")
    read = []
    while rows := relay.read_runs(world.db, EVERY_SHARD, 16, runs_per_row=4):
        read += [(row.slice, row.seq) for row in rows]
        relay.delete(world.db, rows)
    for slice_ in EVERY_SHARD:
        expected = [row["seq"] for row in every if row["slice"] == slice_]
        assert [seq for where, seq in read if where == slice_] == expected
