"""What a due instant does while the run before it is unfinished: `queue_one` and `cancel_running`."""

from datetime import timedelta

import pytest
from tests.integration.store.room import claim, finish, limit, queued, retry_due, settle, states
from tests.integration.store.test_planned_claims import recurring
from tests.integration.store.world import outcome

from noonmark.core.planning.promotion import limit_gate
from noonmark.core.states import Overlap, RunState
from noonmark.store.limits.wait_queue import reset_waits

QUEUE_ONE = {"overlap": Overlap.QUEUE_ONE.value}
CANCEL_RUNNING = {"overlap": Overlap.CANCEL_RUNNING.value}
QUEUED = ("queued", None)
QUEUED_FOR_SLOT = ("waiting", "overlap")
AT_LIMIT = ("waiting", "limit")
SKIPPED = ("skipped", "overlap")
CANCELLED = ("cancelled", "overlap")
DONE = ("succeeded", None)


def minutely(world, policy):
    """A job whose first instant has just come due."""
    return recurring(world, due=world.now() - timedelta(seconds=1), policy=policy)


def tick(world):
    """The next instant comes due, and is claimed."""
    ahead = world.value("select round(extract(epoch from noonmark_now() - now()) / 60)::int")
    world.turn_clock(timedelta(minutes=ahead + 1))
    claim(world)


def runs_in(world, job_id, state):
    return [run["id"] for run in world.runs_of(job_id) if run["state"] == state]


def test_queue_one_lets_one_wait_and_skips_those_that_come_while_it_does(world):
    job_id = minutely(world, QUEUE_ONE)
    claim(world)
    tick(world)
    tick(world)
    assert states(world, job_id) == [QUEUED, QUEUED_FOR_SLOT, SKIPPED]
    assert settle(world) == 0
    assert [told["reason"] for told in world.told()] == ["overlap"]

    first, second, _ = world.runs_of(job_id)
    assert finish(world, [first["id"]]) is True
    assert settle(world) == 1

    assert states(world, job_id) == [DONE, QUEUED, SKIPPED]
    assert world.column("select run_id from slots") == [second["id"]]
    tick(world)
    assert states(world, job_id)[-1] == QUEUED_FOR_SLOT
    assert world.run(second["id"])["holds_slot"] is True


def test_a_run_of_queue_one_that_is_to_be_retried_keeps_the_slot(world):
    job_id = minutely(world, QUEUE_ONE)
    claim(world)
    tick(world)
    assert finish(world, queued(world), RunState.RETRYING, error="boom") is False
    assert settle(world) == 0

    retry_due(world)

    assert states(world, job_id) == [QUEUED, QUEUED_FOR_SLOT]


def test_who_waits_goes_before_an_instant_that_finds_the_slot_free(world):
    job_id = minutely(world, QUEUE_ONE)
    claim(world)
    tick(world)
    finish(world, queued(world))

    tick(world)  # before any promotion

    assert states(world, job_id) == [DONE, QUEUED_FOR_SLOT, QUEUED_FOR_SLOT]
    assert settle(world) == 1
    assert states(world, job_id) == [DONE, QUEUED, QUEUED_FOR_SLOT]


def test_cancel_running_asks_the_run_to_stop_and_the_newest_instant_runs_after_it(world):
    job_id = minutely(world, CANCEL_RUNNING)
    claim(world)
    worker = world.worker()
    (run,) = world.start(worker, queued(world))

    tick(world)
    assert states(world, job_id) == [("cancelling", "overlap"), QUEUED_FOR_SLOT]
    tick(world)
    assert states(world, job_id) == [("cancelling", "overlap"), SKIPPED, QUEUED_FOR_SLOT]
    assert settle(world) == 0

    assert world.record(worker, [outcome(run, RunState.CANCELLED)]).freed
    assert settle(world) == 1
    assert states(world, job_id) == [CANCELLED, SKIPPED, QUEUED]
    assert world.count("slots") == 1


