"""Pauses and resumes the timers and runs of jobs, both for a single job and for a whole namespace.

The caller has locked the timers of the jobs, then the jobs, and has updated their state.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

import psycopg

from noonmark.core.states import RunState, WaitReason
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.jobs.locks import LiveRun, lock_runs, span
from noonmark.store.limits.wait_queue import enqueue_gated, gated_jobs


def pause_runs(
    connection: psycopg.Connection, jobs: Sequence[UUID], *, recurring: Sequence[UUID], shards: Sequence[int]
) -> int:
    """Defer the instants, runs and retries of jobs that were just paused; return how many runs wait now.

    Args:
        connection: a connection in the transaction that paused the jobs.
        jobs: ids of the jobs.
        recurring: ids of the recurring ones, whose instants wait for the resume.
        shards: the shards of the jobs.
    """
    connection.execute(
        statement("pause_timers"), {"ids": list(jobs), "recurring": list(recurring), "never": NEVER}
    )
    paused = [run for run in lock_runs(connection, jobs) if _can_be_paused(run)]
    if paused:
        # The runs of a workflow's tasks are in other shards than their job.
        others = {run.shard for run in paused}
        connection.execute(statement("pause_runs"), {**span(paused), "shards": sorted({*shards, *others})})
    connection.execute(statement("delete_retry_timers"), {"ids": list(jobs)})
    return len(paused)


def resume_runs(
    connection: psycopg.Connection, jobs: Sequence[UUID], only: Collection[UUID] | None = None
) -> int:
    """Let the instants of jobs that were just resumed fire again; return how many paused runs continue.

    Args:
        connection: a connection in the transaction that resumed the jobs.
        jobs: ids of the jobs.
        only: the paused runs that continue; None: all.
    """
    connection.execute(statement("resume_timers"), {"ids": list(jobs), "never": NEVER})
    paused = connection.execute(statement("list_paused_runs"), {"ids": list(jobs)}).fetchall()
    paused = [row for row in paused if only is None or row[0] in only]
    if not paused:
        return 0
    # Runs that need a slot request it again, even if they had one before the pause.
    gated = gated_jobs(connection, jobs)
    waiting = enqueue_gated(
        connection,
        [(run_id, at) for run_id, at, job_id, lacks_slot in paused if lacks_slot or job_id in gated],
        waiting_for=WaitReason.PAUSED.value,
    )
    ready = [row for row in paused if row[0] not in waiting]
    if not ready:
        return len(waiting)
    requeued = connection.execute(
        statement("requeue_runs"),
        {
            "ids": [row[0] for row in ready],
            "first": min(row[1] for row in ready),
            "last": max(row[1] for row in ready),
            "reason": WaitReason.PAUSED.value,
        },
    ).fetchone()
    assert requeued is not None
    queued: int = requeued[0]
    return queued + len(waiting)


def _can_be_paused(run: LiveRun) -> bool:
    if run.state == RunState.WAITING:
        return run.reason != WaitReason.PAUSED
    return run.state in (RunState.QUEUED, RunState.RETRYING)
