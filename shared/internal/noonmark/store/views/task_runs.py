"""What listings and details of runs say about the runs of tasks: their workflow run, their task, its type."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnCollection,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Uuid,
    and_,
    case,
    func,
    select,
)
from sqlalchemy import cast as as_type

from noonmark.core.states import Origin
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.ids import TaskKey
from noonmark.store.tables import tables as t

TASK_FIELDS: Final = ("workflow_id", "task", "generation")
"""Fields of runs that only those of tasks have."""


def is_task(r: FromClause) -> ColumnElement[bool]:
    """Return whether a run is that of a task."""
    return r.c.origin == Origin.TASK.value


def of_workflow(r: FromClause, workflow_id: UUID) -> ColumnElement[bool]:
    """Return whether a run is that of a task of this workflow run."""
    return and_(is_task(r), _part(r, 1) == str(workflow_id))


def its_task(r: FromClause) -> ColumnElement[bool]:
    """Return the condition that joins `workflow_tasks` to runs; runs that are not of tasks have none."""
    task = t.workflow_tasks.c
    return and_(
        task.job_id == r.c.job_id,
        task.version == r.c.job_version,
        task.task_no == case((is_task(r), as_type(_part(r, 2), Integer()))),
    )


def task_columns(r: FromClause) -> list[ColumnElement[Any]]:
    """Return `TASK_FIELDS`, `kind` and `handler` of runs, which are joined to `jobs` and `workflow_tasks`."""
    task, j = t.workflow_tasks.c, t.jobs.c
    return [
        case((is_task(r), as_type(_part(r, 1), Uuid()))).label("workflow_id"),
        task.key.label("task"),
        case((is_task(r), as_type(_part(r, 4), Integer()))).label("generation"),
        case((task.key.is_not(None), task.kind), else_=j.kind).label("kind"),
        case((task.key.is_not(None), task.handler), else_=j.handler).label("handler"),
    ]


def held_at(r: ColumnCollection[str, Any]) -> ColumnElement[Any]:
    """Return the column with the instant since when a run is held; null for all but open workflow runs."""
    w = t.workflows.c
    held = select(w.held_at).where(w.run_id == r.id, r.pool == WORKFLOW_POOL)
    return held.scalar_subquery().label("held_at")


def add_task(connection: Connection, run: dict[str, Any]) -> None:
    """Add `TASK_FIELDS` to a row of `runs`, and replace type and handler of the job by those of the task."""
    run |= dict.fromkeys(TASK_FIELDS)
    if run["origin"] != Origin.TASK:
        return
    key = TaskKey.parse(run["request_id"])
    run |= {"workflow_id": key.workflow_id, "generation": key.generation}
    task = t.workflow_tasks.c
    found = connection.execute(
        select(task.key, task.kind, task.handler).where(
            task.job_id == run["job_id"], task.version == run["job_version"], task.task_no == key.task_no
        )
    ).first()
    if found is not None:
        run |= {"task": found.key, "kind": found.kind, "handler": found.handler}


def _part(r: FromClause, number: int) -> ColumnElement[str]:
    return func.split_part(r.c.request_id, "/", number)
