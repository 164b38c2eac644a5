"""Routes of a workflow run: its tasks, and its graph."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Query, Response

from noonmark.api.backend.database import Session
from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.etags import etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import Texts
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.api.routes.runs.runs import also_executions, missing_run
from noonmark.core.access.roles import Permission
from noonmark.core.states import Origin
from noonmark.core.workflows.ids import TaskKey
from noonmark.core.workflows.progress import Choice
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.workflows import GraphTask, TaskStateName, TaskSummary, WorkflowGraph
from noonmark.schemas.problems.types import CONFLICT, NOT_FOUND
from noonmark.store.views.workflow_tasks import (
    Graph,
    TaskState,
    TasksWanted,
    WorkflowRun,
    find_workflow_run,
    list_tasks,
    read_graph,
)

router = resource("runs")

_LISTING: Final = "run_tasks"
_HOLDS: Final = {Choice.UNKNOWN: None, Choice.HOLDS: True, Choice.DOES_NOT_HOLD: False}


@also_executions(router.get, "/runs/{run_id}/tasks")
def tasks(
    *,
    run_id: UUID,
    state: Annotated[
        list[TaskStateName],
        Query(max_length=20, description="Only tasks in these states, also `undecided`; repeatable."),
    ] = [],  # noqa: B006 - FastAPI copies defaults
    task: Annotated[Texts, Query(description="Only the tasks with these keys; repeatable.")] = [],  # noqa: B006
    generation: Annotated[
        int | None,
        Query(
            ge=1,
            le=30_000,
            description="Show the runs of this generation. Default: the newest run of each task.",
        ),
    ] = None,
    failed_first: Annotated[
        bool, Query(description="List tasks that failed themselves before all others.")
    ] = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Page[TaskSummary]:
    """List the tasks of a workflow run in their order: each comes after those that it depends on."""
    wanted = TasksWanted(state, task, generation, failed_first)
    filters = {"run": str(run_id)} | {
        name: str(getattr(wanted, name) or "") for name in TasksWanted.__slots__
    }
    place = caller.parts.cursors.read(_LISTING, filters, cursor)
    with caller.reading() as session:
        run = _workflow_run(caller, session, run_id)
        found = list_tasks(session.raw, run, wanted, limit=limit + 1, place=tuple(place) if place else None)
    payloads = caller.may(Permission.PAYLOADS_READ, run.namespace)
    shown = found[:limit]
    following = (shown[-1].place, shown[-1].no) if len(found) > limit else None
    return Page(
        items=[_summary_of(one, payloads=payloads) for one in shown],
        next_cursor=caller.parts.cursors.make(_LISTING, filters, following) if following else None,
    )


@also_executions(router.get, "/runs/{run_id}/graph", response_model=WorkflowGraph)
def graph(run_id: UUID, caller: Caller = needs(Permission.RUNS_READ)) -> Response:
    """Read the graph of a workflow run: its tasks with their dependencies and states.

    The `ETag` changes with the state of any task: send it as `If-None-Match` to poll.
    """
    with caller.reading() as session:
        run = _workflow_run(caller, session, run_id)
        try:
            found = read_graph(session.raw, run)
        except ValueError as error:
            raise ProblemError(CONFLICT, f"the graph of run {run_id} cannot be read: {error}") from None
    if found is None:
        raise ProblemError(NOT_FOUND, f"the job of run {run_id} was deleted, and its graph with it")
    # Encoded once: it can have 100,000 dependencies.
    content = _graph_of(run, found).model_dump_json()
    return Response(content, headers={"ETag": etag_of("graph", content)}, media_type="application/json")


def _workflow_run(caller: Caller, session: Session, run_id: UUID) -> WorkflowRun:
    """Return a workflow run, after the caller is authorised for its namespace.

    Raises:
        ProblemError: there is no such run, or it has no tasks.
    """
    run = find_workflow_run(session.raw, run_id)
    if run is None or caller.principal.role_in(run.namespace) is None:
        raise missing_run(run_id)
    caller.require(run.namespace)
    if run.origin == Origin.TASK:
        workflow = TaskKey.parse(run.request_id).workflow_id
        raise ProblemError(NOT_FOUND, f"run {run_id} is of a task; its workflow run is {workflow}")
    if not run.is_workflow:
        raise ProblemError(NOT_FOUND, f"run {run_id} is not of a workflow, so it has no tasks")
    return run


def _summary_of(task: TaskState, *, payloads: bool) -> TaskSummary:
    hidden = not payloads and task.error is not None
    fields: dict[str, Any] = {**task._asdict(), "type": task.kind, "error_hidden": hidden}
    return TaskSummary.model_validate(fields | ({"error": None} if hidden else {}))


def _graph_of(run: WorkflowRun, found: Graph) -> WorkflowGraph:
    definition = found.definition
    keys = [task.key for task in definition.tasks]
    shown = [
        GraphTask.model_validate(
            {
                **known._asdict(),
                "type": known.kind,
                "rule": task.rule,
                "final": task.is_final,
                "depends_on": [keys[edge.parent] for edge in task.edges],
                "conditions": {
                    keys[edge.parent]: _HOLDS[Choice(found.choices[edge.choice])]
                    for edge in task.edges
                    if edge.choice >= 0
                },
            }
        )
        for task, known in zip(definition.tasks, found.tasks, strict=True)
    ]
    return WorkflowGraph.model_validate(
        {
            **run._asdict(),
            "run_id": run.id,
            "states": Counter(task.state for task in found.tasks),
            "tasks": shown,
        }
    )
