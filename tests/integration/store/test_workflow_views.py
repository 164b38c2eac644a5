"""Reads of workflow runs: what they visit, under the API's role too, and what a redrive makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import World

from noonmark.core.states import RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.progress import TaskProgress
from noonmark.store.database.scope import enter_scope
from noonmark.store.database.statements import statement
from noonmark.store.views.workflow_tasks import (
    TasksWanted,
    WorkflowRun,
    find_workflow_run,
    list_tasks,
    read_graph,
    stored_tasks,
)

pytestmark = pytest.mark.postgres

TASKS = 400
INSTANTS = 40

CHAIN = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def run_of(flows: Flows, run_id: UUID) -> WorkflowRun:
    found = find_workflow_run(flows.world.db, run_id)
    assert found is not None
    return found


def many_runs(flows: Flows) -> WorkflowRun:
    """A workflow of many tasks with a run for each of many instants; all tasks have runs. Returns a middle one."""
    world = flows.world
    job = flows.create({f"t{no}": {} for no in range(TASKS)}, schedule="0 9 * * 1")
    now = world.now()
    runs = [
        world.put_run(
            "succeeded", job_id=job, pool=WORKFLOW_POOL, scheduled_for=now - timedelta(minutes=no), attempt=1
        )
        for no in range(INSTANTS)
    ]
    world.db.execute(
        """insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, origin, request_id, namespace,
                             pool, finished_at, attempt)
           select noonmark_uuid7(), own.scheduled_for, own.job_id, 1, 1, 1, 0, 'succeeded', 'task',
                  own.id || '/' || no || '/0/1', 'tests', 'default', now(), 1
           from runs own, generate_series(0, %s) no where own.id = any (%s)""",
        [TASKS - 1, runs],
    )
    world.db.execute("analyze runs; analyze workflow_tasks")
    return run_of(flows, runs[INSTANTS // 2])


def scans(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "Relation Name" in node:
        yield node
    for child in node.get("Plans", ()):
        yield from scans(child)


def visited(node: Mapping[str, Any]) -> int:
    removed = sum(node.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Index Recheck"))
    return int((node["Actual Rows"] + removed) * node["Actual Loops"])


@pytest.mark.parametrize("scope", [None, ("tests",)], ids=["owner", "API's role"])
def test_a_page_of_tasks_visits_only_the_runs_of_its_instant(flows: Flows, scope: Any) -> None:
    run = many_runs(flows)
    db = flows.world.db
    asked = {
        "workflow_id": run.id,
        "scheduled_for": run.scheduled_for,
        "job_id": run.job_id,
        "version": 1,
        **dict.fromkeys(("progress", "generation", "keys", "states")),
        "failed_first": False,
        "error_chars": 300,
        "after_place": -1,
        "after_no": -1,
        "limit": 50,
    }
    with db.transaction():
        if scope is not None:
            enter_scope(db, scope)
        query = b"explain (analyze, format json) " + statement("list_task_states").encode()
        (plan,) = db.execute(query, asked).fetchone()  # type: ignore[arg-type, misc]
    of_runs = [node for node in scans(plan[0]["Plan"]) if node["Relation Name"].startswith("runs")]
    of_tasks = [node for node in scans(plan[0]["Plan"]) if node["Relation Name"] == "workflow_tasks"]

    # Its own row is at the same instant.
    assert sum(map(visited, of_runs)) <= TASKS + 1, of_runs
    assert sum(map(visited, of_tasks)) <= TASKS, of_tasks
    assert {node["Node Type"] for node in of_runs} & {"Index Scan", "Bitmap Heap Scan"}


def test_the_api_sees_the_tasks_of_its_namespaces_only(flows: Flows) -> None:
    run = run_of(flows, flows.open(CHAIN))
    db = flows.world.db
    for scope, seen in ((("tests",), 3), (("elsewhere",), 0)):
        with db.transaction():
            enter_scope(db, scope)
            assert len(list_tasks(db, run)) == seen
            assert len(stored_tasks(db, run.job_id, [1]).get(1, ())) == seen
            assert (find_workflow_run(db, run.id) is not None) is bool(seen)


def reopened(flows: Flows) -> UUID:
    """A workflow run that died in its second task, and was opened again: the second task is queued again."""
    run_id = flows.open(CHAIN)
    db = flows.world.db
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b"], RunState.DEAD)
    db.execute(
        """insert into workflows (run_id, scheduled_for, job_id, job_version, shard, generation, progress, choices, opened_at)
           select id, scheduled_for, job_id, job_version, shard, 2, %s, '', now() from runs where id = %s""",
        [bytes([TaskProgress.SUCCEEDED, TaskProgress.LIVE, TaskProgress.UNDECIDED]), run_id],
    )
    db.execute(
        """insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, state, origin, request_id,
                             namespace, pool)
           select noonmark_uuid7(), scheduled_for, now(), job_id, 1, 1, 1, 0, 'queued', 'task', id || '/1/0/2', 'tests',
                  'default' from runs where id = %s""",
        [run_id],
    )
    return run_id


def test_the_newest_run_of_each_task_is_shown_and_none_of_those_that_are_undecided_again(
    flows: Flows,
) -> None:
    run = run_of(flows, reopened(flows))
    db = flows.world.db

    def shown(**wanted: Any) -> list[tuple[str | None, str, int | None]]:
        return [
            (task.key, task.state, task.generation) for task in list_tasks(db, run, TasksWanted(**wanted))
        ]

    assert shown() == [("a", "succeeded", 1), ("b", "queued", 2), ("c", "undecided", None)]
    assert shown(generation=1) == [("a", "succeeded", 1), ("b", "dead", 1), ("c", "skipped", 1)]
    assert shown(generation=2) == [("b", "queued", 2)]
    graph = read_graph(db, run)
    assert graph is not None
    assert [task.state for task in graph.tasks] == ["succeeded", "queued", "undecided"]


def test_of_a_deleted_job_the_runs_of_tasks_are_left(flows: Flows) -> None:
    run_id = flows.open({"a": {}})
    flows.end(run_id, ["a"])
    run = run_of(flows, run_id)
    flows.world.db.execute("delete from jobs where id = %s", [run.job_id])

    (task,) = list_tasks(flows.world.db, run)

    assert (task.no, task.key, task.kind, task.state) == (0, None, None, "succeeded")
    assert read_graph(flows.world.db, run) is None


def test_versions_are_read_until_they_have_too_many_tasks(
    flows: Flows, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = flows.create({"a": {}, "b": {}}, schedule="0 9 * * 1")
    flows.world.db.execute(
        """insert into workflow_tasks select job_id, version + n, task_no, key, kind, handler, lane, pool, work, graph, document
           from workflow_tasks, generate_series(1, 2) n where job_id = %s""",
        [job],
    )
    monkeypatch.setattr("noonmark.store.views.workflow_tasks.MOST_TASKS", 5)

    found = stored_tasks(flows.world.db, job, [1, 2, 3])

    assert {version: [task.key for task in tasks] for version, tasks in found.items()} == {
        3: ["a", "b"],
        2: ["a", "b"],
    }


def test_a_plain_run_is_no_workflow(world: World) -> None:
    found = find_workflow_run(world.db, world.put_run())

    assert found is not None
    assert not found.is_workflow
    assert found.generation is None
