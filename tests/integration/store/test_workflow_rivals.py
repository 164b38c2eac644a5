"""Rivals at one workflow: two triggers, people who pause, cancel, edit and redrive, and workers, all at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.integration.store.room import retry_due, settle
from tests.integration.store.test_races import Rival
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome

from noonmark.core.states import Lane, ResumeChoice, RunState
from noonmark.schemas.events.submissions import CancelJob, JobRef, PauseJob, ResumeJob, UpdateJob
from noonmark.store.namespaces import batches, pauses
from noonmark.store.runs import cancel, finish
from noonmark.store.runs.cancel import RunKey
from noonmark.store.workflows import holds
from noonmark.store.workflows.advance import WorkflowPass

DIAMOND: dict[str, Any] = {
    "a": {},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["a"]},
    "d": {"depends_on": ["b", "c"]},
}
INSTANCES = 1000


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def open_many(flows: Flows, tasks: dict[str, Any], count: int, **document: Any) -> list[UUID]:
    """Open so many runs of one workflow."""
    world = flows.world
    job_id = flows.create(tasks, name="many", **document)
    flows.claim()
    first = flows.run_of(job_id)
    columns = ", ".join(
        world.column(
            "select column_name::text from information_schema.columns where table_name = 'runs'"
            " and column_name not in ('id', 'request_id')"
        )
    )
    world.db.execute(
        f"insert into runs (id, request_id, {columns}) select gen_random_uuid(), n::text, {columns}"
        " from runs, generate_series(2, %s) as n where id = %s",
        [count, first],
    )
    world.db.execute("delete from outbox where topic is null")
    world.db.execute(
        "insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)"
        " select noonmark_now(), scheduled_for, job_id, id, job_version, ('x' || right(id::text, 1))::bit(4)::int %% %s,"
        " lane, 5, namespace, pool from runs where job_id = %s",
        [SHARDS, job_id],
    )
    flows.advance()
    opened = world.column(
        "select id from runs where job_id = %s and origin <> 'task' and state = 'running'", job_id
    )
    assert len(opened) == count
    return opened


def task_runs(world: World, no: int) -> list[UUID]:
    return world.column(
        "select id from runs where origin = 'task' and split_part(request_id, '/', 2) = %s order by id",
        str(no),
    )


def recorded(world: World, ids: Sequence[UUID]) -> None:
    worker = world.worker()
    world.record(worker, [outcome(run) for run in world.start(worker, ids)])


@pytest.mark.slow
def test_two_parents_that_end_in_overlapping_transactions_start_their_child_once_each_time(
    flows: Flows,
) -> None:
    world = flows.world
    open_many(flows, DIAMOND, INSTANCES)
    recorded(world, task_runs(world, 0))
    flows.advance()
    sessions = [world.another() for _ in range(2)]
    with ExitStack() as held:
        for session, no in zip(sessions, (1, 2), strict=True):
            worker = world.worker()
            runs = world.start(worker, task_runs(world, no))
            assert len(runs) == INSTANCES
            held.enter_context(session.transaction())
            finish.record(session, worker, TOPICS, [outcome(run) for run in runs], [], shards=SHARDS)
        assert flows.advance() == [], "nothing is committed yet"
    triggers = [(WorkflowPass(TOPICS, shards=SHARDS), world.another()) for _ in range(2)]
    failed = together([lambda one=one: passes(*one, rounds=20) for one in triggers])
    assert failed == []
    flows.advance()
    assert world.count("runs", "origin = 'task'") == 4 * INSTANCES
    joins = task_runs(world, 3)
    assert len(joins) == INSTANCES
    assert (
        world.value(
            "select count(distinct split_part(request_id, '/', 1)) from runs where id = any (%s)", joins
        )
        == INSTANCES
    )
    recorded(world, joins)
    flows.advance()
    assert world.count("runs", "origin <> 'task' and state = 'succeeded'") == INSTANCES
    assert world.count("timers", "kind = 5") == 0
    assert_consistent(world)


def passes(one: WorkflowPass, connection: psycopg.Connection, *, rounds: int, limit: int = 50) -> None:
    for _ in range(rounds):
        for lane in Lane:
            one.run(connection, lane, EVERY_SHARD, limit, arrays=True)


def together(work: Sequence[Callable[[], None]]) -> list[BaseException]:
    """Do all at the same time; return what failed."""
    barrier, failed = threading.Barrier(len(work)), []

    def do(one: Callable[[], None]) -> None:
        barrier.wait()
        try:
            one()
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    threads = [threading.Thread(target=do, args=[one]) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    return failed


# a pause that is committed while a pass is under way, and the other way round


def test_what_a_pass_parks_while_its_namespace_is_resumed_is_not_parked_for_ever(flows: Flows) -> None:
    """The resume looks for parked timers, and the pass has not committed what it parks."""
    world = flows.world
    run_id = flows.open(DIAMOND)
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "a")])
    pause_namespace(world.db)
    world.db.execute("update jobs set state = 'completed', paused_by = null, paused_at = null")
    world.record(worker, [outcome(run)])
    trigger = world.another()
    trigger.execute("set idle_in_transaction_session_timeout = 0")
    with trigger.transaction():
        for lane in Lane:
            flows.passes.run(trigger, lane, EVERY_SHARD, 100, arrays=True)
        rival = Rival(world, resume_namespace)
        rival.waits()
    rival.ended()
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued", "c": "queued"}
    assert_consistent(world)


def test_what_ends_while_a_held_run_is_released_is_not_parked_for_ever(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(DIAMOND)
    holds.hold(world.db, [run_id])
    flows.end(run_id, ["a"], advance=False)
    trigger = world.another()
    trigger.execute("set idle_in_transaction_session_timeout = 0")
    with trigger.transaction():
        for lane in Lane:
            flows.passes.run(trigger, lane, EVERY_SHARD, 100, arrays=True)
        rival = Rival(world, lambda connection: holds.release(connection, [run_id]))
        rival.waits()
    rival.ended()
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued", "c": "queued"}


def test_a_pass_that_stops_a_workflow_waits_for_no_timer(flows: Flows) -> None:
    """It holds timers: whoever holds those of the tasks may wait for them."""
    world = flows.world
    run_id = flows.open(DIAMOND)
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "a")])
    world.record(worker, [outcome(run, RunState.RETRYING, retry_seconds=50)])
    flow = world.run(run_id)
    cancel.cancel(world.db, TOPICS, [RunKey(run_id, flow["scheduled_for"])], reason="x", shards=SHARDS)
    claim = world.another()
    with claim.transaction():
        assert len(claim.execute("select from timers where kind = 2 for update").fetchall()) == 1
        flows.advance()
        assert world.run(run_id)["state"] == "cancelled"
    assert_consistent(world)


def test_a_run_that_two_triggers_open_is_opened_by_one_and_no_error_of_the_other(flows: Flows) -> None:
    """It was paused when it was handed over, so there are two timers that open it."""
    world = flows.world
    job_id = flows.create(DIAMOND)
    flows.claim()
    flows.hand_over()
    ref = JobRef(job_id, "tests", None)
    flows.submit(PauseJob(ref, None))
    flows.submit(ResumeJob(ref))
    flows.hand_over()
    assert world.count("timers", "kind = 5") == 2
    first = world.another()
    first.execute("set idle_in_transaction_session_timeout = 0")
    done = []

    def second(connection: psycopg.Connection) -> None:
        one = WorkflowPass(TOPICS, shards=SHARDS)
        done.extend(one.run(connection, lane, EVERY_SHARD, 100, arrays=True) for lane in Lane)

    with first.transaction():
        for lane in Lane:
            flows.passes.run(first, lane, EVERY_SHARD, 1, arrays=True)
        rival = Rival(world, second)
        rival.waits()
    rival.ended()
    assert [one.broken for one in done] == [[]] * 3
    run_id = flows.run_of(job_id)
    assert flows.tasks(run_id) == {"a": "queued"}
    finished(flows, run_id)
    flows.nothing_is_left(run_id)


def test_a_job_that_is_cancelled_while_it_is_paused_lets_its_open_runs_finish(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({**DIAMOND, "x": {}})
    ref = JobRef(world.run(run_id)["job_id"], "tests", None)
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "a")])
    flows.submit(PauseJob(ref, None))
    world.record(worker, [outcome(run)])
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "x": "waiting"}
    flows.submit(CancelJob(ref, None, stops_running=False))
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "x": "queued", "b": "queued", "c": "queued"}
    for keys in (["b", "c", "x"], ["d"]):
        flows.end(run_id, keys)
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


def test_an_edit_that_completes_a_paused_job_lets_its_open_runs_finish(flows: Flows) -> None:
    world = flows.world
    tasks = {**DIAMOND, "x": {}}
    job_id = flows.create(tasks, schedule={"every": "PT1H", "max_runs": 2})
    world.db.execute("update timers set fire_at = noonmark_now(), scheduled_for = noonmark_now()")
    flows.claim()
    flows.hand_over()
    flows.advance()
    run_id, ref = flows.run_of(job_id), JobRef(job_id, "tests", None)
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "a")])
    flows.submit(PauseJob(ref, None))
    world.record(worker, [outcome(run)])
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "x": "waiting"}
    less = flows.document(tasks, name="flow", schedule={"every": "PT1H", "max_runs": 1})
    flows.submit(UpdateJob(ref, less))
    assert world.column("select state from jobs") == ["completed"]
    finished(flows, run_id)
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


def test_a_held_run_that_is_cancelled_when_only_its_final_tasks_are_left_goes_on(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({"a": {}}, **{"finally": {"t1": {}, "t2": {"depends_on": ["t1"]}}})
    flows.end(run_id, ["a"])
    holds.hold(world.db, [run_id])
    flows.end(run_id, ["t1"])
    assert "t2" not in flows.tasks(run_id)
    flow = world.run(run_id)
    cancel.cancel(world.db, TOPICS, [RunKey(run_id, flow["scheduled_for"])], reason="x", shards=SHARDS)
    finished(flows, run_id)
    assert world.run(run_id)["state"] == "cancelled"
    flows.nothing_is_left(run_id)


@pytest.mark.parametrize("paused", [False, True])
def test_a_task_that_waits_for_its_retry_is_tried_again_after_its_job_was_cancelled(
    flows: Flows, *, paused: bool
) -> None:
    world = flows.world
    run_id = flows.open(DIAMOND)
    ref = JobRef(world.run(run_id)["job_id"], "tests", None)
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "a")])
    world.record(worker, [outcome(run, RunState.RETRYING, retry_seconds=5)])
    if paused:
        flows.submit(PauseJob(ref, None))
    flows.submit(CancelJob(ref, None, stops_running=False))
    world.turn_clock(timedelta(seconds=6))
    retry_due(world)
    finished(flows, run_id)
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


@pytest.mark.parametrize("stops", [False, True])
def test_a_cancelled_job_in_a_paused_namespace_goes_on_with_its_resume(flows: Flows, *, stops: bool) -> None:
    world = flows.world
    run_id = flows.open({**DIAMOND, "x": {}}, **{"finally": {"tidy": {}}})
    ref = JobRef(world.run(run_id)["job_id"], "tests", None)
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "a")])
    pause_namespace(world.db)
    flows.submit(CancelJob(ref, None, stops_running=stops))
    world.record(worker, [outcome(run)])
    flows.advance()
    assert "queued" not in flows.tasks(run_id).values(), "nothing starts in a paused namespace"
    resume_namespace(world.db)
    finished(flows, run_id)
    assert world.run(run_id)["state"] == ("cancelled" if stops else "succeeded")
    flows.nothing_is_left(run_id)


def test_a_namespace_that_is_paused_after_the_job_was_cancelled_lets_it_go_on_with_its_resume(
    flows: Flows,
) -> None:
    world = flows.world
    run_id = flows.open(DIAMOND)
    flows.submit(CancelJob(JobRef(world.run(run_id)["job_id"], "tests", None), None, stops_running=False))
    flows.end(run_id, ["a"], advance=False)
    pause_namespace(world.db)
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded"}
    resume_namespace(world.db)
    finished(flows, run_id)
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


def pause_namespace(connection: psycopg.Connection) -> None:
    pauses.mark_paused(connection, "tests", None)
    for ids in batches.batches(connection, batches.TO_PAUSE, "tests"):
        pauses.pause_some(connection, "tests", ids)


def resume_namespace(connection: psycopg.Connection) -> None:
    pauses.mark_resumed(connection, "tests")
    for ids in batches.batches(connection, batches.TO_RESUME, "tests"):
        pauses.resume_some(connection, "tests", ids, ResumeChoice.LATEST)


def finished(flows: Flows, run_id: UUID) -> None:
    """Let workers and triggers do all that is to be done for a workflow run."""
    for _ in range(20):
        settle(flows.world)
        flows.hand_over()
        flows.advance()
        queued = [key for key, state in flows.tasks(run_id).items() if state == "queued"]
        if not queued:
            return
        flows.end(run_id, queued)
    raise AssertionError("it does not come to an end")
