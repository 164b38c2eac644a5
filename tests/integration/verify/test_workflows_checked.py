"""`noonmark verify` on workflow runs of a real ledger: sound ones are clean, each planted fault is found by its rule."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from tests.chaos.edits import edit
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import SHARDS, TOPICS, World, outcome
from tests.integration.verify.ledgers import LATER, check
from tests.support.ledger import read_ledger

from noonmark.core.states import RunState
from noonmark.store.runs import cancel, dead_letters
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.workflows import holds
from noonmark.verify import History
from noonmark.verify.ledger import WORKFLOW_RULES, judge_rows

TASKS = {
    "extract": {},
    "load": {"depends_on": [{"task": "extract", "if": {"at": "/rows", "gt": 0}}]},
    "alarm": {"depends_on": [{"task": "extract", "if": {"at": "/rows", "eq": 0}}]},
    "join": {"depends_on": ["load"]},
    "optional": {"depends_on": ["extract"], "when": {"result": "extract", "at": "/rows", "gt": 100}},
    "repair": {"depends_on": ["join"], "rule": "one_failed"},
}
FINAL = {"finally": {"clean": {}}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def found(flows: Flows, **window: object) -> dict[str, int]:
    world = flows.world
    world.db.execute("delete from outbox")
    world.turn_clock(LATER)
    report = check(world, **window)
    return {rule: count for rule, count in report.counts.items() if count}


def of_workflows(flows: Flows) -> dict[str, int]:
    """The findings of rules of workflows: those about workers are not of interest here."""
    return {rule: count for rule, count in found(flows).items() if rule in WORKFLOW_RULES}


def open_one(flows: Flows) -> UUID:
    run_id = flows.open(TASKS, **FINAL)
    flows.end(run_id, ["extract"], result='{"rows": 3}')
    return run_id


def succeeded(flows: Flows) -> UUID:
    run_id = open_one(flows)
    flows.end(run_id, ["load"])
    flows.end(run_id, ["join"])
    flows.end(run_id, ["clean"])
    assert flows.world.run(run_id)["state"] == "succeeded"
    return run_id


def died(flows: Flows) -> UUID:
    run_id = open_one(flows)
    flows.end(run_id, ["load"])
    flows.end(run_id, ["join"], RunState.DEAD)
    flows.end(run_id, ["repair"])
    flows.end(run_id, ["clean"])
    assert flows.world.run(run_id)["state"] == "dead"
    return run_id


def redriven(flows: Flows) -> UUID:
    run_id = died(flows)
    letters = dead_letters.find(flows.world.db, DeadSelection(runs=[run_id]))
    dead_letters.redrive(flows.world.db, TOPICS, letters, shards=SHARDS)
    flows.hand_over()
    flows.advance()
    return run_id


def redriven_to_the_end(flows: Flows) -> UUID:
    run_id = redriven(flows)
    flows.end(run_id, ["join"])
    flows.end(run_id, ["clean"])
    assert flows.world.run(run_id)["state"] == "succeeded"
    return run_id


def cancelled(flows: Flows) -> UUID:
    run_id = open_one(flows)
    key = RunKey(run_id, flows.world.run(run_id)["scheduled_for"])
    cancel.cancel(flows.world.db, TOPICS, [key], shards=SHARDS)
    flows.advance()
    flows.end(run_id, ["clean"])
    assert flows.world.run(run_id)["state"] == "cancelled"
    return run_id


def overdue(flows: Flows) -> UUID:
    run_id = flows.open(TASKS, **FINAL, deadline_seconds=60)
    flows.world.turn_clock(LATER)
    flows.advance()
    flows.end(run_id, ["clean"])
    assert flows.world.run(run_id)["reason"] == "deadline"
    return run_id


@pytest.mark.parametrize("make", [succeeded, died, redriven_to_the_end, cancelled, overdue])
def test_a_workflow_run_that_has_ended_is_clean(flows: Flows, make: Callable[[Flows], UUID]) -> None:
    make(flows)
    assert found(flows) == {}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("make", [open_one, redriven])
def test_an_open_workflow_run_is_clean_before_and_after_an_end_was_noticed(
    flows: Flows, make: Callable[[Flows], UUID], told: bool
) -> None:
    run_id = make(flows)
    flows.end(run_id, ["load" if make is open_one else "join"], advance=told)
    assert of_workflows(flows) == {}


def test_a_held_workflow_run_is_clean(flows: Flows) -> None:
    run_id = open_one(flows)
    holds.hold(flows.world.db, [run_id])
    flows.end(run_id, ["load"])
    assert of_workflows(flows) == {}


@pytest.mark.parametrize("make", [succeeded, redriven, cancelled, overdue])
def test_what_tests_collect_is_judged_alike(flows: Flows, make: Callable[[Flows], UUID]) -> None:
    run_id = make(flows)
    collected = History(judged_at=flows.world.now())
    read_ledger(flows.world.db, collected, ["tests"], [])
    assert list(judge_rows(collected, WORKFLOW_RULES)) == []
    edit(collected, "runs", str(flows.run_id(run_id, "load")), version=2)
    assert {one.invariant for one in judge_rows(collected, WORKFLOW_RULES)} == {"W9"}


def test_workflow_runs_are_judged_in_parts_of_any_size(flows: Flows) -> None:
    for _ in range(2):
        succeeded(flows)
    run_id = succeeded(flows)
    flows.world.db.execute("update runs set state = 'dead', reason = 'task_failed' where id = %s", [run_id])
    for step in (1, 5, 8, 100):
        assert found(flows, step=step)["W7"] == 1


def _sql(query: str, make: Callable[[Flows], UUID] = succeeded) -> Callable[[Flows], None]:
    def plant(flows: Flows) -> None:
        run_id = make(flows)
        task = {key: str(flows.run_id(run_id, key)) for key in flows.tasks(run_id)}
        assert flows.world.db.execute(query.format(flow=run_id, **task)).rowcount > 0  # type: ignore[arg-type]

    return plant


FAULTS = {
    "a task that was due before its parent ended": (
        "W2", _sql("update runs set due_at = due_at - interval '1 hour' where id = '{join}'"),
    ),
    "a skip for another reason": ("W3", _sql("update runs set reason = 'condition' where id = '{alarm}'")),
    "a timer of an ended workflow run": (
        "W5",
        _sql(
            "insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)"
            " select '9999-12-31', scheduled_for, job_id, id, 1, shard, lane, 5, namespace, pool from runs where id = '{load}'"
        ),
    ),
    "a state of an ended workflow run": (
        "W5",
        _sql(
            "insert into workflows (run_id, scheduled_for, job_id, job_version, shard, generation, progress, choices, opened_at)"
            " select id, scheduled_for, job_id, 1, shard, 1, '', '', noonmark_now() from runs where id = '{flow}'"
        ),
    ),
    "a miscounted task": ("W6", _sql("update workflows set progress = set_byte(progress, 1, 3)", open_one)),
    "a choice that was turned around": ("W6", _sql("update workflows set choices = set_byte(choices, 0, 3 - get_byte(choices, 0))", open_one)),
    "a verdict that no task gave": (
        "W7", _sql("update runs set reason = 'finally_failed' where id = '{flow}'", died),
    ),
    "a task of finally before the others": (
        "W8", _sql("update runs set due_at = due_at - interval '1 hour' where id = '{clean}'"),
    ),
    "a task of another workflow run": (
        "W9",
        _sql("update runs set request_id = gen_random_uuid() || '/5/0/1' where id = '{repair}'"),
    ),
    "a version without tasks": ("W9", _sql("delete from workflow_tasks where task_no > 2")),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_its_rule(flows: Flows, name: str) -> None:
    rule, plant = FAULTS[name]
    plant(flows)
    assert rule in of_workflows(flows)


def test_every_rule_of_workflows_has_a_planted_fault() -> None:
    assert {rule for rule, _ in FAULTS.values()} == set(WORKFLOW_RULES)


def test_no_statement_is_executed_for_workflows_where_there_are_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = world.worker()
    world.record(worker, [outcome(*world.start(worker, [world.put_run()]), result='"done"')])
    world.turn_clock(LATER)
    monkeypatch.setattr("noonmark.cli.verify.walk.parts", None)
    monkeypatch.setattr("noonmark.cli.verify.walk.read_orphans", None)
    assert check(world).runs == 1
