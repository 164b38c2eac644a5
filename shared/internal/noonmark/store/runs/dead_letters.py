"""What operators do with dead letters: redrive their runs, or discard them permanently.

Both work in steps of one transaction each, and report for each refused run why it was left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.planning.promotion import UNCHECKED_QUEUE
from noonmark.core.states import JobState, Overlap, RunState, WaitReason
from noonmark.store.database.columns import span
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import acquire_slots
from noonmark.store.limits.wait_queue import gated_jobs
from noonmark.store.outcomes.events import EventTopics, announce, settled_of

STEP: Final = 1000
"""The most runs in one transaction."""


class DeadRun(NamedTuple):
    """A dead letter, identified by the key of its run."""

    run_id: UUID
    scheduled_for: datetime


@dataclass(frozen=True, slots=True)
class DeadSelection:
    """A filter for dead letters; None matches everything. `since` and `until` limit the time of death."""

    runs: Sequence[UUID] | None = None
    job: UUID | None = None
    name: str | None = None
    namespace: str | None = None
    fingerprint: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Refusal(StrEnum):
    """Why a run was left unchanged."""

    NOT_DEAD = "not_dead"
    """It has no dead letter: it never died, or was already redriven or discarded."""
    JOB_CANCELLED = "job_cancelled"
    JOB_GONE = "job_gone"
    OVERLAP = "overlap"
    """Its paused job skips overlapping runs, and another run of the job is unfinished or already waiting."""


@dataclass(slots=True)
class Settled:
    """The result of a redrive or discard: counts by new state, and the reason for each refused run."""

    states: Counter[str] = field(default_factory=Counter)
    refused: dict[UUID, Refusal] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """The number of runs that were changed."""
        return self.states.total()


class _Job(NamedTuple):
    id: UUID
    state: str
    overlap: str


class _LockedRun(NamedTuple):
    id: UUID
    scheduled_for: datetime
    job_id: UUID


def find(
    connection: psycopg.Connection, wanted: DeadSelection, *, limit: int = STEP, after: UUID | None = None
) -> list[DeadRun]:
    """Return at most `limit` dead letters that match, in the order of their runs, after the run `after`."""
    with connection.cursor(row_factory=row_of(DeadRun)) as cursor:
        return cursor.execute(
            statement("find_dead_letters"),
            {
                "runs": list(wanted.runs) if wanted.runs is not None else None,
                "job": wanted.job,
                "name": wanted.name,
                "namespace": wanted.namespace,
                "fingerprint": wanted.fingerprint,
                "reason": wanted.reason,
                "since": wanted.since,
                "until": wanted.until,
                "after": after,
                "limit": limit,
            },
        ).fetchall()


def lock_dead(connection: psycopg.Connection, runs: Sequence[DeadRun]) -> None:
    """Lock dead runs and their jobs in the order that a redrive uses, to check them before it."""
    _share_jobs(connection, runs)
    _lock_runs(connection, runs, Settled())


def redrive(
    connection: psycopg.Connection, topics: EventTopics, runs: Sequence[DeadRun], *, shards: int
) -> Settled:
    """Requeue dead runs under a higher fence, with both budgets reset, in one transaction.

    A run is queued with its outbox row, or it waits: until its paused job is resumed, or, if its job has
    limits or its runs must not overlap, until the trigger promotes it. So a redrive violates neither.

    Args:
        connection: a transaction may be open.
        topics: where the runs are announced.
        runs: at most `STEP`.
        shards: the number of shards of the installation.
    """
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        done = Settled()
        jobs = _share_jobs(connection, runs)
        locked = _lock_runs(connection, runs, done)
        for run in locked:
            if (verdict := _refusal(jobs.get(run.job_id))) is not None:
                done.refused[run.id] = verdict
        fit = [run for run in locked if run.id not in done.refused]
        holders, refused_slots = _hold_slots(connection, fit, jobs)
        done.refused.update(dict.fromkeys(refused_slots, Refusal.OVERLAP))
        fit = [run for run in fit if run.id not in refused_slots]
        if not fit:
            return done
        gated = gated_jobs(connection, {run.job_id for run in fit})
        waits = {str(run.id): why.value for run in fit if (why := _wait(jobs[run.job_id], gated)) is not None}
        redriven = cursor.execute(
            statement("redrive_runs"),
            {
                **span(_keys(fit)),
                "waits": orjson.dumps(waits).decode(),
                "key": UNCHECKED_QUEUE,
                "holders": list(holders),
            },
        ).fetchall()
        _settle(connection, topics, redriven, fit, done, shards=shards)
    return done


def discard(
    connection: psycopg.Connection,
    topics: EventTopics,
    runs: Sequence[DeadRun],
    *,
    reason: str | None,
    shards: int,
) -> Settled:
    """Set dead runs to `discarded`, in one transaction.

    Args:
        connection: a transaction may be open.
        topics: where the verdicts are announced.
        runs: at most `STEP`.
        reason: why, for people; it replaces the reason of the death. None: that reason stays.
        shards: the number of shards of the installation.
    """
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        done = Settled()
        locked = _lock_runs(connection, runs, done)
        if not locked:
            return done
        which = span(_keys(locked))
        settled = cursor.execute(statement("discard_runs"), {**which, "reason": reason}).fetchall()
        _settle(connection, topics, settled, locked, done, shards=shards)
    return done


def _share_jobs(connection: psycopg.Connection, runs: Sequence[DeadRun]) -> Mapping[UUID, _Job]:
    ids = [
        row[0]
        for row in connection.execute(
            "select distinct job_id from dead_letters where run_id = any (%s) order by job_id",
            [[run.run_id for run in runs]],
        )
    ]
    with connection.cursor(row_factory=row_of(_Job)) as cursor:
        return {job.id: job for job in cursor.execute(statement("share_lock_jobs"), {"ids": ids})}


def _lock_runs(connection: psycopg.Connection, runs: Sequence[DeadRun], done: Settled) -> list[_LockedRun]:
    """Lock those of the runs that are dead; the others are refused."""
    with connection.cursor(row_factory=row_of(_LockedRun)) as cursor:
        locked = cursor.execute(statement("lock_dead_runs"), span(runs)).fetchall()
    found = {run.id for run in locked}
    done.refused.update((run.run_id, Refusal.NOT_DEAD) for run in runs if run.run_id not in found)
    return locked


def _refusal(job: _Job | None) -> Refusal | None:
    if job is None:
        return Refusal.JOB_GONE
    return Refusal.JOB_CANCELLED if job.state == JobState.CANCELLED else None


def _hold_slots(
    connection: psycopg.Connection, runs: Sequence[_LockedRun], jobs: Mapping[UUID, _Job]
) -> tuple[set[UUID], set[UUID]]:
    """Acquire the slots of paused jobs that skip overlapping runs: a resume queues the slot holders at once.

    Returns the runs that acquired a slot, and the runs that did not.
    """
    wanted = [
        (run.id, run.job_id)
        for run in runs
        if jobs[run.job_id].state == JobState.PAUSED and jobs[run.job_id].overlap == Overlap.SKIP
    ]
    holders = acquire_slots(connection, wanted)
    return holders, {run_id for run_id, _ in wanted} - holders


def _wait(job: _Job, gated: Collection[UUID]) -> WaitReason | None:
    """Return what a redriven run of the job must wait for; None if it can be queued."""
    if job.state == JobState.PAUSED:
        return WaitReason.PAUSED
    if job.overlap != Overlap.ALLOW:
        return WaitReason.OVERLAP
    return WaitReason.LIMIT if job.id in gated else None


def _keys(runs: Sequence[_LockedRun]) -> list[tuple[UUID, datetime]]:
    return [(run.id, run.scheduled_for) for run in runs]


def _settle(
    connection: psycopg.Connection,
    topics: EventTopics,
    changed: Sequence[ChangedRun],
    locked: Sequence[_LockedRun],
    done: Settled,
    *,
    shards: int,
) -> None:
    assert len(changed) == len(locked), "dead runs changed under their lock"
    announce(connection, topics, [settled_of(run) for run in changed], shards=shards)
    done.states.update(RunState(run.state).value for run in changed)
