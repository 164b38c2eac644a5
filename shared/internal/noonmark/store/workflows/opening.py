"""Opening workflow runs: for the first time with nothing decided, after a redrive with what it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from uuid import UUID

import psycopg

from noonmark.core.states import RunState
from noonmark.core.workflows.advancing import choices_of
from noonmark.core.workflows.progress import TaskProgress, progress_of
from noonmark.core.workflows.resuming import resume
from noonmark.store.database.columns import span
from noonmark.store.database.statements import statement
from noonmark.store.workflows.instances import OpenWorkflow
from noonmark.store.workflows.results import Instance, Results
from noonmark.store.workflows.runs import TaskRun, list_task_runs


def prepare(
    connection: psycopg.Connection, workflows: Sequence[OpenWorkflow]
) -> tuple[list[OpenWorkflow], Mapping[OpenWorkflow, str]]:
    """Give workflows that were open before the next generation, and what a redrive keeps of the last.

    Returns:
        Those that can be opened, and those that cannot, with the reason. One that somebody has opened or
        stopped meanwhile is neither.
    """
    # A run that was never queued again has not been open before.
    fit = [workflow for workflow in workflows if workflow.facts.fence <= 1]
    again = _still_queued(connection, [workflow for workflow in workflows if workflow.facts.fence > 1])
    if not again:
        return fit, {}
    earlier = list_task_runs(connection, [workflow.instance for workflow in again])
    known: dict[OpenWorkflow, bytes] = {}
    for workflow in again:
        if runs := earlier.get(workflow.facts.workflow_id):
            workflow.generation = 1 + max(run.key.generation for run in runs)
            known[workflow] = _progress_of(runs, len(workflow.compiled.definition.tasks))
    unfit = _resume(connection, known)
    return fit + [workflow for workflow in again if workflow not in unfit], unfit


def _resume(
    connection: psycopg.Connection, known: Mapping[OpenWorkflow, bytes]
) -> Mapping[OpenWorkflow, str]:
    """Set what workflows keep of what is known of their tasks; return those that cannot, with the reason."""
    results, unfit = Results(connection), {}
    results.read_ahead(_needed(known))
    for workflow, progress in known.items():
        definition, instance = workflow.compiled.definition, workflow.instance
        try:
            choices = choices_of(definition, progress, partial(results.of, instance))
            workflow.progress, workflow.choices = resume(definition, progress, choices)
        except ValueError as error:
            unfit[workflow] = str(error)
    return unfit


def _still_queued(
    connection: psycopg.Connection, workflows: Sequence[OpenWorkflow]
) -> Sequence[OpenWorkflow]:
    """Lock workflow runs; return those that are still queued."""
    if not workflows:
        return []
    which = span([(one.facts.workflow_id, one.facts.scheduled_for) for one in workflows])
    queued = {row[0] for row in connection.execute(statement("lock_queued_workflows"), which)}
    return [one for one in workflows if one.facts.workflow_id in queued]


def _needed(known: Mapping[OpenWorkflow, bytes]) -> Iterator[tuple[Instance, int]]:
    """Yield the tasks whose results the conditions of edges read."""
    for workflow, progress in known.items():
        for no, edges in enumerate(workflow.compiled.definition.conditional_edges):
            if edges and progress[no] == TaskProgress.SUCCEEDED:
                yield workflow.instance, no


def open_runs(connection: psycopg.Connection, workflows: Sequence[OpenWorkflow], *, shards: int) -> set[UUID]:
    """Move runs from queued to running; return those that were.

    A run that was cancelled, paused or opened meanwhile, or that is too late, is left alone.
    """
    if not workflows:
        return set()
    rows = connection.execute(
        statement("open_workflows"),
        {
            **span([(one.facts.workflow_id, one.facts.scheduled_for) for one in workflows]),
            "shards": [one.shard(shards) for one in workflows],
            "generations": [one.generation for one in workflows],
            "progress": [one.progress for one in workflows],
            "choices": [one.choices for one in workflows],
        },
    ).fetchall()
    return {row[0] for row in rows}


def _progress_of(runs: Sequence[TaskRun], tasks: int) -> bytes:
    """Return what is known of each task: the state of its newest run."""
    progress = bytearray(tasks)
    for run in sorted(runs, key=lambda run: run.key.generation):
        if run.key.task_no < tasks:
            progress[run.key.task_no] = progress_of(RunState(run.state), run.reason)
    return bytes(progress)
