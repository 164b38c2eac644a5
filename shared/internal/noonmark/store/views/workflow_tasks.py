"""The tasks of a workflow's versions, and those of one workflow run with their states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.states import RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.advancing import choices_of
from noonmark.core.workflows.definition import Definition
from noonmark.core.workflows.progress import TaskProgress, progress_of
from noonmark.core.workflows.stored import definition_of
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.workflows import StoredTask
from noonmark.store.workflows.definitions import Definitions
from noonmark.store.workflows.results import Instance, Results

MOST_TASKS: Final = 20_000
"""Most tasks that one listing of versions reads."""

UNDECIDED: Final = "undecided"
"""What is shown as the state of a task without a run."""

_ERROR_CHARS: Final = 300
_MOST_RESULTS: Final = 200
"""Most results that are read to say which conditions of a workflow run held that has ended."""


class WorkflowRun(NamedTuple):
    """A run of a workflow; what follows `error` is null unless it is open.

    Attributes:
        generation: number of times that it was opened.
        progress: a byte for each task.
        choices: a byte for each edge with a condition.
    """

    id: UUID
    job_id: UUID
    job_version: int
    scheduled_for: datetime
    namespace: str
    pool: str
    origin: str
    request_id: str
    state: str
    reason: str | None
    error: str | None
    generation: int | None
    progress: bytes | None
    choices: bytes | None
    opened_at: datetime | None
    held_at: datetime | None
    stopping: str | None

    @property
    def is_workflow(self) -> bool:
        """Whether it has tasks."""
        return self.pool == WORKFLOW_POOL


class TaskState(NamedTuple):
    """A task of a workflow run and its run, if it has one: a row of `list_task_states`.

    Attributes:
        key: name of the task; None: the job was deleted.
        kind: type of the task, such as `http`.
        state: of its run, or `UNDECIDED`.
        error: its first characters.
        place: 0 for tasks that failed, if they were wanted first; else 1.
    """

    no: int
    key: str | None
    kind: str | None
    state: str
    reason: str | None
    generation: int | None
    run_id: UUID | None
    attempt: int | None
    due_at: datetime | None
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    place: int


@dataclass(frozen=True, slots=True)
class TasksWanted:
    """Selects tasks of a workflow run; fields that are None or empty do not restrict.

    Attributes:
        states: of their runs; also `UNDECIDED`.
        keys: names of tasks.
        generation: show the runs of this generation, instead of the newest of each task.
        failed_first: list tasks that failed before all others.
    """

    states: Collection[str] = ()
    keys: Collection[str] = ()
    generation: int | None = None
    failed_first: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a workflow run, with what is known of its tasks.

    Attributes:
        definition: the graph.
        tasks: by number.
        choices: a byte for each edge with a condition.
    """

    definition: Definition
    tasks: Sequence[TaskState]
    choices: bytes


_EVERYTHING: Final = TasksWanted()
_DEFINITIONS: Final = Definitions()


def stored_tasks(
    connection: psycopg.Connection, job_id: UUID, versions: Collection[int], *, documents: bool = True
) -> dict[int, list[StoredTask]]:
    """Return the tasks of versions of a workflow, by version, each in the order of their numbers.

    Older versions are left out if the newer ones have `MOST_TASKS` tasks. Without `documents`, these are
    empty.
    """
    if not versions:
        return {}
    asked = {"job_id": job_id, "versions": list(versions), "most": MOST_TASKS, "documents": documents}
    found: dict[int, list[StoredTask]] = defaultdict(list)
    for version, key, graph, document in connection.execute(statement("show_workflow_tasks"), asked):
        found[version].append(StoredTask(key, graph, document or {}))
    return dict(found)


def find_workflow_run(connection: psycopg.Connection, run_id: UUID) -> WorkflowRun | None:
    """Return a run, as far as workflows need it; None if the connection sees no such run."""
    with connection.cursor(row_factory=row_of(WorkflowRun)) as cursor:
        return cursor.execute(statement("find_workflow_run"), {"run_id": run_id}).fetchone()


def list_tasks(
    connection: psycopg.Connection,
    run: WorkflowRun,
    wanted: TasksWanted = _EVERYTHING,
    *,
    limit: int | None = None,
    place: tuple[int, int] | None = None,
) -> list[TaskState]:
    """List the tasks of a workflow run by number.

    Args:
        connection: in a transaction.
        run: the workflow run.
        wanted: the filter.
        limit: maximum number of tasks; None: all.
        place: `place` and `no` of the last task of the previous page.
    """
    after_place, after_no = place or (-1, -1)
    with connection.cursor(row_factory=row_of(TaskState)) as cursor:
        return cursor.execute(
            statement("list_task_states"),
            {
                "workflow_id": run.id,
                "job_id": run.job_id,
                "version": run.job_version,
                "scheduled_for": run.scheduled_for,
                "progress": run.progress,
                "generation": wanted.generation,
                "keys": list(wanted.keys) or None,
                "states": list(wanted.states) or None,
                "failed_first": wanted.failed_first,
                "error_chars": _ERROR_CHARS,
                "after_place": after_place,
                "after_no": after_no,
                "limit": limit,
            },
        ).fetchall()


def read_graph(connection: psycopg.Connection, run: WorkflowRun) -> Graph | None:
    """Return the graph of a workflow run; None if its job was deleted.

    Raises:
        ValueError: the tasks of its version cannot be read.
    """

    def read() -> Definition | None:
        versions = stored_tasks(connection, run.job_id, [run.job_version], documents=False)
        stored = versions.get(run.job_version)
        return None if stored is None else definition_of([(task.key, task.graph) for task in stored])

    definition = _DEFINITIONS.get((run.job_id, run.job_version), read)
    tasks = list_tasks(connection, run)
    # Without its tasks, the job was deleted: a known graph has outlived it.
    if definition is None or len(tasks) != len(definition.tasks) or tasks[0].key is None:
        return None
    choices = run.choices
    if choices is None:
        choices = _choices(connection, run, definition, tasks)
    return Graph(definition, tasks, choices)


def progress_bytes(tasks: Sequence[TaskState]) -> bytes:
    """Return the progress of tasks by number, as `noonmark.core.workflows.progress` has it."""
    return bytes(
        TaskProgress.UNDECIDED if task.state == UNDECIDED else progress_of(RunState(task.state), task.reason)
        for task in tasks
    )


def _choices(
    connection: psycopg.Connection, run: WorkflowRun, definition: Definition, tasks: Sequence[TaskState]
) -> bytes:
    """Evaluate the conditions of a workflow run that is not open; unknown if there are many."""
    unknown = bytes(definition.choices)
    parents = {
        no: tasks[no].generation or 1
        for no, edges in enumerate(definition.conditional_edges)
        if edges and tasks[no].state == RunState.SUCCEEDED
    }
    if not parents or len(parents) > _MOST_RESULTS:
        return unknown
    newest = max(parents.values())
    instance = Instance(run.id, run.job_id, run.scheduled_for, newest)
    results = Results(connection)
    results.read_ahead([(instance, no) for no in parents])
    return choices_of(definition, progress_bytes(tasks), lambda no: results.of(instance, no))
