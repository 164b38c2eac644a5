"""Writing what a pass decided: runs of tasks with their messages, states of workflows, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.ids import uuid7_batch
from noonmark.core.planning.promotion import Gate, gates_of
from noonmark.core.states import JobState, Lane, Origin, Overlap, RunState, WaitReason
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.schemas.events.settled import SettledRun
from noonmark.store.database.columns import span
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.limits.wait_queue import WaitingRun, enqueue_waiting
from noonmark.store.outcomes.events import EventTopics, announce, settled_of
from noonmark.store.runs.starts import StartRequest, expire
from noonmark.store.workflows.advanced import Advanced
from noonmark.store.workflows.facts import WorkflowTimer, insert_workflow_timers
from noonmark.store.workflows.instances import OpenWorkflow
from noonmark.store.workflows.opening import open_runs


class _TaskRow(NamedTuple):
    """A run of a task to write."""

    id: UUID
    workflow: OpenWorkflow
    task: int
    state: RunState
    reason: str | None
    gate: Gate | None = None


def write(
    connection: psycopg.Connection,
    workflows: Sequence[OpenWorkflow],
    done: Advanced,
    *,
    topics: EventTopics,
    shards: int,
    arrays: bool,
) -> None:
    """Write the decisions of a pass, in its transaction, and count them."""
    workflows = _open(connection, workflows, done, topics, shards=shards)
    rows = _rows(workflows)
    inserted = _insert(connection, rows, shards=shards, arrays=arrays)
    _tell_of_earlier(connection, [row for row in rows if row.id not in inserted])
    _wait(connection, [row for row in rows if row.gate is not None and row.id in inserted])
    for row in rows:
        done.queued += row.state is RunState.QUEUED and row.id in inserted
        done.waiting += row.state is RunState.WAITING and row.id in inserted
        if row.state is RunState.SKIPPED and row.reason is not None:
            done.skipped[row.reason] += 1
    skipped = [_skipped(row) for row in rows if row.state is RunState.SKIPPED and row.id in inserted]
    announce(connection, topics, skipped, shards=shards, report_tasks=False)
    _update(connection, [one for one in workflows if one.ending is None])
    _close(connection, [one for one in workflows if one.ending is not None], done, topics, shards=shards)


def _open(
    connection: psycopg.Connection,
    workflows: Sequence[OpenWorkflow],
    done: Advanced,
    topics: EventTopics,
    *,
    shards: int,
) -> Sequence[OpenWorkflow]:
    """Open the new ones; return all that are open, without those that could not be opened."""
    new = [workflow for workflow in workflows if workflow.is_new]
    if not new:
        return workflows
    opened = open_runs(connection, new, shards=shards)
    done.opened = len(opened)
    if len(opened) < len(new):
        late = [one.facts for one in new if one.facts.workflow_id not in opened]
        requests = [StartRequest(one.workflow_id, one.scheduled_for, one.fence) for one in late]
        expire(connection, topics, requests, shards=shards)
    deadlines = [
        WorkflowTimer(
            *(facts.workflow_id, facts.scheduled_for, facts.job_id, facts.job_version, one.shard(shards)),
            *(facts.lane, facts.namespace, WORKFLOW_POOL),
            fire_at=deadline,
        )
        for one in new
        if (facts := one.facts).workflow_id in opened
        and one.ending is None
        and (deadline := one.deadline()) is not None
    ]
    insert_workflow_timers(connection, deadlines)
    return [one for one in workflows if not one.is_new or one.facts.workflow_id in opened]


def _rows(workflows: Sequence[OpenWorkflow]) -> list[_TaskRow]:
    """Return the rows of decided tasks, those of higher lanes first."""
    decided = [
        (workflow, task, RunState.QUEUED, None) for workflow in workflows for task in workflow.started
    ] + [
        (workflow, task, RunState.SKIPPED, reason.value)
        for workflow in workflows
        for task, reason in workflow.skipped
    ]
    ids = uuid7_batch(len(decided))
    return [_gated(_TaskRow(run_id, *each)) for run_id, each in zip(ids, decided, strict=True)]


def _gated(row: _TaskRow) -> _TaskRow:
    """Let a run wait if its job is paused, or its namespace has a cap."""
    facts = row.workflow.facts
    if row.state is not RunState.QUEUED:
        return row
    if facts.job_state == JobState.PAUSED:
        return row._replace(state=RunState.WAITING, reason=WaitReason.PAUSED.value)
    if not facts.capped:
        return row
    lane = row.workflow.lane_of(row.task)
    gate = gates_of(facts.job_id, facts.namespace, lane, (), Overlap.ALLOW, capped=True)[0]
    return row._replace(state=RunState.WAITING, reason=gate.reason.value, gate=gate)


def _insert(
    connection: psycopg.Connection, rows: Sequence[_TaskRow], *, shards: int, arrays: bool
) -> set[UUID]:
    if not rows:
        return set()
    facts = [row.workflow.facts for row in rows]
    inserted = connection.execute(
        planned_once("insert_task_runs"),
        {
            "ids": [row.id for row in rows],
            "scheduled_for": [one.scheduled_for for one in facts],
            "job_ids": [one.job_id for one in facts],
            "job_versions": [one.job_version for one in facts],
            "states": [row.state.value for row in rows],
            "reasons": [row.reason for row in rows],
            "start_by": [_start_by(row) for row in rows],
            "shards": [row.workflow.shard(shards) for row in rows],
            "lanes": [row.workflow.lane_of(row.task) for row in rows],
            "namespaces": [one.namespace for one in facts],
            "pools": [row.workflow.compiled.pools[row.task] for row in rows],
            "request_ids": [row.workflow.key_of(row.task) for row in rows],
            "arrays": arrays,
        },
    ).fetchall()
    return {row[0] for row in inserted}


def _tell_of_earlier(connection: psycopg.Connection, rows: Sequence[_TaskRow]) -> None:
    """Tell of tasks that had a run before they were due, if it has ended: nobody else will."""
    if rows:
        connection.execute(
            statement("report_earlier_runs"),
            {
                "job_ids": [row.workflow.facts.job_id for row in rows],
                "scheduled_for": [row.workflow.facts.scheduled_for for row in rows],
                "keys": [row.workflow.key_of(row.task) for row in rows],
            },
        )


def _start_by(row: _TaskRow) -> datetime | None:
    seconds = row.workflow.compiled.definition.tasks[row.task].start_deadline_seconds
    if seconds is None or row.state is RunState.SKIPPED:
        return None
    return row.workflow.facts.now + timedelta(seconds=seconds)


def _wait(connection: psycopg.Connection, rows: Sequence[_TaskRow]) -> None:
    enqueue_waiting(
        connection,
        [
            WaitingRun(
                row.id,
                (facts := row.workflow.facts).scheduled_for,
                facts.job_id,
                row.workflow.lane_of(row.task),
                row.gate,
                _start_by(row),
                facts.now,
            )
            for row in rows
            if row.gate is not None
        ],
    )


def _skipped(row: _TaskRow) -> SettledRun:
    facts = row.workflow.facts
    return SettledRun(
        run_id=row.id,
        job_id=facts.job_id,
        namespace=facts.namespace,
        scheduled_for=facts.scheduled_for,
        origin=Origin.TASK.value,
        state=RunState.SKIPPED.value,
        reason=row.reason,
        attempt=0,
        fence=1,
        lane=Lane(row.workflow.lane_of(row.task)).label,
        pool=row.workflow.compiled.pools[row.task],
        started_at=None,
        finished_at=facts.now,
        error=None,
    )


def _update(connection: psycopg.Connection, workflows: Sequence[OpenWorkflow]) -> None:
    """Write the states of workflows that go on; those that were opened just now are written already."""
    changed = [one for one in workflows if not one.is_new]
    if not changed:
        return
    rows = connection.execute(
        planned_once("update_workflows"),
        {
            "ids": [one.facts.workflow_id for one in changed],
            "progress": [one.progress for one in changed],
            "choices": [one.choices for one in changed],
            "stopping": [one.stopping for one in changed],
        },
    ).rowcount
    assert rows == len(changed), "workflows changed under their lock"


def _close(
    connection: psycopg.Connection,
    workflows: Sequence[OpenWorkflow],
    done: Advanced,
    topics: EventTopics,
    *,
    shards: int,
) -> None:
    """End workflow runs, with everything that follows from the end of a run."""
    if not workflows:
        return
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        ended = cursor.execute(
            statement("close_workflows"),
            {
                **span([(one.facts.workflow_id, one.facts.scheduled_for) for one in workflows]),
                "verdicts": orjson.dumps(
                    {str(one.facts.workflow_id): _verdict(one) for one in workflows}
                ).decode(),
            },
        ).fetchall()
    assert len(ended) == len(workflows), "workflow runs changed under their lock"
    done.freed |= release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    done.ended.update((run.state, run.lane) for run in ended)


def _verdict(workflow: OpenWorkflow) -> list[object]:
    """Return state, reason, error and result of a workflow run that ends, as `close_workflows` reads them."""
    ending = workflow.ending
    assert ending is not None
    return [ending.state.value, ending.reason, workflow.error, workflow.result]
