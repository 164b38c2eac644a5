"""What a pass over workflows finds that nobody should have written: one workflow is set aside, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World

from noonmark.core.ids import shard_of, uuid7
from noonmark.core.states import Lane, RunState
from noonmark.store.runs import cancel
from noonmark.store.runs.cancel import RunKey
from noonmark.store.workflows.advance import WorkflowPass

CHAIN = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def restarted(flows: Flows) -> None:
    """Let a trigger go on that has read nothing yet."""
    flows.passes = WorkflowPass(TOPICS, shards=SHARDS)


def tell(flows: Flows, run_id: UUID, task_run: UUID) -> None:
    """Tell the triggers that a run has ended, whether it is there or not."""
    flow = flows.world.run(run_id)
    flows.world.db.execute(
        "insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)"
        " values (noonmark_now(), %s, %s, %s, 1, %s, 1, 5, 'tests', 'default')",
        [flow["scheduled_for"], flow["job_id"], task_run, shard_of(run_id, SHARDS)],
    )


def put_task_run(flows: Flows, run_id: UUID, key: str, state: str = "succeeded") -> UUID:
    """Write the run of a task by hand."""
    flow = flows.world.run(run_id)
    return flows.world.put_run(
        state,
        job_id=flow["job_id"],
        scheduled_for=flow["scheduled_for"],
        origin="task",
        request_id=key,
        due_at=flow["started_at"],
        shard=shard_of(run_id, SHARDS),
    )


def stopped_by(flows: Flows, run_id: UUID) -> None:
    row = flows.world.run(run_id)
    cancel.cancel(
        flows.world.db, TOPICS, [RunKey(row["id"], row["scheduled_for"])], reason="x", shards=SHARDS
    )


def _no_tasks(flows: Flows, run_id: UUID) -> None:
    flows.world.db.execute(
        "delete from workflow_tasks where job_id = %s", [flows.world.run(run_id)["job_id"]]
    )


def _a_task_is_missing(flows: Flows, run_id: UUID) -> None:
    flows.world.db.execute(
        "delete from workflow_tasks where job_id = %s and task_no = 2", [flows.world.run(run_id)["job_id"]]
    )


def _graph(text: str) -> Callable[[Flows, UUID], None]:
    def change(flows: Flows, run_id: UUID) -> None:
        flows.world.db.execute(
            "update workflow_tasks set graph = %s::json where job_id = %s and task_no = 1",
            [text, flows.world.run(run_id)["job_id"]],
        )

    return change


def _progress(value: str) -> Callable[[Flows, UUID], None]:
    def change(flows: Flows, run_id: UUID) -> None:
        flows.world.db.execute(
            "update workflows set progress = decode(%s, 'hex') where run_id = %s", [value, run_id]
        )

    return change


def _choices(flows: Flows, run_id: UUID) -> None:
    flows.world.db.execute(r"update workflows set choices = '\x0101' where run_id = %s", [run_id])


def _deadline(flows: Flows, run_id: UUID) -> None:
    flows.world.db.execute(
        "update jobs set work = jsonb_set(work::jsonb, '{deadline_seconds}', '\"soon\"')::json where id = %s",
        [flows.world.run(run_id)["job_id"]],
    )


BROKEN = {
    "no tasks": _no_tasks,
    "a task is missing": _a_task_is_missing,
    "a rule that there is not": _graph('{"rule": "most"}'),
    "a graph of another kind": _graph("[1, 2]"),
    "a null as graph": _graph("null"),
    "edges of another kind": _graph('{"edges": 3}'),
    "a parent that comes later": _graph('{"edges": [2]}'),
    "an edge with too much": _graph('{"edges": [[0, {}, 1]]}'),
    "a parent that is text": _graph('{"edges": ["0"]}'),
    "a condition that there is not": _graph('{"edges": [[0, {"or": []}]]}'),
    "half a surrogate pair": _graph('{"edges": [0], "when": {"result": "\\ud800", "eq": 1}}'),
    "when of a task that there is not": _graph('{"edges": [0], "when": {"result": "zz", "eq": 1}}'),
    "handles of a task that there is not": _graph('{"edges": [0], "handles": [99]}'),
    "handles of another kind": _graph('{"edges": [0], "handles": 5}'),
    "progress too short": _progress("01"),
    "progress too long": _progress("0100000000"),
    "no progress": _progress(""),
    "progress of no meaning": _progress("01ff00"),
    "choices too long": _choices,
    "a deadline that is no number": _deadline,
}


@pytest.mark.parametrize("stopping", [False, True], ids=["an end", "a cancel"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_workflow_is_reported_and_tried_again_and_the_others_go_on(
    flows: Flows, name: str, *, stopping: bool
) -> None:
    world = flows.world
    broken = flows.open(CHAIN)
    fine = flows.open(CHAIN, name="fine")
    flows.end(broken, ["a"], advance=False)
    flows.end(fine, ["a"], advance=False)
    if stopping:
        stopped_by(flows, broken)
    BROKEN[name](flows, broken)
    restarted(flows)

    done = flows.advance()

    assert flows.tasks(fine) == {"a": "succeeded", "b": "queued"}
    for key in ("b", "c"):
        flows.end(fine, [key])
    assert world.run(fine)["state"] == "succeeded"
    if {run_id for one in done for run_id, _ in one.broken} != {broken}:
        assert world.run(broken)["state"] in ("cancelled", "dead", "running"), name
        return
    assert world.count("runs", f"split_part(request_id, '/', 1) = '{broken}'") == 1
    assert world.count("timers", "kind = 5") == 1 + stopping
    assert flows.advance() == []
    world.turn_clock(timedelta(seconds=61))
    again = flows.advance()
    assert {run_id for one in again for run_id, _ in one.broken} == {broken}


def test_a_broken_workflow_that_is_mended_goes_on(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(CHAIN)
    flows.end(run_id, ["a"], advance=False)
    graph = world.value("select graph::text from workflow_tasks where task_no = 1")
    _graph('{"rule": "most"}')(flows, run_id)
    restarted(flows)
    flows.advance()
    _graph(graph)(flows, run_id)
    world.turn_clock(timedelta(seconds=61))
    flows.advance()
    for key in ("b", "c"):
        flows.end(run_id, [key])
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


@pytest.mark.parametrize("change", ["gone", "unreadable"])
def test_a_workflow_that_cannot_be_opened_is_reported_and_the_others_are_opened(
    flows: Flows, change: str
) -> None:
    world = flows.world
    jobs = [flows.create(CHAIN, name=name) for name in ("broken", "fine")]
    flows.claim()
    flows.hand_over()
    broken, fine = map(flows.run_of, jobs)
    if change == "gone":
        _no_tasks(flows, broken)
    else:
        _graph('{"rule": "most"}')(flows, broken)
    done = flows.advance()
    assert {run_id for one in done for run_id, _ in one.broken} == {broken}
    assert [world.run(one)["state"] for one in (broken, fine)] == ["queued", "running"]


# runs of tasks by hand


KEYS = {
    "not a key": "elephant",
    "too short": "{id}",
    "a number that is none": "{id}/x/0/1",
    "a task that there is not": "{id}/99/0/1",
    "a number below zero": "{id}/-1/0/1",
    "an item of a task that has none": "{id}/1/7/1",
    "a generation that was never": "{id}/1/0/9",
    "of a run that there is not": str(UUID(int=7)) + "/0/0/1",
    "too much": "{id}/0/0/1/2",
    "a big number": "{id}/99999999999999999999/0/1",
}


@pytest.mark.parametrize("state", ["succeeded", "dead", "queued"])
@pytest.mark.parametrize("name", KEYS)
def test_a_run_of_a_task_that_somebody_inserted_changes_no_workflow(
    flows: Flows, name: str, state: str
) -> None:
    world = flows.world
    run_id, fine = flows.open(CHAIN), flows.open(CHAIN, name="fine")
    stray = put_task_run(flows, run_id, KEYS[name].format(id=run_id), state)
    if state != "queued":
        tell(flows, run_id, stray)
    for one in (run_id, fine):
        flows.end(one, ["a"])
        assert world.count("runs", f"origin = 'task' and request_id = '{one}/1/0/1'") == 1, "b was decided"
    flows.end(fine, ["b"])
    flows.end(fine, ["c"])
    assert world.run(fine)["state"] == "succeeded"
    stopped_by(flows, run_id)
    flows.advance()
    assert world.run(run_id)["state"] == "cancelled"
    assert world.count("workflows") == 0


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("state", ["succeeded", "dead"])
def test_a_task_whose_run_was_there_before_it_was_due_is_not_waited_for_for_ever(
    flows: Flows, state: str, *, told: bool
) -> None:
    run_id = flows.open(CHAIN)
    early = put_task_run(flows, run_id, f"{run_id}/1/0/1", state)
    if told:
        tell(flows, run_id, early)
        flows.advance()
    flows.end(run_id, ["a"])
    expected = {"succeeded": "queued", "dead": "skipped upstream_failed"}[state]
    assert flows.tasks(run_id)["c"] == expected


# facts about what is not there


def test_a_fact_about_a_run_that_is_not_there_is_dropped(flows: Flows) -> None:
    run_id = flows.open(CHAIN)
    tell(flows, run_id, uuid4())
    tell(flows, run_id, uuid7())
    flows.end(run_id, ["a"])
    assert flows.tasks(run_id)["b"] == "queued"
    assert flows.world.count("timers", "kind = 5") == 0
    assert_consistent(flows.world)


def test_a_fact_about_a_plain_run_is_dropped(flows: Flows) -> None:
    run_id = flows.open(CHAIN)
    plain = flows.world.put_run("queued", scheduled_for=flows.world.run(run_id)["scheduled_for"])
    tell(flows, run_id, plain)
    flows.end(run_id, ["a"])
    assert flows.tasks(run_id)["b"] == "queued"
    assert flows.world.run(plain)["state"] == "queued"
    assert flows.world.count("timers", "kind = 5") == 0


def test_a_workflow_whose_run_is_gone_leaves_nothing_to_do(flows: Flows) -> None:
    world = flows.world
    gone, fine = flows.open(CHAIN), flows.open(CHAIN, name="fine")
    flows.end(gone, ["a"], advance=False)
    flows.end(fine, ["a"], advance=False)
    world.db.execute("delete from runs where id = %s", [gone])
    flows.advance()
    assert flows.tasks(fine)["b"] == "queued"
    world.turn_clock(timedelta(seconds=61))
    flows.advance()
    assert world.count("timers", "kind = 5") == 0
    assert world.column("select run_id from workflows") == [fine]


def test_facts_that_were_told_twice_count_once(flows: Flows) -> None:
    run_id = flows.open({**CHAIN, "d": {"depends_on": ["a", "b"]}})
    flows.end(run_id, ["a"], advance=False)
    for _ in range(3):
        tell(flows, run_id, flows.run_id(run_id, "a"))
    flows.advance()
    tell(flows, run_id, flows.run_id(run_id, "a"))
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued"}
    for key in ("b", "c", "d"):
        flows.end(run_id, [key])
    assert flows.world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


# results


RESULTS = {
    "half a surrogate pair": '{"x": "\\ud800"}',
    "a NUL": '{"x": "a\\u0000b"}',
    "a number too big": '{"x": 1e999}',
    "a long number": '{"x": 123456789012345678901234567890}',
    "a deep list": "[" * 2000 + "]" * 2000,
    "a bare null": "null",
    "a list": "[1, [2], {}]",
    "a text": '"x"',
    "64 KB": '{"x": "' + "y" * 65_000 + '"}',
}


@pytest.mark.parametrize("name", RESULTS)
def test_whatever_a_task_returns_its_workflow_goes_on(flows: Flows, name: str) -> None:
    world = flows.world
    tasks = {
        "a": {},
        "yes": {"depends_on": [{"task": "a", "if": {"at": "/x", "exists": True}}]},
        "no": {"depends_on": [{"task": "a", "if": {"at": "/x", "exists": False}}]},
        "z": {
            "depends_on": ["yes", "no"],
            "rule": "none_failed",
            "when": {"result": "a", "at": "/y", "ne": 1},
        },
        "last": {"depends_on": ["z"], "rule": "all_done"},
    }
    run_id = flows.open(tasks, result={"result": "a", "at": "/x"})
    fine = flows.open({**CHAIN, "d": {"depends_on": [{"task": "a", "if": {"eq": 1}}]}}, name="fine")
    flows.end(fine, ["a"], result="1", advance=False)
    flows.end(run_id, ["a"], result=RESULTS[name])
    assert flows.tasks(fine)["b"] == "queued"
    for key in ("yes", "no", "z", "last"):
        if flows.tasks(run_id).get(key) == "queued":
            flows.end(run_id, [key])
    assert world.run(run_id)["state"] in ("succeeded", "dead"), flows.tasks(run_id)
    assert world.count("workflows", f"run_id = '{run_id}'") == 0


def test_an_error_of_any_text_is_shown_with_the_verdict(flows: Flows) -> None:
    run_id = flows.open(CHAIN)
    flows.end(run_id, ["a"], RunState.DEAD, error="x" * 100_000 + "\x00 \ud800 ü")
    row = flows.world.run(run_id)
    assert row["state"] == "dead"
    assert row["error"].startswith("task a failed: xxx")
    flows.nothing_is_left(run_id)


def test_passes_of_every_lane_go_on_beside_a_broken_workflow(flows: Flows) -> None:
    run_id = flows.open({"a": {"priority": "high"}, "b": {"depends_on": ["a"], "priority": "low"}})
    other = flows.open(CHAIN, name="other")
    flows.end(run_id, ["a"], advance=False)
    flows.end(other, ["a"], advance=False)
    _graph('{"rule": "most"}')(flows, run_id)
    restarted(flows)
    for lane in Lane:
        flows.passes.run(flows.world.db, lane, EVERY_SHARD, 10, arrays=True)
    assert flows.tasks(other)["b"] == "queued"
