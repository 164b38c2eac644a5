"""Records instants as skipped that came due before their job was cancelled, replaced or paused."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Final, NamedTuple
from uuid import UUID

import orjson

from noonmark.core.ids import uuid7_batch
from noonmark.core.planning.plan import plan_skips
from noonmark.core.schedules.schedule import Schedule
from noonmark.core.states import JobState, Lane, Origin, RunState, SkipReason
from noonmark.schemas.events.settled import SettledRun
from noonmark.store.database.statements import statement
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.jobs.locks import LockedJob
from noonmark.store.jobs.requests import Batch
from noonmark.store.outcomes.events import announce

_SKIPPING_SECONDS: Final = 1.5
"""How long one request may spend on skipped instants, inside the transaction of its batch."""


class _Skipped(NamedTuple):
    """An instant, or a range of instants with the last one and their number."""

    scheduled_for: datetime
    last_scheduled_for: datetime | None = None
    instants: int = 1


def skip_due(
    batch: Batch, job: LockedJob, dropped: Sequence[tuple[datetime, datetime | None]]
) -> datetime | None:
    """Record the unsettled instants of a cancelled, replaced or paused job as skipped.

    Returns the first instant that is left if there are too many for one request; otherwise None.

    Args:
        batch: the transaction that deletes the timers.
        job: the job as it was locked, before the change.
        dropped: for each deleted timer, its nominal instant and the last settled instant.
    """
    overdue = [(at, after_at) for at, after_at in dropped if at <= batch.now]
    if not overdue:
        return None
    first, after = min(overdue, key=itemgetter(0))
    paused = job.recurring and job.state == JobState.PAUSED
    reason = SkipReason.PAUSED if paused else SkipReason.CANCELLED
    schedule = _schedule_of(batch, job) if job.recurring else None
    if schedule is None:
        _settle(batch, job, [_Skipped(first)], reason)
        return None
    # If both are equal, the timer only marks a settled instant, and the next one must be computed.
    due = first if first != after else schedule.next(first)
    ends_at = time.monotonic() + _SKIPPING_SECONDS
    while due is not None and due <= batch.now:
        if time.monotonic() > ends_at:
            return due
        planned = plan_skips(schedule, reason, due=due, now=batch.now)
        rows = [_Skipped(instant.scheduled_for) for instant in planned.runs]
        rows += [_Skipped(gap.first, gap.last, gap.count) for gap in planned.summary]
        _settle(batch, job, rows, reason)
        due = planned.next_at
    return None


def _schedule_of(batch: Batch, job: LockedJob) -> Schedule | None:
    """Return a job's schedule; None if it cannot be read, because such a job can still be cancelled."""
    schedules = ScheduleTexts()
    text = orjson.dumps(job.schedule).decode()
    schedules.learn(batch.connection, [text])
    try:
        return schedules.read(text)
    except Exception:  # noqa: BLE001 - rows can be damaged in many ways
        return None


def _settle(batch: Batch, job: LockedJob, rows: Sequence[_Skipped], reason: SkipReason) -> None:
    for row in rows:
        batch.known.ensure_day(batch.connection, row.scheduled_for)
    _write(batch, job, rows, reason)


def _write(batch: Batch, job: LockedJob, rows: Sequence[_Skipped], reason: SkipReason) -> None:
    count = len(rows)
    ids = uuid7_batch(count)
    inserted = batch.connection.execute(
        statement("insert_runs"),
        {
            "ids": ids,
            "scheduled_for": [row.scheduled_for for row in rows],
            "last_scheduled_for": [row.last_scheduled_for for row in rows],
            "instants": [row.instants for row in rows],
            "job_ids": [job.id] * count,
            "job_versions": [job.version] * count,
            "states": [RunState.SKIPPED.value] * count,
            "reasons": [reason.value] * count,
            "start_by": [None] * count,
            "holds_slot": [False] * count,
            "shards": [job.shard] * count,
            "lanes": [job.lane] * count,
            "namespaces": [job.namespace] * count,
            "pools": [job.pool] * count,
            "origins": [Origin.SCHEDULE.value] * count,
            "request_ids": [""] * count,
            "arrays": False,
        },
    ).fetchall()
    written = {row[0] for row in inserted}
    new = [(run_id, row.scheduled_for) for run_id, row in zip(ids, rows, strict=True) if run_id in written]
    announce_skips(batch, job, new, origin=Origin.SCHEDULE, reason=reason)


def announce_skips(
    batch: Batch,
    job: LockedJob,
    runs: Sequence[tuple[UUID, datetime]],
    *,
    origin: Origin,
    reason: SkipReason,
) -> None:
    """Announce runs of a job that were skipped before they were queued, by id and nominal instant."""
    settled = [
        SettledRun(
            run_id=run_id,
            job_id=job.id,
            namespace=job.namespace,
            scheduled_for=scheduled_for,
            origin=origin.value,
            state=RunState.SKIPPED.value,
            reason=reason.value,
            attempt=0,
            fence=1,
            lane=Lane(job.lane).label,
            pool=job.pool,
            started_at=None,
            finished_at=batch.now,
            error=None,
        )
        for run_id, scheduled_for in runs
    ]
    announce(batch.connection, batch.topics, settled, shards=batch.shards)
