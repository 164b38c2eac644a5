"""Requeueing runs of paused jobs: runs that lose their worker during a pause wait for the resume."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import psycopg

from noonmark.core.states import JobState
from noonmark.store.database.columns import span
from noonmark.store.database.statements import statement


def lock_paused_jobs(
    connection: psycopg.Connection, ids: Sequence[UUID], first: datetime, last: datetime
) -> set[UUID]:
    """Return which jobs of the runs are paused, and share-lock all of these jobs until the transaction ends.

    Jobs are locked before their runs, so call this before the statement that requeues the runs.

    Args:
        connection: in the transaction that requeues the runs.
        ids: ids of the runs.
        first: the earliest of their instants.
        last: the latest of their instants.
    """
    jobs = connection.execute(
        statement("list_jobs_of_runs"), {"ids": list(ids), "first": first, "last": last}
    )
    shared = connection.execute(statement("share_lock_jobs"), {"ids": [row[0] for row in jobs]})
    return {row[0] for row in shared if row[1] == JobState.PAUSED}


def pause_requeued(
    connection: psycopg.Connection,
    queued: Sequence[tuple[UUID, datetime, UUID, int]],
    paused: Collection[UUID],
) -> None:
    """Defer requeued runs of paused jobs until the resume.

    Args:
        connection: in the transaction that requeued the runs.
        queued: run, instant, job and shard of each run.
        paused: the paused jobs, as `lock_paused_jobs` returned them.
    """
    deferred = [(run_id, at, shard) for run_id, at, job_id, shard in queued if job_id in paused]
    if deferred:
        which = span([(run_id, at) for run_id, at, _ in deferred])
        shards = sorted({shard for _, _, shard in deferred})
        connection.execute(statement("pause_runs"), {**which, "shards": shards})
