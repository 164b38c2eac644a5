"""What else counts, lists or stops runs: right for workflow runs, and for those of their tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.room import limit, retry_due, settle
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import SHARDS, TOPICS, World, outcome
from tests.integration.verify.ledgers import LATER, check

from noonmark.core.ids import shard_of
from noonmark.core.states import Lane, ResumeChoice, RunState
from noonmark.schemas.events.submissions import CancelJob, JobRef, PauseJob, ResumeJob
from noonmark.store.alerts import queries
from noonmark.store.backfills.requests import read_ledger
from noonmark.store.database.statements import statement
from noonmark.store.jobs import self_pauses
from noonmark.store.namespaces import batches, pauses
from noonmark.store.runs import leases, stuck_runs, worker_lease

TWO = {"a": {}, "b": {"depends_on": ["a"]}}
HOURLY: dict[str, Any] = {"schedule": {"every": "PT1H"}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def due_now(flows: Flows) -> None:
    """Let the next instant of the only recurring job be due, and claim it."""
    flows.world.db.execute(
        "update timers set fire_at = noonmark_now(), scheduled_for = noonmark_now() where kind in (1, 3)"
    )
    flows.claim()


def opened(flows: Flows, tasks: dict[str, Any], **document: Any) -> tuple[UUID, UUID]:
    """A recurring workflow whose first run is open: job and run."""
    job_id = flows.create(tasks, **HOURLY, **document)
    due_now(flows)
    flows.hand_over()
    flows.advance()
    return job_id, flows.run_of(job_id)


def job_of(flows: Flows, run_id: UUID) -> UUID:
    return flows.world.run(run_id)["job_id"]


# cancels and pauses of the job


def test_a_cancel_of_the_job_lets_an_open_workflow_finish(flows: Flows) -> None:
    run_id = flows.open({**TWO, "c": {}})
    flows.submit(CancelJob(JobRef(job_of(flows, run_id), "tests", None), None, stops_running=False))
    flows.advance()
    assert flows.world.run(run_id)["state"] == "running"
    assert flows.tasks(run_id) == {"a": "queued", "c": "queued"}
    flows.end(run_id, ["a", "c"])
    flows.end(run_id, ["b"])
    assert flows.world.run(run_id)["state"] == "succeeded"


def test_a_cancel_of_the_job_that_stops_runs_stops_an_open_workflow(flows: Flows) -> None:
    run_id = flows.open(TWO, **{"finally": {"tidy": {}}})
    flows.submit(CancelJob(JobRef(job_of(flows, run_id), "tests", None), "enough"))
    (timer,) = flows.world.rows("select kind, shard, run_id from timers")
    assert timer == {"kind": 5, "shard": shard_of(run_id, SHARDS), "run_id": run_id}
    assert flows.tasks(run_id) == {"a": "queued"}, "the workflow run stops them itself"
    flows.advance()
    assert flows.tasks(run_id) == {"a": "cancelled", "b": "skipped cancelled", "tidy": "queued"}
    flows.end(run_id, ["tidy"])
    assert flows.world.run(run_id)["state"] == "cancelled"
    flows.nothing_is_left(run_id)


def test_a_pause_takes_the_messages_of_tasks_out_of_their_own_shards(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({f"t{n}": {} for n in range(3)})
    job_id = job_of(flows, run_id)
    flows.submit(PauseJob(JobRef(job_id, "tests", None), None))
    assert set(flows.tasks(run_id).values()) == {"waiting"}
    assert world.count("outbox", "run_id is not null or run_ids is not null") <= 1, "a row of several stays"
    flows.submit(ResumeJob(JobRef(job_id, "tests", None)))
    assert set(flows.tasks(run_id).values()) == {"queued"}
    flows.end(run_id, ["t0", "t1", "t2"])
    assert world.run(run_id)["state"] == "succeeded"


def test_the_resume_of_a_namespace_finds_a_workflow_whose_schedule_is_over(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(TWO)
    worker = world.worker()
    started = world.start(worker, [flows.run_id(run_id, "a")])
    pauses.mark_paused(world.db, "tests", None)
    for ids in batches.batches(world.db, batches.TO_PAUSE, "tests"):
        pauses.pause_some(world.db, "tests", ids)
    world.record(worker, [outcome(started[0])])
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded"}
    world.db.execute("update jobs set state = 'completed', paused_by = null, paused_at = null")

    pauses.mark_resumed(world.db, "tests")
    for ids in batches.batches(world.db, batches.TO_RESUME, "tests"):
        pauses.resume_some(world.db, "tests", ids, ResumeChoice.LATEST)
    flows.advance()

    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued"}


# slots, limits and rules of the job


@pytest.mark.parametrize("overlap", ["queue_one", "cancel_running", "skip"])
def test_waiting_tasks_are_not_in_the_queue_for_the_slot_of_their_job(flows: Flows, overlap: str) -> None:
    world = flows.world
    world.db.execute("insert into namespaces (name, max_in_flight) values ('tests', 1)")
    job_id, first = opened(flows, {"a": {}, "b": {}}, overlap=overlap)
    settle(world)
    assert sorted(flows.tasks(first).values()) == ["queued", "waiting"]
    due_now(flows)
    second = world.run(flows.run_of(job_id))
    if overlap == "skip":
        assert (second["state"], second["reason"]) == ("skipped", "overlap")
        assert world.run(first)["state"] == "running"
    else:
        assert second["id"] != first
        assert (second["state"], second["reason"]) == ("waiting", "overlap")
    assert not [state for state in flows.tasks(first).values() if state.startswith("skipped")]
    if overlap == "cancel_running":
        assert world.run(first)["state"] == "cancelling"
        flows.advance()
        assert world.run(first)["state"] == "cancelled"
        settle(world)
        flows.hand_over()
        flows.advance()
        assert world.run(second["id"])["state"] == "running"


def test_limits_and_the_slot_of_the_job_are_taken_once_for_all_its_tasks(flows: Flows) -> None:
    world = flows.world
    limit(world, "api", max_running=1)
    job_id = flows.create({"a": {}, "b": {}}, **HOURLY, overlap="queue_one")
    world.db.execute("""update jobs set policy = policy || '{"limits": [["api", null]]}'""")
    due_now(flows)
    settle(world)
    flows.hand_over()
    flows.advance()
    run_id = flows.run_of(job_id)
    assert (world.count("slots"), world.count("limit_slots")) == (1, 1)
    assert set(flows.tasks(run_id).values()) == {"queued"}
    flows.submit(PauseJob(JobRef(job_id, "tests", None), None))
    flows.submit(ResumeJob(JobRef(job_id, "tests", None)))
    settle(world)
    assert set(flows.tasks(run_id).values()) == {"queued"}
    flows.end(run_id, ["a", "b"])
    assert world.run(run_id)["state"] == "succeeded"
    assert (world.count("slots"), world.count("limit_slots")) == (0, 0)


def test_a_job_is_paused_after_failures_of_its_workflow_runs_alone(flows: Flows) -> None:
    world = flows.world
    job_id, run_id = opened(flows, {"a": {"may_fail": True}, "b": {"may_fail": True}}, pause_after_failures=2)
    flows.end(run_id, ["a", "b"], RunState.DEAD)
    assert world.run(run_id)["state"] == "succeeded"
    assert self_pauses.failing(world.db, [job_id]) == []
    assert world.count("dead_letters") == 0


def test_a_backfill_sees_the_workflow_run_of_an_instant_and_not_its_tasks(flows: Flows) -> None:
    world = flows.world
    job_id, run_id = opened(flows, {"a": {"may_fail": True}})
    flows.end(run_id, ["a"], RunState.DEAD)
    at = world.run(run_id)["scheduled_for"]
    assert read_ledger(world.db, job_id, [at]) == {at: "succeeded"}


# attempts of tasks that end without their worker


def test_a_lost_task_has_the_delivery_of_the_task(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({"once": {"delivery": "at_most_once", "may_fail": True}, "again": {}})
    worker = world.worker()
    world.start(worker, [flows.run_id(run_id, "once"), flows.run_id(run_id, "again")])
    worker_lease.lapse(world.db, worker)
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
    assert flows.tasks(run_id) == {"once": "unknown", "again": "queued"}
    flows.advance()
    assert world.run(run_id)["state"] == "running"
    flows.end(run_id, ["again"])
    assert world.run(run_id)["state"] == "succeeded"


def test_a_task_that_timed_out_is_retried_by_its_own_policy(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({"a": {"max_retries": 1, "retry_delay_seconds": 1}, "b": {"max_retries": 0}})
    worker = world.worker()
    ids = [flows.run_id(run_id, key) for key in ("a", "b")]
    world.start(worker, ids)
    assert set(stuck_runs.time_out(world.db, worker, TOPICS, ids, shards=SHARDS)) == set(ids)
    assert flows.tasks(run_id) == {"a": "retrying", "b": "dead"}
    assert world.count("dead_letters") == 0
    assert world.count("timers", "kind = 5") == 1, "one has ended, the other will be tried again"
    retry_due(world)
    assert flows.tasks(run_id)["a"] == "queued"


# what watches


def test_tasks_are_never_late_by_the_instant_of_their_workflow(flows: Flows) -> None:
    world = flows.world
    flows.open(TWO)
    late = flows.run_of(flows.create({"a": {}}, name="not-opened"))
    before = UUID(int=0)
    world.db.execute(
        "insert into observer_state (heard_at, walked_to, ruled_to, died_until) select now(), %s, %s, now()",
        [before, before],
    )
    world.turn_clock(timedelta(hours=2))
    queries.late_groups(world.db, late_after=60)
    assert world.column("select run_id from late_runs") == [late]


def test_timers_of_workflows_that_nobody_takes_are_seen(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(TWO)
    flows.end(run_id, ["a"], advance=False)
    heads = world.db.execute(statement("read_due_heads")).fetchall()
    due = world.db.execute(statement("measure_due"), {"shards": SHARDS, "cap": 1000}).fetchall()
    (head,) = heads
    assert head[1:3] == (Lane.NORMAL, 5)
    assert {lane: count for lane, count, *_ in due if count} == {Lane.NORMAL: 1}
    ages = {lane: (oldest, facts) for lane, _, oldest, facts in due}
    assert ages[Lane.NORMAL][0] == ages[Lane.NORMAL][1] > 0
    assert ages[Lane.HIGH] == (0, 0)


def test_messages_are_searched_for_as_far_back_as_open_workflows(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(TWO)
    world.turn_clock(timedelta(days=9))
    world.db.execute("insert into topic_progress values ('t', noonmark_now(), noonmark_now())")
    ((_, _, since),) = world.db.execute(statement("read_resend_bounds")).fetchall()
    assert since == world.run(run_id)["scheduled_for"]


# the check of the ledger


def test_a_ledger_with_workflow_runs_is_clean(flows: Flows) -> None:
    world = flows.world
    done = flows.open({**TWO, "c": {"may_fail": True}, "d": {"depends_on": ["c"]}})
    flows.end(done, ["a"])
    flows.end(done, ["c"], RunState.DEAD)
    flows.end(done, ["b"])
    still_open = flows.open({"a": {}}, name="other")
    world.start(world.worker(lease_seconds=3600), [flows.run_id(still_open, "a")])
    world.db.execute("delete from outbox")
    world.turn_clock(LATER)
    assert set(check(world).counts) == set()


@pytest.mark.parametrize("parked", [False, True], ids=["is gone", "waits for a resume"])
def test_a_workflow_run_that_nothing_continues_is_found(flows: Flows, *, parked: bool) -> None:
    world = flows.world
    run_id = flows.open(TWO)
    flows.end(run_id, ["a"], advance=False)
    world.db.execute("delete from outbox")
    world.db.execute("update timers set fire_at = '9999-12-31'" if parked else "delete from timers")
    world.turn_clock(LATER)
    assert set(check(world).counts) == (set() if parked else {"V2", "W6"})
