"""Claims of one-time jobs: many sessions, bad plans and stale statistics; each job one run, one message."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from tests.integration.store.world import EVERY_SHARD

from noonmark.core.states import Lane, RunState, TimerKind
from noonmark.store.claims import claims
from noonmark.store.database.statements import statement

PLANS = {
    "as planned": (),
    "nested loops only": ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_material"),
    "no index": ("enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan", "enable_hashjoin"),
    "no tid scan": ("enable_tidscan", "enable_nestloop"),
}


def distort(connection: psycopg.Connection, plan: str) -> None:
    """Forbid the planner of a session what a good plan would use."""
    for switch in PLANS[plan]:
        connection.execute(f"set {switch} = off")
    connection.execute("set jit = off")


def stale_statistics(world) -> None:
    """Have the tables analysed while they are empty, and not again."""
    for table in ("timers", "outbox", "jobs"):
        world.db.execute(f"alter table {table} set (autovacuum_enabled = off)")
        world.db.execute(f"analyze {table}")


def claim_all(connection, lanes, limit, start):
    """Claim until nothing is due; return what each claim took."""
    taken = []
    start.wait()
    while True:
        round_ = [claims.claim_once(connection, lane, EVERY_SHARD, limit) for lane in lanes]
        taken += round_
        if not any(result.claimed for result in round_):
            return taken


@pytest.mark.parametrize(
    ("sessions", "jobs", "plan"),
    [
        (16, 10_000, "as planned"),
        (32, 4_000, "nested loops only"),
        (8, 3_000, "no index"),
        (8, 3_000, "no tid scan"),
    ],
)
def test_many_sessions_that_own_every_shard_claim_each_job_once(fresh_world, sessions, jobs, plan):
    world = fresh_world
    stale_statistics(world)
    ids = world.due_once(jobs)
    limit = 400
    start = threading.Barrier(sessions)
    lanes = list(Lane)

    def session(number):
        connection = connections[number]
        distort(connection, plan)
        return claim_all(connection, lanes[number % 3 :] + lanes[: number % 3], limit, start)

    connections = [world.another() for _ in range(sessions)]
    with ThreadPoolExecutor(sessions) as pool:
        taken = [result for results in pool.map(session, range(sessions)) for result in results]

    assert max(result.claimed for result in taken) <= limit
    assert sum(result.claimed for result in taken) == jobs
    assert sum(result.queued for result in taken) == jobs
    assert world.count("timers") == 0
    assert world.value("select count(*) from runs where state = 'queued' and fence = 1") == jobs
    assert set(world.column("select job_id from runs")) == set(ids)
    assert set(world.column("select job_id from outbox")) == set(ids)
    assert world.count("outbox") == jobs
    wrong = world.value(
        """select count(*) from outbox join runs on runs.id = outbox.run_id
           where (outbox.slice, outbox.lane, outbox.scheduled_for, outbox.pool, outbox.fence)
                 is distinct from (runs.shard, runs.lane, runs.scheduled_for, runs.pool, runs.fence)"""
    )
    assert wrong == 0


@pytest.mark.parametrize("plan", sorted(PLANS))
@pytest.mark.parametrize("limit", [1, 50])
def test_a_claim_takes_no_more_than_its_limit_whatever_the_plan(world, plan, limit):
    stale_statistics(world)
    world.due_once(2_000)
    distort(world.db, plan)

    once = claims.claim_once(world.db, Lane.NORMAL, [2], limit)
    params = {"shards": [1], "lane": 0, "limit": limit}
    planned_kind = {"kind": 1, "zone_data": "none"}
    world.db.execute("update timers set kind = 2, run_id = job_id where shard = 1")
    retries = world.db.execute(statement("claim_run_timers"), {**params, "kind": 2}).fetchall()
    world.db.execute("update timers set kind = 1 where shard = 3")
    with world.db.transaction():
        planned = world.db.execute(
            statement("lock_planned_timers"), {**params, "shards": [3], **planned_kind}
        ).fetchall()

    assert once.claimed == once.queued == limit
    assert len(retries) == limit
    assert len(planned) == limit


def test_a_claim_takes_the_oldest_of_each_shard_first(world):
    now = world.now()
    jobs = [world.job() for _ in range(12)]
    for age, job_id in enumerate(jobs):
        world.timer(job_id, now - timedelta(seconds=1 + age))

    for shard in EVERY_SHARD:
        claims.claim_once(world.db, Lane.NORMAL, [shard], 1)

    for shard in EVERY_SHARD:
        ages = world.column("select scheduled_for from runs where shard = %s", shard)
        left = world.column("select scheduled_for from timers where shard = %s", shard)
        assert not ages or not left or ages[0] < min(left)


def test_a_claim_leaves_what_another_session_has_locked(world):
    world.due_once(30)
    other = world.another()
    with other.transaction():
        locked = other.execute("select job_id from timers where lane = 1 for update").fetchall()

        claimed = [claims.claim_once(world.db, lane, EVERY_SHARD, 100).claimed for lane in Lane]

    assert claimed[Lane.NORMAL] == 0
    assert sum(claimed) == 30 - len(locked)


def test_a_claim_takes_nothing_that_is_not_due_yet_or_of_another_kind(world):
    now = world.now()
    world.timer(world.job(), now + timedelta(hours=1))
    world.timer(world.job(), now - timedelta(seconds=1), kind=TimerKind.PLANNED)
    world.timer(
        world.job(), now - timedelta(seconds=1), kind=TimerKind.RETRY, run_id=world.put_run(RunState.RETRYING)
    )

    assert claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100).claimed == 0
    assert world.count("timers") == 3


def test_an_instant_that_is_in_the_ledger_already_is_claimed_and_told_to_nobody(world):
    at = world.now() - timedelta(seconds=1)
    job_id = world.job()
    world.put_run(RunState.SUCCEEDED, job_id=job_id, scheduled_for=at)
    world.timer(job_id, at)

    result = claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100)

    assert (result.claimed, result.queued) == (1, 0)
    assert world.count("outbox") == 0
    assert [run["state"] for run in world.runs_of(job_id)] == ["succeeded"]


def test_a_due_retry_is_queued_under_a_higher_fence_and_keeps_its_attempt(world):
    run_id = world.put_run(RunState.RETRYING, attempt=2, fence=4, error="boom")
    row = world.run(run_id)
    world.timer(
        row["job_id"],
        world.now() - timedelta(seconds=1),
        kind=TimerKind.RETRY,
        run_id=run_id,
        scheduled_for=row["scheduled_for"],
    )

    result = claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 100)

    assert (result.claimed, result.queued) == (1, 1)
    after = world.run(run_id)
    assert (after["state"], after["fence"], after["attempt"]) == ("queued", 5, 2)
    assert [message["fence"] for message in world.messages(run_id)] == [5]


def test_a_retry_that_a_person_has_locked_holds_up_no_other(world):
    runs = [world.put_run(RunState.RETRYING, attempt=1, fence=1, error="boom") for _ in range(3)]
    for run_id in runs:
        row = world.run(run_id)
        at = {"scheduled_for": row["scheduled_for"], "run_id": run_id}
        world.timer(row["job_id"], world.now() - timedelta(seconds=1), kind=TimerKind.RETRY, **at)
    before = world.rows("select * from timers where run_id = %s", runs[0])
    person = world.another()
    person.execute("set idle_in_transaction_session_timeout = 0")
    with person.transaction():
        person.execute("select from runs where id = %s for update", [runs[0]])

        result = claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 100)

        assert (result.claimed, result.queued) == (3, 2)
        assert [world.run(run_id)["state"] for run_id in runs] == ["retrying", "queued", "queued"]
    (timer,) = world.rows("select * from timers")
    assert timer.pop("fire_at") > before[0].pop("fire_at")
    assert timer == before[0]
    world.db.execute("update timers set fire_at = now() - interval '1 s'")
    assert claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 100).queued == 1
    assert world.run(runs[0])["state"] == "queued"


def test_the_retry_of_a_run_that_was_cancelled_is_dropped(world):
    run_id = world.put_run(RunState.CANCELLED)
    row = world.run(run_id)
    world.timer(
        row["job_id"],
        world.now() - timedelta(seconds=1),
        kind=TimerKind.RETRY,
        run_id=run_id,
        scheduled_for=row["scheduled_for"],
    )

    assert claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 100).queued == 0
    assert world.count("timers") == 0
    assert world.messages(run_id) == []


def test_a_parked_run_is_sent_again_when_its_timer_is_due(world):
    run_id = world.put_run(RunState.WAITING, reason="undeliverable", fence=1)
    row = world.run(run_id)
    world.timer(
        row["job_id"],
        world.now() - timedelta(seconds=1),
        kind=TimerKind.RETRY,
        run_id=run_id,
        scheduled_for=row["scheduled_for"],
    )

    assert claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 100).queued == 1
    assert (world.run(run_id)["state"], world.run(run_id)["fence"]) == ("queued", 2)
    assert world.count("waits") == 0


def test_the_probe_names_what_is_due_and_when_the_next_timer_is(world):
    assert claims.probe(world.db, EVERY_SHARD) is None
    now = world.now()
    late, soon = world.job(), world.job(lane=Lane.HIGH)
    world.timer(late, now - timedelta(seconds=1))
    world.timer(soon, now + timedelta(minutes=1), lane=Lane.HIGH)

    probe = claims.probe(world.db, EVERY_SHARD)

    assert probe is not None
    shard = world.value("select shard from jobs where id = %s", late)
    assert probe.due == {(Lane.NORMAL, TimerKind.ONCE): [shard]}
    assert probe.next_at == now + timedelta(minutes=1)
    assert now <= probe.now


def test_the_day_of_a_late_instant_is_made_when_a_claim_misses_it(world):
    at = world.now() - timedelta(days=20)
    world.timer(world.job(), at)
    with pytest.raises(psycopg.errors.CheckViolation):
        claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100)
    assert world.count("timers") == 1

    assert claims.missing_days(world.db, EVERY_SHARD, 100) == 1

    assert claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 100).queued == 1
