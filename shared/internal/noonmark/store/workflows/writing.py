"""Writing what a pass decided: runs of tasks with their messages, states of workflows, verdicts."""

from __future__ import annotations

from collections import Counter
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
from noonmark.store.database.columns import Instants, SmallInts, Texts, UuidBytes, span
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
    written = _insert(connection, rows, shards=shards, arrays=arrays)
    if len(written) < len(rows):
        ids = {row.id for row in written}
        _report_earlier_ends(connection, [row for row in rows if row.id not in ids])
    _wait(connection, [row for row in written if row.gate is not None])
    states = Counter(row.state for row in written)
    done.queued += states[RunState.QUEUED]
    done.waiting += states[RunState.WAITING]
    for row in rows:
        if row.state is RunState.SKIPPED and row.reason is not None:
            done.skipped[row.reason] += 1
    skipped = [_skipped(row) for row in written if row.state is RunState.SKIPPED]
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


class _Common(NamedTuple):
    """What the rows of one workflow have in common, as columns have it."""

    scheduled_for: datetime
    job_id: bytes
    job_version: int
    shard: int
    namespace: str
    before_task: str
    after_task: str


def _common(workflow: OpenWorkflow, shards: int) -> _Common:
    facts = workflow.facts
    # No key has the number -1: what is around it is around every number.
    before, after = workflow.key_of(-1).split("-1/")
    return _Common(
        facts.scheduled_for,
        facts.job_id.bytes,
        facts.job_version,
        workflow.shard(shards),
        facts.namespace,
        before,
        f"/{after}",
    )


def _insert(
    connection: psycopg.Connection, rows: Sequence[_TaskRow], *, shards: int, arrays: bool
) -> Sequence[_TaskRow]:
    """Write rows; return those that were written: all, unless a task had a run already."""
    if not rows:
        return rows
    known = {workflow: _common(workflow, shards) for workflow in {row.workflow for row in rows}}
    common = [known[row.workflow] for row in rows]
    with connection.cursor(binary=True) as cursor:
        written = cursor.execute(
            planned_once("insert_task_runs"),
            {
                "ids": UuidBytes.of(row.id for row in rows),
                "scheduled_for": Instants([one.scheduled_for for one in common]),
                "job_ids": UuidBytes([one.job_id for one in common]),
                "job_versions": [one.job_version for one in common],
                "states": Texts([row.state._value_ for row in rows]),
                "reasons": Texts([row.reason for row in rows]),
                "start_by": Instants([_start_by(row) for row in rows]),
                "shards": SmallInts([one.shard for one in common]),
                "lanes": SmallInts([row.workflow.lane_of(row.task) for row in rows]),
                "namespaces": Texts([one.namespace for one in common]),
                "pools": Texts([row.workflow.compiled.pools[row.task] for row in rows]),
                "request_ids": Texts(
                    [
                        f"{one.before_task}{row.task}{one.after_task}"
                        for row, one in zip(rows, common, strict=True)
                    ]
                ),
                "arrays": arrays,
            },
        ).fetchone()
    assert written is not None
    count, ids = written
    if count == len(rows):
        return rows
    left = set(ids or ())
    return [row for row in rows if row.id in left]


def _report_earlier_ends(connection: psycopg.Connection, rows: Sequence[_TaskRow]) -> None:
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
