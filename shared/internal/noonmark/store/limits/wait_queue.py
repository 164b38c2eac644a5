"""The wait queue: runs that wait for capacity have a row in `waits`, and no message."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.planning.promotion import UNCHECKED_QUEUE, Gate
from noonmark.store.database.statements import statement


class WaitingRun(NamedTuple):
    """A run that was just written as waiting, and the gate that it waits for.

    `since` decides its position in the queue: when it came due; None: now.
    """

    run_id: UUID
    scheduled_for: datetime
    job_id: UUID
    lane: int
    gate: Gate
    start_by: datetime | None
    since: datetime | None = None


def enqueue_waiting(connection: psycopg.Connection, runs: Sequence[WaitingRun]) -> None:
    """Write the wait rows of runs, in the transaction that wrote the runs."""
    if runs:
        connection.execute(
            statement("insert_waits"),
            {
                "run_ids": [run.run_id for run in runs],
                "scheduled_for": [run.scheduled_for for run in runs],
                "job_ids": [run.job_id for run in runs],
                "reasons": [run.gate.reason.value for run in runs],
                "keys": [run.gate.key for run in runs],
                "lanes": [run.lane for run in runs],
                "namespaces": [run.gate.namespace for run in runs],
                "limit_names": [run.gate.name for run in runs],
                "limit_keys": [run.gate.part for run in runs],
                "start_by": [run.start_by for run in runs],
                "since": [run.since for run in runs],
            },
        )


def enqueue_gated(
    connection: psycopg.Connection, runs: Sequence[tuple[UUID, datetime]], *, waiting_for: str
) -> set[UUID]:
    """Let runs of jobs with limits wait for capacity instead of queueing them; return those that wait.

    Args:
        connection: in a transaction.
        runs: id and instant of runs that are `retrying`, or `waiting` for the given reason.
        waiting_for: the reason for which they wait now.
    """
    if not runs:
        return set()
    rows = connection.execute(
        statement("enqueue_gated_runs"),
        {
            "ids": [run_id for run_id, _ in runs],
            "first": min(at for _, at in runs),
            "last": max(at for _, at in runs),
            "reason": waiting_for,
            "key": UNCHECKED_QUEUE,
        },
    ).fetchall()
    return {row[0] for row in rows}


def reset_waits(connection: psycopg.Connection, job_id: UUID) -> bool:
    """Have the waiting runs of an edited job checked again; return whether there are any."""
    return (
        connection.execute(statement("reset_job_waits"), {"job_id": job_id, "key": UNCHECKED_QUEUE}).rowcount
        > 0
    )


def gated_jobs(connection: psycopg.Connection, jobs: Collection[UUID]) -> set[UUID]:
    """Return those of the jobs whose runs need capacity before they are queued."""
    rows = connection.execute(statement("find_gated_jobs"), {"ids": list(jobs)}).fetchall()
    return {row[0] for row in rows}
