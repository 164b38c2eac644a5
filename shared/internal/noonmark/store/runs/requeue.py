"""Requeueing runs of paused jobs: runs that lose their worker during a pause wait for the resume."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.states import JobState
from noonmark.store.database.columns import span
from noonmark.store.database.statements import statement


class LockedJobs(NamedTuple):
    """What locking the jobs of runs found.

    Attributes:
        paused: jobs that are paused.
        unavailable: runs whose job another transaction is changing, such as a person's: it was not locked.
    """

    paused: set[UUID]
    unavailable: set[UUID]


def lock_jobs(
    connection: psycopg.Connection, ids: Sequence[UUID], first: datetime, last: datetime
) -> LockedJobs:
    """Share-lock the jobs of runs until the transaction ends, but wait for none of them.

    Jobs are locked before their runs, so call this before the statement that requeues the runs. Leave out
    the runs that are unavailable: a later pass requeues them.

    Args:
        connection: in the transaction that requeues the runs.
        ids: ids of the runs.
        first: the earliest of their instants.
        last: the latest of their instants.
    """
    which = {"ids": list(ids), "first": first, "last": last}
    jobs = [row[0] for row in connection.execute(statement("list_jobs_of_runs"), which)]
    states: dict[UUID, str | None] = dict(
        connection.execute(statement("share_lock_free_jobs"), {"ids": jobs}).fetchall()
    )
    changing = [job for job, state in states.items() if state is None]
    runs = (
        connection.execute(statement("list_runs_of_jobs"), {**which, "job_ids": changing}) if changing else ()
    )
    return LockedJobs(
        {job for job, state in states.items() if state == JobState.PAUSED}, {row[0] for row in runs}
    )


def pause_requeued(
    connection: psycopg.Connection,
    queued: Sequence[tuple[UUID, datetime, UUID, int]],
    paused: Collection[UUID],
) -> None:
    """Defer requeued runs of paused jobs until the resume.

    Args:
        connection: in the transaction that requeued the runs.
        queued: run, instant, job and shard of each run.
        paused: the paused jobs, as `lock_jobs` returned them.
    """
    deferred = [(run_id, at, shard) for run_id, at, job_id, shard in queued if job_id in paused]
    if deferred:
        which = span([(run_id, at) for run_id, at, _ in deferred])
        shards = sorted({shard for _, _, shard in deferred})
        connection.execute(statement("pause_runs"), {**which, "shards": shards})
