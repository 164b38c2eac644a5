"""Runs that hold the slot of their job without a row in `slots`: nothing else of the job runs beside them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.integration.store.test_planned_claims import claim, recurring, verdicts
from tests.integration.store.test_races import Rival
from tests.integration.store.world import outcome

from noonmark.core.ids import uuid7
from noonmark.core.states import RunState
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import acquire_slots

pytestmark = pytest.mark.postgres

SKIP = {"overlap": "skip"}
MINUTE = timedelta(minutes=1)


@pytest.fixture
def held(world):
    """A job, and its run that holds the slot."""
    job_id = recurring(world, due=world.now() - timedelta(seconds=5), policy=SKIP)
    assert claim(world).queued == 1
    (run,) = world.runs_of(job_id)
    assert run["holds_slot"]
    assert world.count("slots") == 0
    return job_id, run["id"]


def finish(world, run_id, state=RunState.SUCCEEDED, **more):
    worker = world.worker()
    (run,) = world.start(worker, [run_id])
    world.record(worker, [outcome(run, state, **more)])


def slots(world):
    return world.db.execute("select key, run_id from slots").fetchall()


def test_an_instant_runs_when_the_run_before_it_has_ended(world, held):
    job_id, run_id = held
    finish(world, run_id)
    world.turn_clock(MINUTE)

    assert claim(world).queued == 1

    assert verdicts(world, job_id) == [("succeeded", None), ("queued", None)]
    assert slots(world) == []


@pytest.mark.parametrize("state", ["queued", "running", "retrying"])
def test_an_instant_is_skipped_while_the_run_before_it_is_unfinished(world, held, state):
    job_id, run_id = held
    if state == "running":
        world.start(world.worker(), [run_id])
    elif state == "retrying":
        finish(world, run_id, RunState.RETRYING, retry_seconds=600.0, error="x")
    for number in range(3):
        world.turn_clock(MINUTE * (number + 1))
        claim(world)

    assert verdicts(world, job_id) == [(state, None), *[("skipped", "overlap")] * 3]
    assert slots(world) == [(job_id, run_id)]


def test_the_slot_of_a_run_that_was_overlapped_is_free_when_it_ends(world, held):
    job_id, run_id = held
    world.turn_clock(MINUTE)
    claim(world)
    finish(world, run_id)
    world.turn_clock(2 * MINUTE)

    assert claim(world).queued == 1

    assert [state for state, _ in verdicts(world, job_id)] == ["succeeded", "skipped", "queued"]
    assert slots(world) == []


def test_a_run_of_another_origin_does_not_get_the_slot(world, held):
    job_id, run_id = held
    other = uuid7()

    assert acquire_slots(world.db, [(other, job_id)]) == set()
    assert slots(world) == [(job_id, run_id)]
    finish(world, run_id)
    assert acquire_slots(world.db, [(other, job_id)]) == {other}


def test_the_run_itself_can_get_its_row(world, held):
    job_id, run_id = held
    assert acquire_slots(world.db, [(run_id, job_id)]) == {run_id}
    finish(world, run_id)
    assert slots(world) == []


def test_a_timer_that_is_replaced_leaves_the_slot_to_the_run(world, held):
    job_id, run_id = held
    world.db.execute(statement("delete_fire_timers"), {"job_id": job_id})
    assert slots(world) == [(job_id, run_id)]


def test_a_timer_that_an_earlier_release_moves_leaves_the_slot_to_the_run(world, held):
    """It takes the slot for its own run first, which it must not get."""
    job_id, run_id = held
    request = {"keys": [job_id], "run_ids": [uuid7()]}
    assert world.db.execute(statement("acquire_slots"), request).fetchall() == []
    world.db.execute("delete from slots")
    world.db.execute("update timers set scheduled_for = fire_at, after_at = null where job_id = %s", [job_id])

    assert slots(world) == [(job_id, run_id)]


def test_a_timer_of_a_run_that_has_ended_leaves_no_slot(world, held):
    job_id, run_id = held
    finish(world, run_id)
    world.db.execute(statement("delete_fire_timers"), {"job_id": job_id})
    assert slots(world) == []


def test_the_outcome_that_a_replaced_timer_waits_for_leaves_no_slot(world, held):
    job_id, run_id = held
    worker = world.worker()
    (run,) = world.start(worker, [run_id])
    with world.db.transaction():
        world.record(worker, [outcome(run)])
        rival = Rival(world, lambda own: own.execute(statement("delete_fire_timers"), {"job_id": job_id}))
        rival.waits()
    rival.ended()
    assert slots(world) == []


def test_an_outcome_after_a_replaced_timer_deletes_the_row(world, held):
    job_id, run_id = held
    worker = world.worker()
    (run,) = world.start(worker, [run_id])
    other = world.another()
    other.autocommit = False
    other.execute(statement("delete_fire_timers"), {"job_id": job_id})

    rival = Rival(world, lambda _: world.record(worker, [outcome(run)]))
    while not world.another().execute("select from pg_locks where not granted").fetchall():
        pass
    other.commit()
    rival.ended()

    assert slots(world) == []


def test_a_run_that_another_session_has_locked_postpones_the_instant(world, held):
    job_id, run_id = held
    other = world.another()
    world.turn_clock(MINUTE)
    with other.transaction():
        other.execute("select from runs where id = %s for update", [run_id])
        result = claim(world)
        assert (result.queued, result.skipped) == (0, {})
        assert verdicts(world, job_id) == [("queued", None)]
    world.turn_clock(MINUTE + timedelta(seconds=1))
    claim(world)

    assert verdicts(world, job_id) == [("queued", None), ("skipped", "overlap")]


def test_a_claim_that_has_the_timer_refuses_the_slot_to_others(world, held):
    job_id, run_id = held
    finish(world, run_id)
    other = world.another()
    with world.db.transaction():
        world.db.execute("select from timers where job_id = %s for update", [job_id])
        assert acquire_slots(other, [(uuid7(), job_id)]) == set()


def test_a_job_that_gets_another_rule_now_gives_no_slot(world, held):
    """With the rule that the edit brings, a claim without a row could come before the commit of the slot."""
    job_id, run_id = held
    finish(world, run_id)
    world.db.execute('update jobs set policy = \'{"overlap": "queue_one"}\' where id = %s', [job_id])
    other, mine = world.another(), uuid7()
    with world.db.transaction():
        world.db.execute('update jobs set policy = \'{"overlap": "skip"}\' where id = %s', [job_id])
        assert acquire_slots(other, [(mine, job_id)]) == set()
    assert acquire_slots(other, [(mine, job_id)]) == {mine}


def test_a_slot_that_another_session_acquires_leaves_the_timer_for_later(world, held):
    job_id, run_id = held
    finish(world, run_id)
    world.turn_clock(MINUTE)
    other, mine = world.another(), uuid7()
    with other.transaction():
        assert acquire_slots(other, [(mine, job_id)]) == {mine}
        assert claim(world).claimed == 0
    claim(world)
    assert verdicts(world, job_id)[1:] == [("skipped", "overlap")]
