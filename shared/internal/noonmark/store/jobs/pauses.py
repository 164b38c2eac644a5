"""Holding jobs and letting them go on: one way, whether one job is paused or a whole namespace.

The caller has locked the timers of the jobs, then the jobs, and has written their state.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import psycopg

from noonmark.core.vocabulary import RunState, WaitReason
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.jobs.locks import LiveRun, lock_runs, span
from noonmark.store.limits.wait_queue import enqueue_gated, gated_jobs


def pause_runs(
    connection: psycopg.Connection, jobs: Sequence[UUID], *, recurring: Sequence[UUID], shards: Sequence[int]
) -> int:
    """Hold the instants, runs and retries of jobs that were just paused; return how many runs wait now.

    Args:
        connection: in the transaction that paused the jobs.
        jobs: their ids.
        recurring: those of them that recur: their instants wait for the resume.
        shards: that the jobs are of.
    """
    connection.execute(
        statement("pause_timers"), {"ids": list(jobs), "recurring": list(recurring), "never": NEVER}
    )
    held = [run for run in lock_runs(connection, jobs) if _can_be_paused(run)]
    if held:
        connection.execute(statement("pause_runs"), {**span(held), "shards": sorted(set(shards))})
    connection.execute(statement("delete_retry_timers"), {"ids": list(jobs)})
    return len(held)


def resume_runs(connection: psycopg.Connection, jobs: Sequence[UUID]) -> int:
    """Let the instants of jobs that were just resumed fire again; return how many held runs go on."""
    connection.execute(statement("resume_timers"), {"ids": list(jobs), "never": NEVER})
    held = connection.execute(statement("list_paused_runs"), {"ids": list(jobs)}).fetchall()
    if not held:
        return 0
    # What needs room asks for it again, also where it held a place before the pause.
    gated = gated_jobs(connection, jobs)
    waiting = enqueue_gated(
        connection,
        [(run_id, at) for run_id, at, job_id, lacks_slot in held if lacks_slot or job_id in gated],
        waiting_for=WaitReason.PAUSED.value,
    )
    free_to_go = [row for row in held if row[0] not in waiting]
    if not free_to_go:
        return len(waiting)
    told = connection.execute(
        statement("requeue_runs"),
        {
            "ids": [row[0] for row in free_to_go],
            "first": min(row[1] for row in free_to_go),
            "last": max(row[1] for row in free_to_go),
            "reason": WaitReason.PAUSED.value,
        },
    ).fetchone()
    assert told is not None
    queued: int = told[0]
    return queued + len(waiting)


def _can_be_paused(run: LiveRun) -> bool:
    if run.state == RunState.WAITING:
        return run.reason != WaitReason.PAUSED
    return run.state in (RunState.QUEUED, RunState.RETRYING)
