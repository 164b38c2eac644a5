"""`noonmark run tasks`, `run graph` and `why` about workflow runs, and documents of workflows that are exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import open_world
from tests.support.cli import Called, call

from noonmark.core.states import RunState

pytestmark = pytest.mark.postgres

DIAMOND = {
    "extract": {},
    "orders": {"depends_on": ["extract"]},
    "customers": {"depends_on": [{"task": "extract", "if": {"at": "/customers", "gt": 0}}]},
    "publish": {"depends_on": ["orders", "customers"], "rule": "none_failed"},
}

Noonmark = Callable[..., Called]


@pytest.fixture
def noonmark(command_line: Any, emptied_database: str, monkeypatch: pytest.MonkeyPatch) -> Noonmark:
    monkeypatch.setenv("NOONMARK_DATABASE_URL", emptied_database)
    return call


@pytest.fixture
def flows(emptied_database: str) -> Iterator[Flows]:
    with open_world(emptied_database) as world:
        yield Flows(world)


@pytest.fixture
def run(flows: Flows) -> str:
    """A diamond of which one side has failed."""
    opened = flows.open(DIAMOND, **{"finally": {"cleanup": {}}})
    flows.end(opened, ["extract"], result='{"customers": 3}')
    flows.end(opened, ["orders"], RunState.DEAD, error="no such table")
    return str(opened)


def cells(line: str) -> list[str]:
    return line.split()


def test_tasks_are_listed_in_their_order(noonmark: Noonmark, run: str) -> None:
    head, *lines = noonmark("run", "tasks", run).stdout.splitlines()

    assert head.split() == ["#", "TASK", "TYPE", "STATE", "REASON", "ATTEMPTS", "DUE", "TOOK", "ERROR"]
    assert [cells(line)[:4] for line in lines] == [
        ["0", "extract", "python", "succeeded"],
        ["1", "customers", "python", "queued"],
        ["2", "orders", "python", "dead"],
        ["3", "publish", "python", "skipped"],
        ["4", "cleanup", "python", "undecided"],
    ]
    assert lines[2].endswith("no such table")


def test_tasks_are_filtered_and_printed_for_scripts(noonmark: Noonmark, run: str) -> None:
    found = json.loads(noonmark("run", "tasks", run, "--json", "--failed-first", "--limit", "2").stdout)

    assert [task["key"] for task in found["items"]] == ["orders", "extract"]
    more = noonmark("run", "tasks", run, "--json", "--failed-first", "--after", found["next_cursor"]).stdout
    assert [task["key"] for task in json.loads(more)["items"]] == ["customers", "publish", "cleanup"]
    assert (
        noonmark("run", "tasks", run, "--state", "undecided").stdout.splitlines()[1].split()[1] == "cleanup"
    )
    assert noonmark("run", "tasks", run, "--task", "orders").stdout.splitlines()[1].split()[1] == "orders"


def test_the_ids_of_the_runs_of_tasks_are_in_the_wide_listing(
    noonmark: Noonmark, flows: Flows, run: str
) -> None:
    found = noonmark("run", "tasks", run, "-o", "wide").stdout

    assert str(flows.run_id(run, "orders")) in found  # type: ignore[arg-type]


def test_the_graph_shows_layers_with_what_each_task_depends_on(noonmark: Noonmark, run: str) -> None:
    found = noonmark("run", "graph", run).stdout

    assert [cells(line) for line in found.splitlines()] == [
        ["LAYER", "TASK", "STATE", "TOOK", "AFTER"],
        ["1", "extract", "succeeded", *cells(found.splitlines()[1])[3:5], "-"],
        ["2", "customers", "queued", "-", "extract", "(if:", "holds)"],
        ["orders", "dead", *cells(found.splitlines()[3])[2:4], "extract"],
        ["3", "publish", "skipped", "-", "orders,", "customers", "[none_failed]"],
        ["4", "cleanup", "undecided", "-", "all", "others"],
    ]
    assert max(map(len, found.splitlines())) <= 80
    shown = json.loads(noonmark("run", "graph", run, "--json").stdout)
    assert [task["key"] for task in shown["tasks"]] == [
        "extract",
        "customers",
        "orders",
        "publish",
        "cleanup",
    ]


@pytest.mark.parametrize("command", ["tasks", "graph"])
def test_a_run_without_tasks_is_explained(noonmark: Noonmark, flows: Flows, command: str) -> None:
    plain = flows.world.put_run()

    assert "is not of a workflow, so it has no tasks" in noonmark("run", command, str(plain), code=1).stderr
    assert "there is no run" in noonmark("run", command, str(uuid4()), code=1).stderr


def test_why_explains_a_task_by_its_key(noonmark: Noonmark, run: str) -> None:
    skipped = noonmark("why", run, "--task", "publish").stdout
    undecided = noonmark("why", run, "--task", "cleanup").stdout

    assert skipped.startswith(f"task publish of workflow run {run} of job flow is skipped; its run is ")
    assert "and orders is dead" in skipped
    assert "no such table" in skipped
    assert undecided.startswith(f"task cleanup of workflow run {run} of job flow is undecided\n")
    assert "- task cleanup waits for customers (queued since" in undecided  # after: no live triggers
    assert (
        "or it is not of a workflow with a task nobody"
        in noonmark("why", run, "--task", "nobody", code=1).stderr
    )


def test_runs_of_tasks_are_listed_only_on_request(noonmark: Noonmark, flows: Flows, run: str) -> None:
    task = str(flows.run_id(run, "orders"))  # type: ignore[arg-type]

    assert task not in noonmark("run", "list", "--namespace", "tests").stdout
    assert task in noonmark("run", "list", "--namespace", "tests", "--tasks").stdout
    shown = noonmark("run", "show", task).stdout
    assert [cells(line)[1] for line in shown.splitlines() if cells(line)[:1] == ["task"]] == ["orders"]
    assert run in shown
    assert noonmark("run", "show", run).stdout.endswith(f"\ntasks: noonmark run tasks {run}\n")


def test_what_is_exported_is_applied_without_a_change(
    noonmark: Noonmark, flows: Flows, tmp_path: Any
) -> None:
    job = flows.create(DIAMOND, schedule="0 9 * * 1", **{"finally": {"cleanup": {"pool": "default"}}})
    exported = noonmark("job", "export", "--namespace", "tests").stdout
    file = tmp_path / "jobs.yaml"
    file.write_text(exported)

    assert "unchanged" in noonmark("job", "apply", "-f", str(file), "--dry-run").stdout
    file.write_text(exported.replace("rule: none_failed", "rule: all_done"))
    changed = noonmark("job", "apply", "-f", str(file), "--yes").stdout
    assert "rule" in changed
    assert "tests.noop" in noonmark("job", "show", str(job)).stdout
    assert "all_done" in noonmark("job", "diff", str(job)).stdout
    assert "workflow" in noonmark("job", "list", "--namespace", "tests", "-o", "wide").stdout


def test_runs_are_held_and_released(noonmark: Noonmark, flows: Flows, run: str) -> None:
    task = str(flows.run_id(run, "customers"))  # type: ignore[arg-type]

    held = noonmark("run", "hold", run)
    mixed = noonmark("run", "hold", run, task, str(uuid4()), "--json", code=1)
    shown = noonmark("run", "show", run).stdout
    released = noonmark("run", "release", run)

    assert held.stdout.startswith(f"run {run} has been held since ")
    answer = json.loads(mixed.stdout)
    assert [one["id"] for one in answer["runs"]] == [run]
    assert answer["refused"][0]["run_id"] == task
    assert f"its workflow run {run}" in answer["refused"][0]["reason"]
    assert "run `noonmark run list`" in answer["refused"][1]["reason"]
    assert "held_at" in shown
    assert released.stdout == f"run {run} is not held\n"
    refused = noonmark("run", "release", task, code=1)
    assert "is that of a task" in refused.stderr


def test_a_retried_workflow_run_is_followed_by_its_tasks(noonmark: Noonmark, flows: Flows, run: str) -> None:
    flows.end(run, ["customers"])  # type: ignore[arg-type]
    flows.end(run, ["cleanup"])  # type: ignore[arg-type]

    told = noonmark("run", "retry", run).stdout

    assert told == f"run {run} is queued again; `noonmark run tasks {run}` lists its tasks\n"
