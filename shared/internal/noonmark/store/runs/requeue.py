"""Runs that lose their worker while their job is paused: they are not started again before the resume."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import psycopg

from noonmark.core.vocabulary import JobState
from noonmark.store.database.columns import span
from noonmark.store.database.statements import statement


def lock_paused_jobs(
    connection: psycopg.Connection, ids: Sequence[UUID], first: datetime, last: datetime
) -> set[UUID]:
    """Return which jobs of runs are paused, and keep all of them as they are until the transaction ends.

    Jobs are locked before their runs, so this comes before the statement that queues the runs again.

    Args:
        connection: in the transaction that will.
        ids: of the runs.
        first: earliest instant of theirs.
        last: latest.
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
    """Have runs wait for the resume that this transaction has queued: those whose jobs are paused.

    Args:
        connection: in that transaction.
        queued: run, instant, job and shard of each.
        paused: as `lock_paused_jobs` found them.
    """
    held = [(run_id, at, shard) for run_id, at, job_id, shard in queued if job_id in paused]
    if held:
        which = span([(run_id, at) for run_id, at, _ in held])
        shards = sorted({shard for _, _, shard in held})
        connection.execute(statement("pause_runs"), {**which, "shards": shards})
