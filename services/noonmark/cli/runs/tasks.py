"""`noonmark run tasks` and `noonmark run graph`: the tasks of a workflow run, as a list and by dependency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

import typer

from noonmark.cli.connections.api_pages import MISSING, gather, show_page, with_instants
from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.ids import RunId, run_id
from noonmark.cli.terminal.options import AfterCursor, AsJson, Limit, Output, OutputOption
from noonmark.cli.terminal.output import (
    Column,
    counted,
    duration,
    field,
    is_terminal,
    shortened,
    show_json,
    show_list,
)
from noonmark.cli.terminal.problems import CliError
from noonmark.core.states import RunState

State = StrEnum(  # type: ignore[misc]
    "State", {**{state.name: state.value for state in RunState}, "UNDECIDED": "undecided"}
)

_MOST_NAMED: Final = 4
"""How many dependencies of a task a line names."""

_HOLDS: Final = {True: "if: holds", False: "if: does not hold", None: "if"}


def took(task: Mapping[str, Any]) -> str:
    """Return how long the latest attempt of a task took, or a dash."""
    begin, end = task["started_at"], task["finished_at"]
    return duration((end - begin).total_seconds() if begin is not None and end is not None else None)


_COLUMNS = (
    field("no", "#", numeric=True),
    field("key", "TASK", key=True),
    field("type"),
    field("state", key=True),
    field("reason"),
    field("attempt", "ATTEMPTS", numeric=True),
    field("due_at", "DUE"),
    Column("TOOK", took, numeric=True),
    field("generation", wide=True, numeric=True),
    field("started_at", "STARTED", wide=True),
    field("finished_at", "FINISHED", wide=True),
    field("run_id", "RUN", wide=True),
    Column("ERROR", lambda task: shortened(task["error"], 80), cut=True),
)


def tasks(
    run: RunId,
    *,
    state: Annotated[
        list[State] | None,
        typer.Option(help="Only tasks in this state; `undecided` are those without a run; repeatable."),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Only the task with this key; repeatable.")
    ] = None,
    generation: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=30_000,
            help="Show the runs of this generation: a redrive begins the next one. (default: the newest run"
            " of each task)",
        ),
    ] = None,
    failed_first: Annotated[
        bool, typer.Option("--failed-first", help="List tasks that failed before all others.")
    ] = False,
    limit: Limit = 200,
    after: AfterCursor = None,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List the tasks of a workflow run in their order; `-o wide` adds the ids of their runs."""
    wanted = run_id(run)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api, _or_no_workflow(wanted):
        rows, following = gather(
            lambda size: api.runs.tasks(
                wanted,
                state=[one.value for one in state or ()],
                task=task,
                generation=generation,
                failed_first=failed_first or None,
                limit=size,
            ),
            limit,
            after,
        )
    empty = f"no tasks found with these filters; `noonmark run graph {wanted}` shows all"
    show_page(rows, following, _COLUMNS, output=output, as_json=as_json, empty=empty)


def graph(run: RunId, as_json: AsJson = False) -> None:
    """Show the tasks of a workflow run by layer, with their states and what they depend on.

    A task is in the layer after the last task that it depends on.
    """
    wanted = run_id(run)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api, _or_no_workflow(wanted):
        found = api.runs.graph(wanted)
    if as_json:
        show_json(found)
        return
    if is_terminal():
        print(headline(found))
    rows = list(layer_rows(found["tasks"]))
    show_list(rows, GRAPH_COLUMNS)


def headline(found: Mapping[str, Any]) -> str:
    """Return a line with the state of a workflow run, and the number of tasks in each state."""
    states = sorted(found["states"].items(), key=lambda one: (-one[1], one[0]))
    counts = ", ".join(f"{number:,} {state}" for state, number in states)
    return f"run {found['run_id']} is {found['state']}: {counted(len(found['tasks']), 'task')}: {counts}"


def layer_rows(tasks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a graph by layer; only the first of a layer has its number."""
    from noonmark.core.workflows.definition import Definition, Edge, Task  # noqa: PLC0415 - to show a graph
    from noonmark.core.workflows.layers import layers  # noqa: PLC0415

    numbers = {task["key"]: no for no, task in enumerate(tasks)}
    definition = Definition(
        [
            Task(
                no,
                task["key"],
                edges=tuple(Edge(numbers[key]) for key in task["depends_on"]),
                is_final=task["final"],
            )
            for no, task in enumerate(tasks)
        ]
    )
    for layer, members in enumerate(layers(definition), start=1):
        for place, no in enumerate(members):
            yield {**with_instants(tasks[no]), "layer": None if place else layer}


def _after(task: Mapping[str, Any]) -> str:
    """Return what a task depends on, with its conditions, and its rule if it is not the default."""
    names = [
        f"{key} ({_HOLDS[task['conditions'][key]]})" if key in task["conditions"] else key
        for key in task["depends_on"][:_MOST_NAMED]
    ]
    more = len(task["depends_on"]) - _MOST_NAMED
    shown = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    rule = f" [{task['rule']}]" if task["rule"] != "all_succeeded" else ""
    return (shown or ("all others" if task["final"] else "-")) + rule


GRAPH_COLUMNS = (
    Column("LAYER", lambda task: "" if task["layer"] is None else str(task["layer"]), numeric=True),
    field("key", "TASK", key=True),
    field("state", key=True),
    Column("TOOK", took, numeric=True),
    Column("AFTER", _after, elastic=True, key=True),
)
"""Columns of the rows of `layer_rows`."""


@contextmanager
def _or_no_workflow(run: UUID) -> Iterator[None]:
    """Say what to do if a run does not exist or has no tasks."""
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    try:
        yield
    except ApiError as error:
        if error.status != MISSING:
            raise
        reason = error.detail or f"there is no run {run}"
        raise CliError(f"{reason}; run `noonmark run list`") from error
