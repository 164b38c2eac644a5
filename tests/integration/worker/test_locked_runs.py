"""A person's open transaction on one run: everything about other runs continues, and that run when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import pytest
from tests.integration.store.world import World
from tests.integration.worker.desk import Desk

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import RunState
from noonmark.store.runs import held_runs
from noonmark.store.runs.locked_runs import find_locked


@contextmanager
def locked(world: World, *run_ids: UUID) -> Iterator[None]:
    """Lock runs as a person does who edits them and thinks before the commit."""
    person = world.another()
    person.execute("set idle_in_transaction_session_timeout = 0")
    with person.transaction():
        person.execute("update runs set error = 'edited' where id = any (%s)", [list(run_ids)])
        yield


@contextmanager
def locked_slot(world: World, table: str, run_id: UUID) -> Iterator[None]:
    """Lock the slot of a run in the same way."""
    person = world.another()
    person.execute("set idle_in_transaction_session_timeout = 0")
    with person.transaction():
        assert person.execute(f"select from {table} where run_id = %s for update", [run_id]).rowcount == 1
        yield


@contextmanager
def locked_job(world: World, job_id: UUID) -> Iterator[None]:
    """Lock a job as a person does who edits it."""
    person = world.another()
    person.execute("set idle_in_transaction_session_timeout = 0")
    with person.transaction():
        person.execute("update jobs set handler = handler where id = %s", [job_id])
        yield


@pytest.fixture
def slot_hands(desk: Desk) -> Sequence[RunningAttempt]:
    """Three runs of three jobs, all of which hold an overlap slot and one of a limit."""
    desk.registry.add(lambda ctx: None, name="h.done")
    runs = []
    for n in range(3):
        job_id = desk.world.job(handler="h.done")
        run_id = desk.world.put_run(job_id=job_id, holds_slot=True)
        desk.world.db.execute("insert into slots values (%s, 0, %s, now())", [job_id, run_id])
        desk.world.db.execute(
            "insert into limit_slots values (%s, %s, %s, 'tests', 'l')", [UUID(int=7), n, run_id]
        )
        runs.append(run_id)
    started = desk.world.start(desk.identity, runs)
    desk.batches.started(started)
    return [desk.attempt(run) for run in started]


@pytest.fixture
def hands(desk: Desk) -> Sequence[RunningAttempt]:
    """Four runs of one start batch."""
    desk.registry.add(lambda ctx: None, name="h.done")
    job_id = desk.world.job(handler="h.done")
    runs = [desk.world.put_run(job_id=job_id, request_id=str(n)) for n in range(4)]
    started = desk.world.start(desk.identity, runs)
    desk.batches.started(started)
    return [desk.attempt(run) for run in started]


def states(world: World, hands: Sequence[RunningAttempt]) -> list[str]:
    return [world.run(hand.run.id)["state"] for hand in hands]


def test_outcomes_of_other_runs_are_recorded_while_one_run_is_locked(world, desk, hands):
    first, *others = hands
    with locked(world, first.run.id):
        desk.executors.submit(hands)
        for hand in others:
            desk.wait_for(hand)

        assert states(world, hands) == ["running", *["succeeded"] * 3]
        assert desk.told(first) == []
        assert desk.recorder.waiting == 1
        assert world.count("start_batches") == 1

        # A later batch does not wait either.
        assert desk.run(lambda ctx: None).state is RunState.SUCCEEDED

    assert desk.wait_for(first).state is RunState.SUCCEEDED
    assert states(world, hands) == ["succeeded"] * 4
    assert desk.recorder.waiting == 0
    assert world.count("start_batches", f"id = {first.run.batch_id}") == 0


@pytest.mark.parametrize("table", ["slots", "limit_slots"])
def test_outcomes_of_other_runs_are_recorded_while_the_slot_of_one_is_locked(world, desk, slot_hands, table):
    first, *others = slot_hands
    with locked_slot(world, table, first.run.id):
        desk.executors.submit(slot_hands)
        for hand in others:
            desk.wait_for(hand)

        assert states(world, slot_hands) == ["running", "succeeded", "succeeded"]
        assert find_locked(world.db, [(hand.run.id, hand.run.scheduled_for) for hand in slot_hands]) == {
            first.run.id
        }

    assert desk.wait_for(first).state is RunState.SUCCEEDED
    assert (world.count("slots"), world.count("limit_slots")) == (0, 0)


def test_a_hand_back_leaves_the_runs_of_a_locked_job_and_requeues_the_others(world, desk, slot_hands):
    first = slot_hands[0]
    given = [hand.fenced_run for hand in slot_hands]
    with locked_job(world, first.run.job_id):
        assert held_runs.requeue_unfinished(world.db, desk.identity, given) == (2, {first.run.id})
        assert states(world, slot_hands) == ["running", "queued", "queued"]

    assert held_runs.requeue_unfinished(world.db, desk.identity, given[:1]) == (1, set())


def test_a_locked_outcome_that_is_overtaken_is_fenced_when_its_turn_comes(world, desk, hands):
    first, *others = hands
    with locked(world, first.run.id):
        desk.executors.submit(hands)
        for hand in others:
            desk.wait_for(hand)
    world.db.execute("update runs set fence = fence + 1 where id = %s and state = 'running'", [first.run.id])
    desk.wait_for(first)

    row = world.run(first.run.id)
    assert (row["state"], row["fence"]) in {("running", 2), ("succeeded", 1)}
    assert len(desk.told(first)) == 1


def test_the_outcome_of_a_locked_run_is_forgotten_with_the_lease(world, desk, hands):
    first, *others = hands
    with locked(world, first.run.id):
        desk.executors.submit(hands)
        for hand in others:
            desk.wait_for(hand)
        desk.recorder.forget()
        assert desk.recorder.waiting == 0

    desk.run(lambda ctx: None)
    assert desk.told(first) == []
    assert world.run(first.run.id)["state"] == "running"


def test_a_hand_back_leaves_locked_runs_and_requeues_the_others(world, desk, hands):
    first = hands[0]
    given = [hand.fenced_run for hand in hands]
    with locked(world, first.run.id):
        done = held_runs.requeue_unfinished(world.db, desk.identity, given)

        assert done == (3, {first.run.id})
        assert states(world, hands) == ["running", *["queued"] * 3]
        assert held_runs.requeue_unfinished(world.db, desk.identity, given[:1]) == (0, {first.run.id})

    assert held_runs.requeue_unfinished(world.db, desk.identity, given[:1]) == (1, set())
    assert [len(world.messages(hand.run.id)) for hand in hands] == [1] * 4


def test_only_runs_that_others_have_locked_are_found_and_none_stays_locked(world, hands):
    runs = [(hand.run.id, hand.run.scheduled_for) for hand in hands]
    assert find_locked(world.db, runs) == set()
    with locked(world, runs[0][0], runs[2][0]):
        assert find_locked(world.db, runs) == {runs[0][0], runs[2][0]}
        assert find_locked(world.another(), runs) == {runs[0][0], runs[2][0]}
    assert find_locked(world.db, []) == set()
