"""Jobs that pause themselves after equal failures in a row."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest
from tests.integration.intake.world import SHARDS, TOPICS, World, event, nightly

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.store.jobs import self_pauses
from noonmark.store.jobs.requests import FactCache
from noonmark.store.runs import finish, starts, worker_lease
from noonmark.telemetry.logs import get_logger
from noonmark.trigger import failure_watch


def job(world: World, failures: int | None = 3, **more):
    given = {} if failures is None else {"pause_after_failures": failures}
    return world.job_id(nightly(**given, **more))


def run_once(world: World, job_id, error: str | None = None) -> None:
    """Trigger the job and have a worker end the run."""
    world.take(event("trigger", job_id=str(job_id)))
    run = world.rows("select * from runs where job_id = %s and state = 'queued'", job_id)[0]
    worker = worker_lease.register(world.connection, pool="default", host="h", pid=1, lease_seconds=60)
    ticket = starts.StartRequest(run["id"], run["scheduled_for"], run["fence"])
    (started,), _ = starts.start(world.connection, worker, "default", [ticket])
    state = RunState.DEAD if error else RunState.SUCCEEDED
    how = AttemptOutcome.FAILED if error else AttemptOutcome.SUCCEEDED
    outcome = finish.Outcome(
        started,
        run["fence"],
        state,
        how,
        reason="retries_exhausted" if error else None,
        error=error,
        pool="default",
    )
    with world.connection.transaction():
        finish.record(world.connection, worker, TOPICS, [outcome], [], shards=SHARDS)


def sweep(world: World):
    """What the leading trigger does every few seconds."""
    since = world.row("select noonmark_now() as now")["now"] - timedelta(days=1)
    found = self_pauses.failing(world.connection, list(self_pauses.died_since(world.connection, since)))
    return [
        done
        for one in found
        if (done := self_pauses.pause(world.connection, TOPICS, one.id, FactCache(), shards=SHARDS))
        is not None
    ]


def state(world: World, job_id):
    return world.rows("select state, state_reason, paused_by from jobs where id = %s", job_id)[0]


def test_so_many_equal_failures_in_a_row_pause_the_job_as_an_operator_would(world):
    job_id = job(world)
    for number in range(3):
        run_once(world, job_id, f"ValueError: order {number} has no lines")
        assert len(sweep(world)) == (number == 2)

    shown = state(world, job_id)
    assert (shown["state"], shown["paused_by"]) == ("paused", "job")
    assert shown["state_reason"].startswith("paused itself: 3 runs in a row died: ValueError: order 2 has no")
    assert [timer["fire_at"].year for timer in world.timers(job_id)] == [9999]
    assert sweep(world) == []


@pytest.mark.parametrize(
    "errors",
    [
        ["boom", "boom"],
        ["boom", "boom", "another"],
        ["boom", None, "boom", "boom"],
        ["boom", "boom", "boom", None],
    ],
)
def test_fewer_other_or_interrupted_failures_pause_nothing(world, errors):
    job_id = job(world)
    for error in errors:
        run_once(world, job_id, error)

    assert sweep(world) == []
    assert state(world, job_id)["state"] == "active"


def test_a_job_that_did_not_ask_for_it_goes_on(world):
    job_id = job(world, None)
    for _ in range(4):
        run_once(world, job_id, "boom")

    assert sweep(world) == []
    assert state(world, job_id)["state"] == "active"


def test_after_a_resume_and_after_an_edit_it_counts_anew(world):
    job_id = job(world, 2)
    for _ in range(2):
        run_once(world, job_id, "boom")
    assert len(sweep(world)) == 1
    world.take(event("resume", job_id=str(job_id)))
    assert sweep(world) == []
    run_once(world, job_id, "boom")
    assert sweep(world) == []
    world.take(event("update", **nightly_document(2)))
    run_once(world, job_id, "boom")
    assert sweep(world) == []
    run_once(world, job_id, "boom")

    assert len(sweep(world)) == 1


def test_skipped_instants_neither_count_nor_interrupt(world):
    job_id = job(world, 2)
    run_once(world, job_id, "boom")
    world.connection.execute(
        """insert into runs (id, scheduled_for, finished_at, job_id, job_version, fence, lane, shard, state, reason, origin,
                             namespace, pool)
           select noonmark_uuid7(), now(), now(), id, 1, 1, lane, shard, 'skipped', 'misfired', 'schedule', namespace, pool
           from jobs where id = %s""",
        [job_id],
    )
    run_once(world, job_id, "boom")

    assert len(sweep(world)) == 1


def test_a_long_error_is_cut_in_the_reason(world):
    job_id = job(world, 1)
    run_once(world, job_id, "x" * 3000)

    (paused,) = sweep(world)
    assert len(paused.reason) == 500
    assert state(world, job_id)["state_reason"].endswith("…")


def test_a_job_that_somebody_resumed_in_between_is_left_alone(world):
    job_id = job(world, 1)
    run_once(world, job_id, "boom")
    (found,) = self_pauses.failing(world.connection, [job_id])
    world.take(event("pause", job_id=str(job_id), reason="by hand"), event("resume", job_id=str(job_id)))

    assert self_pauses.pause(world.connection, TOPICS, found.id, FactCache(), shards=SHARDS) is None
    assert state(world, job_id)["state"] == "active"


def nightly_document(failures: int):
    return {
        "type": "python",
        "handler": "tests.noop",
        "name": "nightly",
        "schedule": "0 3 * * *",
        "pause_after_failures": failures,
        "payload": {"fixed": True},
    }


def test_a_job_that_another_session_locks_delays_the_pause_of_no_other(world, monkeypatch):
    monkeypatch.setattr(self_pauses, "_LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr(failure_watch, "_CHECK_SECONDS", 0.0)
    membership = Membership("trigger", shards=SHARDS, timeout_seconds=10)
    membership.owned, membership.leads = tuple(range(SHARDS)), True
    service = Service("trigger", Settings(), Health(), threading.Event(), get_logger())
    loop = failure_watch.FailureLoop(service, membership, TOPICS, shards=SHARDS)
    locked, other = job(world, 1, name="locked"), job(world, 1, name="other")
    for job_id in (locked, other):
        run_once(world, job_id, "boom")
    with psycopg.connect(world.connection.info.dsn, password=world.connection.info.password) as session:
        session.execute("select from jobs where id = %s for update", [locked])
        loop.run_once(world.connection)
        assert state(world, other)["state"] == "paused"
        assert state(world, locked)["state"] == "active"
    # The death of its run is not behind what the next check looks at.
    loop.run_once(world.connection)
    assert state(world, locked)["state"] == "paused"
