"""Reads what `why` must know about the workflow run of a run: its graph, and the states of its tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

import psycopg

from noonmark.core.states import Origin, RunState
from noonmark.core.why.facts import RunFacts, TaskFacts, WorkflowFacts
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.ids import TaskKey
from noonmark.store.views.workflow_tasks import (
    TaskState,
    find_workflow_run,
    progress_bytes,
    read_graph,
)


def workflow_facts(connection: psycopg.Connection, run: RunFacts) -> WorkflowFacts | None:
    """Return the facts about the workflow run that a run is, or that its task is part of.

    None for all other runs, and if the job was deleted or its graph cannot be read.
    """
    if run.pool != WORKFLOW_POOL and run.origin != Origin.TASK:
        return None
    found = find_workflow_run(connection, run.id)
    key = None
    if found is not None and found.origin == Origin.TASK:
        key = TaskKey.parse(found.request_id)
        found = find_workflow_run(connection, key.workflow_id)
    if found is None:
        return None
    try:
        graph = read_graph(connection, found)
    except ValueError:
        return None
    if graph is None:
        return None
    return WorkflowFacts(
        found.id,
        found.state,
        graph.definition,
        [_facts_of(task) for task in graph.tasks],
        found.progress if found.progress is not None else progress_bytes(graph.tasks),
        graph.choices,
        found.held_at if found.state == RunState.RUNNING and found.stopping is None else None,
        key.task_no if key is not None else None,
    )


def run_of_task(workflow: WorkflowFacts, key: str) -> UUID | WorkflowFacts | None:
    """Return the id of the run of a workflow's task; if it has none, the facts that ask about the task.

    None: it has no such task.
    """
    no = workflow.definition.numbers.get(key)
    if no is None:
        return None
    return workflow.tasks[no].run_id or replace(workflow, task=no)


def _facts_of(task: TaskState) -> TaskFacts:
    return TaskFacts(task.key or str(task.no), task.state, task.reason, _since(task), task.run_id, task.error)


def _since(task: TaskState) -> datetime | None:
    if task.finished_at is not None:
        return task.finished_at
    if task.state in {RunState.RUNNING, RunState.CANCELLING, RunState.RETRYING}:
        return task.started_at
    return task.queued_at or task.due_at
