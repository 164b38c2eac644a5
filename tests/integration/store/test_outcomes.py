"""Outcomes: who may write about a run, and what is tied to each write."""

from datetime import timedelta

import pytest
from tests.integration.store.world import TOPICS, outcome

from noonmark.core.states import RunState
from noonmark.store.runs import finish
from noonmark.store.runs.worker_lease import Identity


def slot_of(world, run):
    """Give a run its job's overlap slot."""
    world.db.execute(
        "insert into slots (key, slot_no, run_id, taken_at) values (%s, 0, %s, now())",
        [run["job_id"], run["id"]],
    )


def test_a_success_is_recorded_and_told_once(world):
    worker = world.worker()
    (run,) = world.started(worker)

    recorded = world.record(worker, [outcome(run)], [run.batch_id])

    assert recorded.states == {run.id: "succeeded"}
    row = world.run(run.id)
    assert (row["state"], row["result"], row["error"]) == ("succeeded", None, None)
    assert row["finished_at"] >= row["started_at"]
    assert [(told["run_id"], told["state"], told["fence"]) for told in world.told()] == [
        (str(run.id), "succeeded", 1)
    ]
    assert world.count("start_batches") == world.count("attempts") == world.count("dead_letters") == 0


def test_outcomes_of_one_batch_are_told_in_one_message_per_namespace(world):
    worker = world.worker()
    runs = world.started(worker, 20)

    world.record(worker, [outcome(run) for run in runs])

    assert world.count("outbox", "topic is not null") == 1
    assert len(world.told()) == 20


@pytest.mark.parametrize(
    "guard", ["fence below", "fence above", "another worker", "another epoch", "ended", "another's run"]
)
def test_an_outcome_that_any_guard_refuses_writes_nothing_that_is_tied_to_it(world, guard):
    worker, rival = world.worker(), world.worker()
    (run,) = world.started(worker, fence=2, holds_slot=True)
    slot_of(world, world.run(run.id))
    fence, who = 2, worker
    if guard.startswith("fence"):
        fence += -1 if guard == "fence below" else 1
    elif guard == "another worker":
        who = rival
    elif guard == "another epoch":
        who = Identity(worker.worker, worker.epoch + 1)
    elif guard == "ended":
        world.record(worker, [outcome(run, fence=2)])
    else:
        world.db.execute("update runs set owner = %s", [rival.worker])
    before = (world.run(run.id), world.count("outbox"), world.count("slots"))

    recorded = world.record(
        who,
        [
            outcome(run, RunState.RETRYING, fence=fence, error="boom", retry_seconds=1.0),
            outcome(run, RunState.DEAD, fence=fence, error="boom", reason="retries_exhausted"),
            outcome(run, fence=fence),
        ],
    )

    assert (recorded.states, len(recorded.fenced)) == ({}, 3)
    assert (world.run(run.id), world.count("outbox"), world.count("slots")) == before
    assert world.count("attempts") == world.count("dead_letters") == world.count("timers") == 0


def test_of_two_outcomes_for_two_fences_of_a_run_only_the_newer_is_tied_to_anything(world):
    """A worker may hold a run twice: its batch was overdue, was taken, and came back to the same worker."""
    worker = world.worker()
    (old,) = world.started(worker)
    world.db.execute("update runs set state = 'queued', fence = 2, owner = null, epoch = null")
    (new,) = world.start(worker, [old.id])

    recorded = world.record(
        worker,
        [
            outcome(old, RunState.RETRYING, fence=1, error="too late", retry_seconds=1.0),
            outcome(new, RunState.RETRYING, fence=2, error="boom", retry_seconds=1.0),
        ],
    )

    assert [(o.run.id, o.fence) for o in recorded.fenced] == [(old.id, 1)]
    assert world.column("select error from attempts") == ["boom"]
    assert world.count("timers") == 1
    assert [(told["fence"], told["state"]) for told in world.told()] == [(2, "retrying")]
    assert world.run(old.id)["error"] == "boom"


@pytest.mark.parametrize("newer_first", [False, True])
def test_a_success_and_a_stale_success_of_one_run_are_told_once(world, newer_first):
    worker = world.worker()
    (old,) = world.started(worker)
    world.db.execute("update runs set state = 'queued', fence = 2, owner = null, epoch = null")
    (new,) = world.start(worker, [old.id])
    both = [outcome(old, fence=1, result="1"), outcome(new, fence=2, result="2")]

    recorded = world.record(worker, both[::-1] if newer_first else both)

    assert [o.fence for o in recorded.fenced] == [1]
    assert [(told["fence"], told["state"]) for told in world.told()] == [(2, "succeeded")]
    assert world.run(old.id)["result"] == 2


def test_one_outcome_given_twice_is_recorded_once(world):
    worker = world.worker()
    (run,) = world.started(worker)
    failure = outcome(run, RunState.RETRYING, error="boom", retry_seconds=1.0)

    recorded = world.record(worker, [failure, failure])

    assert len(recorded.fenced) == 1
    assert world.count("timers") == 1
    assert len(world.told()) == 1