@pytest.mark.parametrize("state", ["queued", "retrying"])
def test_cancel_running_ends_what_no_worker_has_at_once(world, state):
    job_id = minutely(world, CANCEL_RUNNING)
    claim(world)
    if state == "retrying":
        finish(world, queued(world), RunState.RETRYING, error="boom")

    tick(world)
    assert settle(world) == 1

    assert states(world, job_id) == [CANCELLED, QUEUED]
    assert [told["state"] for told in world.told()][-1] == "cancelled"
    assert len(queued(world)) == 1
    retry_due(world)  # the retry of what was cancelled finds nothing to queue
    assert states(world, job_id) == [CANCELLED, QUEUED]


def test_cancel_running_ends_a_run_that_holds_the_slot_and_waits_for_a_limit(world):
    limit(world, "api", max_running=1)
    other = world.another()
    other.execute("insert into limit_slots values (%s, 0, noonmark_uuid7(), 'tests', 'api')", [key_of("api")])
    job_id = minutely(world, {**CANCEL_RUNNING, "limits": [["api", None]]})
    claim(world)
    assert settle(world) == 0
    assert states(world, job_id) == [AT_LIMIT]
    assert world.runs_of(job_id)[0]["holds_slot"] is True

    tick(world)
    assert settle(world) == 0

    assert states(world, job_id) == [CANCELLED, AT_LIMIT]
    assert world.runs_of(job_id)[1]["holds_slot"] is True
    assert world.count("slots") == 1


def key_of(name):
    return limit_gate("tests", name, None).key


def test_the_slot_is_taken_while_a_limit_holds_the_run_up(world):
    limit(world, "api", max_running=1)
    job_id = minutely(world, {**QUEUE_ONE, "limits": [["api", None]]})
    claim(world)
    settle(world)
    tick(world)
    assert states(world, job_id) == [QUEUED, QUEUED_FOR_SLOT]
    finish(world, runs_in(world, job_id, "queued"))
    world.db.execute(
        "insert into limit_slots values (%s, 0, noonmark_uuid7(), 'tests', 'api')", [key_of("api")]
    )

    assert settle(world) == 0

    second = world.runs_of(job_id)[1]
    assert (second["state"], second["reason"], second["holds_slot"]) == ("waiting", "limit", True)
    tick(world)
    assert states(world, job_id)[2] == QUEUED_FOR_SLOT


def test_a_policy_that_is_edited_in_between_does_no_harm(world):
    job_id = minutely(world, QUEUE_ONE)
    claim(world)
    tick(world)
    world.db.execute('update jobs set policy = \'{"overlap": "allow"}\' where id = %s', [job_id])
    reset_waits(world.db, job_id)
    assert settle(world) == 1
    assert states(world, job_id) == [QUEUED, QUEUED]

    world.db.execute('update jobs set policy = \'{"overlap": "cancel_running"}\' where id = %s', [job_id])
    finish(world, queued(world))
    assert world.count("slots") == 0
    tick(world)
    assert states(world, job_id)[-1] == QUEUED


@pytest.mark.parametrize("rule", ["skip", "cancel_running"])
def test_who_lined_up_before_an_edit_does_not_run_beside_the_run_under_way(world, rule):
    job_id = minutely(world, QUEUE_ONE)
    claim(world)
    tick(world)
    world.db.execute(
        "update jobs set policy = jsonb_build_object('overlap', %s::text) where id = %s", [rule, job_id]
    )
    reset_waits(world.db, job_id)

    assert settle(world) == 0
    assert states(world, job_id) == [QUEUED, QUEUED_FOR_SLOT]
    finish(world, queued(world))
    assert settle(world) == 1
    assert states(world, job_id) == [DONE, QUEUED]


def test_what_is_caught_up_goes_one_by_one_and_cancels_nothing(world):
    policy = {**CANCEL_RUNNING, "misfire": {"policy": "fire_all", "grace_seconds": 1}}
    job_id = recurring(world, due=world.now() - timedelta(minutes=5), policy=policy)

    claim(world)
    claim(world)

    assert states(world, job_id) == [QUEUED]
