"""Cases that broke other schedulers, as workflows of this one: every end of a task is an end, and every run has a verdict."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.room import retry_due, settle
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome

from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.schemas.events.submissions import CompleteRun
from noonmark.store.claims import claims
from noonmark.store.outcomes.callback_rows import Expected, NewCallback, open_callbacks
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import callbacks, cancel, leases, starts
from noonmark.store.runs.cancel import RunKey

CHAIN: dict[str, Any] = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def stop(flows: Flows, *run_ids: UUID) -> cancel.Cancels:
    keys = [RunKey(run_id, flows.world.run(run_id)["scheduled_for"]) for run_id in run_ids]
    return cancel.cancel(flows.world.db, TOPICS, keys, reason="by me", shards=SHARDS)


# a join after a branch, and a slow parent


@pytest.mark.parametrize("order", ["branch first", "dummy first"])
def test_a_join_of_branches_of_which_none_was_taken_is_skipped_and_not_run(flows: Flows, order: str) -> None:
    run_id = flows.open(
        {
            "branch1": {},
            "branch2": {"depends_on": [{"task": "branch1", "if": {"eq": True}}]},
            "dummy": {"depends_on": [{"task": "branch1", "if": {"eq": False}}]},
            "problematic": {
                "depends_on": [{"task": "branch1", "if": {"eq": False}}, "dummy"],
                "rule": "none_failed",
            },
        }
    )
    flows.end(run_id, ["branch1"], result="true")
    assert flows.tasks(run_id) == {
        "branch1": "succeeded",
        "branch2": "queued",
        "dummy": "skipped upstream_skipped",
        "problematic": "skipped upstream_skipped",
    }
    flows.end(run_id, ["branch2"])
    assert flows.world.run(run_id)["state"] == "succeeded", order
    flows.nothing_is_left(run_id)


@pytest.mark.parametrize("rule", ["all_succeeded", "none_failed", "all_done", "one_succeeded", "one_failed"])
@pytest.mark.parametrize("states", [("succeeded", "dead"), ("succeeded", "succeeded"), ("dead", "dead")])
def test_a_slow_parent_and_a_fast_one_give_the_same_verdicts_in_both_orders(
    flows: Flows, rule: str, states: tuple[str, str]
) -> None:
    seen = []
    ends = dict(zip("pq", map(RunState, states), strict=True))
    for n, order in enumerate(["pq", "qp"]):
        run_id = flows.open(
            {"p": {}, "q": {}, "m": {"depends_on": ["p", "q"], "rule": rule}, "z": {"depends_on": ["m"]}},
            name=f"flow {n}",
        )
        for key in order:
            flows.end(run_id, [key], ends[key])
            flows.world.turn_clock(timedelta(seconds=2))
        for key in ("m", "z"):
            if flows.tasks(run_id).get(key) == "queued":
                flows.end(run_id, [key])
        seen.append((flows.tasks(run_id), flows.world.run(run_id)["state"]))
        flows.nothing_is_left(run_id)
    assert seen[0] == seen[1]


def test_an_empty_list_is_a_result_and_what_depends_on_it_runs(flows: Flows) -> None:
    run_id = flows.open(
        {
            "a": {},
            "b": {"depends_on": [{"task": "a", "if": {"eq": []}}]},
            "c": {"depends_on": ["b"]},
            "d": {"depends_on": ["c"], "rule": "all_done", "when": {"result": "a", "exists": True}},
        },
        result={"result": "a"},
    )
    flows.end(run_id, ["a"], result="[]")
    for key in ("b", "c", "d"):
        flows.end(run_id, [key])
    assert (flows.world.run(run_id)["state"], flows.world.run(run_id)["result"]) == ("succeeded", [])
    flows.nothing_is_left(run_id)


# ends that are no outcome


def after(flows: Flows, run_id: UUID, reason: str | None = None) -> None:
    """The task b of a chain has failed in some way: c and the run have their verdicts at once."""
    assert flows.tasks(run_id)["c"] == "skipped upstream_failed"
    assert flows.tasks(run_id)["mend"] == "queued"
    flows.end(run_id, ["mend"])
    row = flows.world.run(run_id)
    assert (row["state"], row["reason"]) == ("dead", "task_failed")
    if reason is not None:
        assert reason in row["error"], row["error"]
    flows.nothing_is_left(run_id)


MENDED: dict[str, Any] = {**CHAIN, "mend": {"depends_on": ["b"], "rule": "one_failed"}}


def test_a_task_whose_workers_are_lost_until_its_budget_is_used_up_is_decided(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({**MENDED, "b": {"depends_on": ["a"], "delivery": "at_least_once"}})
    flows.end(run_id, ["a"])
    for _ in range(leases.LOSS_BUDGET + 2):
        if flows.tasks(run_id)["b"] not in ("queued", "retrying"):
            break
        retry_due(world)
        world.start(world.worker(), [flows.run_id(run_id, "b")])
        world.db.execute("update workers set lapsed_at = noonmark_now(), epoch = epoch + 1")
        leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
        flows.advance()
        assert_consistent(world)
    assert flows.tasks(run_id)["b"] == "dead"
    assert world.run(flows.run_id(run_id, "b"))["losses"] >= leases.LOSS_BUDGET
    after(flows, run_id)


def test_a_task_that_may_run_once_and_whose_worker_is_lost_is_a_failure(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({**MENDED, "b": {"depends_on": ["a"], "delivery": "at_most_once"}})
    flows.end(run_id, ["a"])
    world.start(world.worker(), [flows.run_id(run_id, "b")])
    world.db.execute("update workers set lapsed_at = noonmark_now(), epoch = epoch + 1")
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
    flows.advance()
    assert flows.tasks(run_id)["b"] == "unknown"
    after(flows, run_id)


def test_a_task_that_is_too_late_is_decided_when_a_worker_comes_to_it(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({**MENDED, "b": {"depends_on": ["a"], "start_deadline_seconds": 5}})
    flows.end(run_id, ["a"])
    world.turn_clock(timedelta(seconds=6))
    late = [world.ticket(flows.run_id(run_id, "b"))]
    assert starts.start(world.db, world.worker(), "default", late) == ([], late)
    starts.expire(world.db, TOPICS, late, shards=SHARDS)
    flows.advance()
    assert flows.tasks(run_id)["b"] == "skipped start_deadline"
    after(flows, run_id)


def test_a_task_that_is_too_late_while_it_waits_for_a_cap_is_decided(flows: Flows) -> None:
    world = flows.world
    world.db.execute("insert into namespaces (name, max_in_flight) values ('tests', 1)")
    run_id = flows.open({**MENDED, "b": {"depends_on": ["a"], "start_deadline_seconds": 5}})
    settle(world)
    flows.end(run_id, ["a"])
    world.turn_clock(timedelta(seconds=6))
    settle(world)
    flows.advance()
    assert flows.tasks(run_id)["b"] == "skipped start_deadline"
    settle(world)
    after(flows, run_id)


@pytest.mark.parametrize("how", ["queued", "running", "retrying"])
def test_a_task_that_is_cancelled_alone_is_a_failure_of_the_run(flows: Flows, how: str) -> None:
    world = flows.world
    run_id = flows.open(MENDED)
    flows.end(run_id, ["a"])
    worker = world.worker()
    b = flows.run_id(run_id, "b")
    if how != "queued":
        (run,) = world.start(worker, [b])
        if how == "retrying":
            world.record(worker, [outcome(run, RunState.RETRYING, retry_seconds=50)])
    stop(flows, b)
    if how == "running":
        world.record(worker, [outcome(run, RunState.CANCELLED, attempt_outcome=AttemptOutcome.CANCELLED)])
    flows.advance()
    assert flows.tasks(run_id)["b"] == "cancelled"
    after(flows, run_id, "b failed")


@pytest.mark.parametrize("how", ["too late", "cancelled", "failed"])
def test_a_task_whose_target_reports_no_success_is_decided(flows: Flows, how: str) -> None:
    world = flows.world
    run_id = flows.open(MENDED)
    flows.end(run_id, ["a"])
    worker = world.worker()
    (run,) = world.start(worker, [flows.run_id(run_id, "b")])
    assert open_callbacks(world.db, *worker, [NewCallback(run.id, run.scheduled_for, 1, "t" * 43)])
    extras = OutcomeExtras(callback=Expected(60.0))
    accepted = AttemptOutcome.SUCCEEDED
    world.record(
        worker, [outcome(run, RunState.RUNNING, extras=extras, attempt_outcome=accepted)], [run.batch_id]
    )
    flows.advance()
    assert_consistent(world)
    assert flows.tasks(run_id)["b"] == "running"
    if how == "cancelled":
        stop(flows, run.id)
    elif how == "failed":
        report = CompleteRun(run.id, "t" * 43, succeeded=False, result=None, error="no", retryable=False)
        with world.db.transaction():
            callbacks.complete_runs(world.db, TOPICS, [report], shards=SHARDS)
    else:
        for _ in range(5):
            world.turn_clock(timedelta(seconds=3600))
            for lane in Lane:
                claims.claim_deadlines(world.db, lane, EVERY_SHARD, 100, topics=TOPICS, install_shards=SHARDS)
    flows.advance()
    assert (
        flows.tasks(run_id)["b"]
        in {"too late": ("dead", "unknown", "retrying"), "cancelled": ("cancelled",), "failed": ("dead",)}[
            how
        ]
    )
    if flows.tasks(run_id)["b"] == "retrying":
        retry_due(world)
        flows.end(run_id, ["b"], RunState.DEAD)
    after(flows, run_id)


@pytest.mark.parametrize("result", ["null", "[1, 2]", '"' + "x" * 65_000 + '"', "{}"])
def test_a_result_of_any_kind_is_a_result(flows: Flows, result: str) -> None:
    run_id = flows.open(
        {"a": {}, "b": {"depends_on": [{"task": "a", "if": {"exists": True}}]}, "c": {"depends_on": ["b"]}},
        result={"result": "a"},
    )
    flows.end(run_id, ["a"], result=result)
    for key in ("b", "c"):
        flows.end(run_id, [key])
    row = flows.world.rows("select state, result::text from runs where id = %s", run_id)
    assert row == [{"state": "succeeded", "result": result.replace(", ", ",")}]
    flows.nothing_is_left(run_id)


def test_a_task_that_is_discarded_by_its_handler_is_a_failure(flows: Flows) -> None:
    run_id = flows.open(MENDED)
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b"], RunState.DISCARDED, reason="by_handler")
    after(flows, run_id)