def test_a_failed_attempt_waits_for_its_retry_in_postgres(world):
    worker = world.worker()
    (run,) = world.started(worker)

    earliest = world.now() + timedelta(seconds=30)
    world.record(worker, [outcome(run, RunState.RETRYING, error="boom", retry_seconds=30.0)])
    latest = world.now() + timedelta(seconds=30)

    row = world.run(run.id)
    assert (row["state"], row["error"], row["finished_at"], row["fence"]) == ("retrying", "boom", None, 1)
    (timer,) = world.rows("select * from timers")
    assert (timer["kind"], timer["run_id"], timer["scheduled_for"]) == (2, run.id, run.scheduled_for)
    assert (timer["shard"], timer["lane"], timer["pool"]) == (run.shard, run.lane, "default")
    assert earliest <= timer["fire_at"] <= latest
    (attempt,) = world.rows("select * from attempts")
    assert (attempt["fence"], attempt["attempt"], attempt["worker"]) == (1, 1, worker.worker)
    assert (attempt["outcome"], attempt["error"]) == ("failed", "boom")
    assert [told["state"] for told in world.told()] == ["retrying"]


def test_a_dead_run_leaves_a_letter_and_two_events(world):
    worker = world.worker()
    (run,) = world.started(worker)

    world.record(worker, [outcome(run, RunState.DEAD, error="boom", reason="retries_exhausted")])

    row = world.run(run.id)
    assert (row["state"], row["reason"], row["error"]) == ("dead", "retries_exhausted", "boom")
    (letter,) = world.rows("select * from dead_letters")
    assert (letter["run_id"], letter["job_id"]) == (run.id, run.job_id)
    assert (letter["reason"], letter["error"], letter["attempts"]) == ("retries_exhausted", "boom", 1)
    assert [(told["state"], told["reason"]) for told in world.told()] == [("dead", "retries_exhausted")]
    (obituary,) = world.told(TOPICS.dead)
    assert (obituary["run_id"], obituary["error"]) == (str(run.id), "boom")


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (RunState.SUCCEEDED, {}),
        (RunState.SUCCEEDED, {"result": "1"}),
        (RunState.RETRYING, {"error": "boom", "retry_seconds": 1.0}),
        (RunState.DEAD, {"error": "boom", "reason": "retries_exhausted"}),
        (RunState.CANCELLED, {}),
    ],
)
def test_whatever_a_run_reports_after_its_cancel_it_ends_as_cancelled(world, state, more):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update runs set state = 'cancelling'")

    recorded = world.record(worker, [outcome(run, state, **more)])

    assert recorded.states == {run.id: "cancelled"}
    row = world.run(run.id)
    assert (row["state"], row["reason"]) == ("cancelled", None)
    assert row["finished_at"] is not None
    assert [(told["state"], told["reason"]) for told in world.told()] == [("cancelled", None)]
    assert world.count("timers") == world.count("dead_letters") == 0


@pytest.mark.parametrize(
    ("state", "freed"),
    [(RunState.SUCCEEDED, True), (RunState.DEAD, True), (RunState.RETRYING, False)],
)
def test_a_slot_is_freed_exactly_when_its_run_ends(world, state, freed):
    worker = world.worker()
    (run,) = world.started(worker, holds_slot=True)
    slot_of(world, world.run(run.id))

    world.record(worker, [outcome(run, state, error=None if freed else "boom")])

    assert world.count("slots") == (0 if freed else 1)


def test_a_cancelled_run_that_would_have_been_retried_frees_its_slot(world):
    worker = world.worker()
    (run,) = world.started(worker, holds_slot=True)
    slot_of(world, world.run(run.id))
    world.db.execute("update runs set state = 'cancelling'")

    world.record(worker, [outcome(run, RunState.RETRYING, error="boom")])

    assert world.count("slots") == 0


def test_outcomes_that_were_recorded_are_known_again(world):
    worker = world.worker()
    recorded, retried, open_ = world.started(worker, 3)
    done = [outcome(recorded), outcome(retried, RunState.RETRYING, error="boom", retry_seconds=9.0)]
    world.record(worker, done)

    known = finish.already_recorded(world.db, worker, [*done, outcome(open_)])

    assert known == {recorded.id, retried.id}
    assert finish.already_recorded(world.db, world.worker(), done) == set()
    assert finish.already_recorded(world.db, worker, [outcome(recorded, fence=2)]) == set()
    assert finish.already_recorded(world.db, worker, []) == set()


def test_recording_the_rest_after_an_unknown_commit_repeats_nothing(world):
    worker = world.worker()
    runs = world.started(worker, 4)
    outcomes = [outcome(run) for run in runs]
    world.record(worker, outcomes[:2])

    known = finish.already_recorded(world.db, worker, outcomes)
    world.record(worker, [o for o in outcomes if o.run.id not in known])

    assert sorted(told["run_id"] for told in world.told()) == sorted(str(run.id) for run in runs)
