"""Ends that a promise or a handler asks for: `unknown`, a snooze, and runs that their handlers end themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.store.runs import leases

ONCE = '{"delivery": "at_most_once", "timeout_seconds": 60}'
OFTEN = '{"timeout_seconds": 60}'


def lose(world, worker):
    """End the lease of a worker in good order, and let the trigger find what it left."""
    world.db.execute("update workers set left_at = now() where id = %s", [worker.worker])
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)


def job(world, work, *, version=1):
    job_id = world.job(version=version)
    world.db.execute("update jobs set work = %s where id = %s", [work, job_id])
    return job_id


def test_a_lost_run_that_is_done_at_most_once_ends_as_unknown_and_is_told(world):
    worker = world.worker()
    job_id = job(world, ONCE)
    run_id = world.put_run(job_id=job_id, holds_slot=True)
    world.db.execute("insert into slots select %s, 0, %s, now()", [job_id, run_id])
    world.start(worker, [run_id])

    lose(world, worker)

    row = world.run(run_id)
    assert (row["state"], row["reason"], row["fence"], row["owner"]) == ("unknown", "lost", 2, None)
    assert row["attempt"] == 1, "it may have run: that attempt counts"
    assert row["finished_at"] is not None
    assert "how far the run got is unknown" in row["error"]
    (told,) = world.told()
    assert (told["run_id"], told["state"], told["reason"]) == (str(run_id), "unknown", "lost")
    assert world.messages(run_id) == []
    assert world.count("slots") == world.count("dead_letters") == world.count("start_batches") == 0
    assert world.column("select outcome from attempts where run_id = %s", run_id) == ["lost"]


@pytest.mark.parametrize(("pinned", "state"), [(ONCE, "unknown"), (OFTEN, "queued")])
def test_the_promise_is_that_of_the_version_that_the_run_was_planned_with(world, pinned, state):
    worker = world.worker()
    job_id = job(world, OFTEN if pinned == ONCE else ONCE, version=2)
    world.db.execute(
        "insert into job_versions (job_id, version, kind, handler, work) values (%s, 1, 'python', 'tests.noop', %s)",
        [job_id, pinned],
    )
    run_id = world.put_run(job_id=job_id)
    world.start(worker, [run_id])

    lose(world, worker)

    assert world.run(run_id)["state"] == state


def test_a_lost_run_whose_job_is_gone_is_queued_again(world):
    worker = world.worker()
    job_id = job(world, ONCE)
    run_id = world.put_run(job_id=job_id)
    world.start(worker, [run_id])
    world.db.execute("delete from jobs where id = %s", [job_id])

    lose(world, worker)

    assert world.run(run_id)["state"] == "queued"


def test_a_cancelled_run_of_a_vanished_worker_is_cancelled_whatever_was_promised(world):
    worker = world.worker()
    run_id = world.put_run(job_id=job(world, ONCE))
    world.start(worker, [run_id])
    world.db.execute("update runs set state = 'cancelling' where id = %s", [run_id])

    lose(world, worker)

    row = world.run(run_id)
    assert (row["state"], row["reason"], row["error"]) == ("cancelled", None, None)


def test_a_snooze_gives_the_attempt_back_and_waits_in_a_timer(world):
    worker = world.worker()
    (run,) = world.started(worker)
    assert run.attempt == 1

    snoozed = outcome(
        run,
        RunState.RETRYING,
        attempt_outcome=AttemptOutcome.SNOOZED,
        error="closed",
        retry_seconds=90.0,
    )
    world.record(worker, [snoozed])

    row = world.run(run.id)
    assert (row["state"], row["attempt"], row["fence"]) == ("retrying", 0, 1)
    ((fires,),) = world.db.execute("select fire_at - noonmark_now() from timers where run_id = %s", [run.id])
    assert timedelta(seconds=80) < fires <= timedelta(seconds=90)
    assert world.rows("select attempt, outcome, error from attempts") == [
        {"attempt": 1, "outcome": "snoozed", "error": "closed"}
    ]


@pytest.mark.parametrize(
    ("state", "attempt"),
    [(RunState.CANCELLED, AttemptOutcome.CANCELLED), (RunState.DISCARDED, AttemptOutcome.FAILED)],
)
def test_a_run_that_its_handler_ends_is_told_with_that_reason_and_buries_nothing(world, state, attempt):
    worker = world.worker()
    (run,) = world.started(worker)

    world.record(
        worker, [outcome(run, state, attempt_outcome=attempt, reason="by_handler", error="not needed")]
    )

    row = world.run(run.id)
    assert (row["state"], row["reason"], row["error"]) == (state.value, "by_handler", "not needed")
    (told,) = world.told()
    assert (told["state"], told["reason"]) == (state.value, "by_handler")
    assert world.told(TOPICS.dead) == []
    assert world.count("dead_letters") == world.count("timers") == 0


@pytest.mark.parametrize(
    ("state", "reason"),
    [(RunState.DISCARDED, "by_handler"), (RunState.UNKNOWN, "timed_out"), (RunState.RETRYING, None)],
)
def test_what_somebody_cancelled_ends_as_cancelled_without_a_reason_of_its_handler(world, state, reason):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update runs set state = 'cancelling' where id = %s", [run.id])

    world.record(worker, [outcome(run, state, reason=reason, error="x")])

    row = world.run(run.id)
    assert (row["state"], row["reason"]) == ("cancelled", None)
    (told,) = world.told()
    assert (told["state"], told.get("reason")) == ("cancelled", None)
    assert world.count("timers") == 0
