"""Cancelling runs: what has no worker ends at once, what runs is asked to stop, and a committed outcome wins."""

import threading

import pytest
from tests.integration.store.world import SHARDS, TOPICS, World, outcome

from noonmark.core.states import RunState
from noonmark.store.claims import claims
from noonmark.store.runs import cancel as run_cancel
from noonmark.store.runs import dead_letters, finish, held_runs
from noonmark.store.runs.cancel import CANCELLABLE, RunKey


def key(world: World, run) -> RunKey:
    return RunKey(run, world.run(run)["scheduled_for"])


def cancel(world: World, runs, *, connection=None, states=CANCELLABLE):
    keys = [key(world, run) for run in runs]
    return run_cancel.cancel(connection or world.db, TOPICS, keys, states=states, shards=SHARDS)


def put_retry(world: World, run) -> None:
    row = world.run(run)
    world.db.execute(
        """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
           values (now() + interval '1 h', %s, %s, %s, 1, %s, 1, 2, 'tests', 'default')""",
        [row["scheduled_for"], row["job_id"], run, row["shard"]],
    )


@pytest.mark.parametrize("state", [RunState.WAITING, RunState.QUEUED, RunState.RETRYING])
def test_a_run_without_a_worker_ends_at_once_with_all_that_was_to_come_of_it(world, state):
    job_id = world.job()
    run = world.put_run(
        state, job_id=job_id, holds_slot=True, reason="paused" if state == "waiting" else None
    )
    put_retry(world, run)
    world.db.execute("insert into slots values (%s, 0, %s, now())", [job_id, run])
    world.db.execute(
        """insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
           select shard, lane, now(), id, job_id, scheduled_for, 1, 1, namespace, pool from runs"""
    )

    done = cancel(world, [run])

    after = world.run(run)
    assert (done.ended, done.stopping) == ([run], [])
    assert (after["state"], after["fence"]) == ("cancelled", 2)
    assert after["finished_at"] is not None
    assert world.messages(run) == []
    assert {table: world.count(table) for table in ("waits", "slots")} == {"waits": 0, "slots": 0}
    assert world.count("timers", "run_id is not null") == 0
    (told,) = world.told()
    assert (told["run_id"], told["state"], told["fence"]) == (str(run), "cancelled", 2)


def test_the_next_instant_of_the_job_stays(world):
    run = world.put_run(job_id=world.job())
    timers = world.count("timers")
    cancel(world, [run])
    assert world.count("timers") == timers


def test_a_running_one_is_asked_to_stop_and_ends_when_its_worker_confirms(world):
    worker = world.worker()
    (run,) = world.started(worker)

    done = cancel(world, [run.id])

    assert (done.ended, [one.id for one in done.stopping]) == ([], [run.id])
    assert world.run(run.id)["state"] == "cancelling"
    assert held_runs.read_stop_requests(world.db, worker, [(run.id, run.scheduled_for, 1)]) == [run.id]
    world.record(worker, [outcome(run, RunState.CANCELLED)])
    assert world.run(run.id)["state"] == "cancelled"


def test_one_that_waits_for_a_callback_has_no_worker_and_ends_at_once(world):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update runs set owner = 0, epoch = 0 where id = %s", [run.id])

    done = cancel(world, [run.id])

    assert done.ended == [run.id]
    assert world.run(run.id)["fence"] == 2


@pytest.mark.parametrize("state", sorted(set(RunState) - set(CANCELLABLE)))
def test_what_has_ended_stays_as_it_is(world, state):
    run = world.put_run(state)
    before = world.run(run)

    done = cancel(world, [run])

    assert (done.ended, done.stopping) == ([], [])
    assert world.run(run) == before
    assert world.told() == []


def test_a_run_that_left_the_states_that_were_meant_is_left_alone(world):
    queued, retrying = world.put_run(RunState.QUEUED), world.put_run(RunState.RETRYING)
    put_retry(world, retrying)

    done = cancel(world, [queued, retrying], states=[RunState.QUEUED])

    assert done.ended == [queued]
    assert world.run(retrying)["state"] == "retrying"
    assert world.count("timers", "run_id is not null") == 1


@pytest.mark.parametrize("first", ["outcome", "cancel"])
@pytest.mark.parametrize(
    ("how", "when_outcome_first"),
    [(RunState.SUCCEEDED, "succeeded"), (RunState.DEAD, "dead"), (RunState.RETRYING, "cancelled")],
)
def test_of_cancel_and_outcome_the_one_that_locks_first_wins_and_the_other_sees_it(
    world, first, how, when_outcome_first
):
    worker = world.worker()
    (run,) = world.started(worker)
    more = {} if how is RunState.SUCCEEDED else {"error": "boom", "reason": "retries_exhausted"}
    more |= {"retry_seconds": 60.0} if how is RunState.RETRYING else {}
    late, early = world.another(), world.another()
    done = []

    def record(connection):
        with connection.transaction():
            finish.record(connection, worker, TOPICS, [outcome(run, how, **more)], [], shards=SHARDS)

    def stop(connection):
        keys = [RunKey(run.id, run.scheduled_for)]
        done.append(run_cancel.cancel(connection, TOPICS, keys, shards=SHARDS))

    one, other = (record, stop) if first == "outcome" else (stop, record)
    second = threading.Thread(target=other, args=(late,))
    with early.transaction():
        one(early)
        second.start()
        waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        while not world.value(waits):
            pass
    second.join()

    after = world.run(run.id)
    assert after["state"] == (when_outcome_first if first == "outcome" else "cancelled")
    assert world.count("timers", "kind = 2") == 0
    told = [one["state"] for one in world.told()]
    wanted = {
        "outcome": {"succeeded": ["succeeded"], "dead": ["dead"], "cancelled": ["retrying", "cancelled"]}
    }
    assert told == (wanted["outcome"][when_outcome_first] if first == "outcome" else ["cancelled"])


@pytest.mark.parametrize("claims_first", [True, False])
def test_a_due_retry_is_claimed_or_cancelled_but_not_both(world, claims_first):
    run = world.put_run(RunState.RETRYING)
    put_retry(world, run)
    world.db.execute("update timers set fire_at = now() - interval '1 s' where run_id = %s", [run])
    shard = world.run(run)["shard"]

    def claim():
        claims.claim_retries(world.db, 1, [shard], 10)

    steps = [claim, lambda: cancel(world, [run])]
    for step in steps if claims_first else reversed(steps):
        step()

    assert world.run(run)["state"] == "cancelled"
    assert world.messages(run) == []
    assert world.count("timers", "run_id is not null") == 0


def test_a_cancelled_run_cannot_be_redriven(world):
    run = world.put_run()
    cancel(world, [run])
    done = dead_letters.redrive(world.db, TOPICS, [dead_letters.DeadRun(*key(world, run))], shards=SHARDS)
    assert done.refused == {run: dead_letters.Refusal.NOT_DEAD}
