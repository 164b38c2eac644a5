"""Stopping a workflow run, because somebody cancelled it or its deadline has passed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import psycopg

from noonmark.core.states import RunState
from noonmark.core.workflows.progress import TaskProgress, main_ended, progress_of
from noonmark.core.workflows.verdicts import Stop
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs.cancel import STEP, RunKey, cancel
from noonmark.store.workflows.instances import OpenWorkflow
from noonmark.store.workflows.runs import TaskRun, list_task_runs


def stop(
    connection: psycopg.Connection, workflows: Sequence[OpenWorkflow], topics: EventTopics, *, shards: int
) -> None:
    """Cancel the runs of the tasks of those workflows that are to stop, and note what has ended.

    Runs without a worker end now; running ones are asked to stop, and their ends come later.
    """
    stopping = [workflow for workflow in workflows if _starts_to_stop(workflow)]
    released = [workflow for workflow in workflows if workflow not in stopping and _is_released(workflow)]
    if not stopping and not released:
        return
    before = list_task_runs(connection, [workflow.instance for workflow in stopping])
    by_reason: dict[str, list[RunKey]] = defaultdict(list)
    for workflow in stopping:
        live = [run for run in before.get(workflow.facts.workflow_id, ()) if _is_live(workflow, run)]
        by_reason[_because(workflow)] += [RunKey(run.id, workflow.facts.scheduled_for) for run in live]
    for reason, keys in by_reason.items():
        for at in range(0, len(keys), STEP):
            some = keys[at : at + STEP]
            cancel(connection, topics, some, reason=reason, shards=shards, report_tasks=False)
    # What had ended already may wait in timers that a pause or a hold has parked: the ledger is read instead.
    after = list_task_runs(connection, [workflow.instance for workflow in (*stopping, *released)])
    for workflow in (*stopping, *released):
        for run in after.get(workflow.facts.workflow_id, ()):
            reached = progress_of(RunState(run.state), run.reason)
            if _is_of(workflow, run) and reached is not TaskProgress.LIVE:
                workflow.ends.append((run.key.task_no, reached))


def _starts_to_stop(workflow: OpenWorkflow) -> bool:
    """Note why a workflow is to stop, if it is; return whether that is new."""
    facts = workflow.facts
    if workflow.stopping is not None or main_ended(workflow.compiled.definition, workflow.progress):
        return False
    if facts.state == RunState.CANCELLING:
        workflow.stopping = Stop.CANCELLED
    elif (deadline := workflow.deadline()) is not None and facts.now >= deadline:
        workflow.stopping = Stop.DEADLINE
    return workflow.stopping is not None


def _is_released(workflow: OpenWorkflow) -> bool:
    """Return whether a held run was cancelled when only `finally` was left: a cancel is not held back."""
    facts = workflow.facts
    return facts.asked and facts.held_at is not None and facts.state == RunState.CANCELLING


def _is_of(workflow: OpenWorkflow, run: TaskRun) -> bool:
    return run.key.generation == workflow.generation and run.key.task_no < len(workflow.progress)


def _is_live(workflow: OpenWorkflow, run: TaskRun) -> bool:
    return (
        _is_of(workflow, run)
        and workflow.progress[run.key.task_no] == TaskProgress.LIVE
        and not workflow.compiled.definition.tasks[run.key.task_no].is_final
    )


def _because(workflow: OpenWorkflow) -> str:
    """Return the reason that the cancelled runs of tasks keep."""
    if workflow.stopping is Stop.DEADLINE:
        return "the deadline of the workflow run passed"
    return workflow.facts.reason or "the workflow run was cancelled"
