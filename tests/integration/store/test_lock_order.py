"""A worker that records and a trigger that takes the same runs: neither waits for the other in a circle."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.integration.store.test_races import Rival
from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.core.states import RunState
from noonmark.store.database.statements import statement
from noonmark.store.runs import finish, leases

GAP = 5


def patient(world):
    """A session whose open transaction the server does not end, however slow the test is."""
    session = world.another()
    session.execute("set idle_in_transaction_session_timeout = 0")
    return session


def overdue(world, count=2):
    """Runs of one start batch of a worker that lives, past every timeout."""
    worker = world.worker()
    runs = world.started(worker, count)
    world.db.execute("update start_batches set overdue_at = now() - interval '1 s'")
    return worker, runs


def look(connection):
    return leases.run_pass(connection, TOPICS, shards=SHARDS, gap_seconds=GAP)


def test_a_trigger_leaves_runs_that_their_worker_is_recording_and_the_worker_deletes_their_batch(world):
    """The trigger has the batch and wants the run; the worker has the run and wants the batch."""
    worker, runs = overdue(world)
    (batch,) = world.column("select id from start_batches")
    session = patient(world)
    with session.transaction():
        recorded = finish.record(session, worker, TOPICS, [outcome(run) for run in runs], [], shards=SHARDS)
        taken = look(world.db)  # it returns although the runs are locked
        finish.delete_batches(session, [batch])

    assert taken.lost == []
    assert recorded.states == {run.id: "succeeded" for run in runs}
    assert (world.count("start_batches"), world.count("attempts")) == (0, 0)


def test_a_worker_leaves_a_batch_to_the_trigger_that_has_locked_it(world):
    worker, runs = overdue(world)
    (batch,) = world.column("select id from start_batches")
    trigger = patient(world)
    with trigger.transaction():
        assert len(trigger.execute(statement("lock_orphaned_batches"), {"limit": 20}).fetchall()) == 1
        world.record(
            worker, [outcome(run) for run in runs], [batch]
        )  # it returns although the batch is locked
        assert world.count("start_batches") == 1

    assert look(world.db).lost == []
    assert world.count("start_batches") == 0
    assert {world.run(run.id)["state"] for run in runs} == {"succeeded"}


def test_an_outcome_that_comes_while_a_trigger_takes_its_run_is_fenced_without_a_deadlock(world):
    worker, runs = overdue(world)
    (batch,) = world.column("select id from start_batches")
    trigger, recorded = patient(world), []

    def record(connection):
        with connection.transaction():
            outcomes = [outcome(run) for run in reversed(runs)]
            recorded.append(finish.record(connection, worker, TOPICS, outcomes, [batch], shards=SHARDS))

    with trigger.transaction():
        lost = leases._requeue_lost(trigger, TOPICS, shards=SHARDS, batches=20)
        rival = Rival(world, record)
        rival.waits()
    rival.ended()

    assert {run.id for run in lost} == {run.id for run in runs}
    assert len(recorded[0].fenced) == 2
    assert {world.run(run.id)["state"] for run in runs} == {"queued"}
    assert world.count("start_batches") == 0


@pytest.mark.parametrize("losses", [0, leases.LOSS_BUDGET])
def test_a_run_that_a_person_has_locked_holds_up_no_other_lost_run(world, losses):
    worker = world.worker()
    locked, *others = world.started(worker, 4, losses=losses)
    elsewhere = world.started(world.worker(), 1)
    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
    person = patient(world)
    with person.transaction():
        person.execute("update runs set error = 'looked at' where id = %s", [locked.id])

        lost = look(world.db).lost

        assert {run.id for run in lost} == {run.id for run in (*others, *elsewhere)}
        # The run that is locked is a neighbour of theirs: none can be the cause alone.
        assert all(run.state in {RunState.QUEUED, RunState.RETRYING} for run in lost)
        assert world.column("select run_ids from start_batches") == [[r.id for r in (locked, *others)]]
        assert look(world.db).lost == []

    assert [run.id for run in look(world.db).lost] == [locked.id]
    assert world.count("start_batches") == 0


def test_the_batch_of_a_run_that_stays_locked_is_taken_up_again_pass_by_pass(world):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
    person = patient(world)
    with person.transaction():
        person.execute("select from runs where id = %s for update", [run.id])
        for _ in range(3):
            assert look(world.db).lost == []
            assert world.count("start_batches") == 1
        person.execute("update runs set scheduled_for = scheduled_for where id = %s", [run.id])

    assert [lost.id for lost in look(world.db).lost] == [run.id]
    assert world.run(run.id)["queued_at"] > world.now() - timedelta(minutes=1)
