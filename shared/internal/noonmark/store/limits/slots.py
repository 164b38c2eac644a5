"""Slots that runs hold until their verdict: the overlap slot of their job, and slots of limits."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement


def acquire_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> set[UUID]:
    """Acquire the overlap slot of the job of each (run, job) pair; return the runs that got one.

    Of several runs of one job, the first in order gets the slot.
    """
    # Sorted by key, so that two transactions that need the same slots lock them in one order.
    rows = sorted(runs, key=lambda pair: pair[1])
    if not rows:
        return set()
    acquired = connection.execute(
        statement("acquire_slots"),
        {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
    )
    return {row[0] for row in acquired}


def release_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> bool:
    """Release all slots of these (run, job) pairs, in the transaction that ends the runs.

    Returns whether a run waits for a released slot: after the commit, send the triggers a hint.
    """
    rows = list(runs)
    if not rows:
        return False
    waited_for = connection.execute(
        statement("release_slots"),
        {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
    ).fetchone()
    return bool(waited_for and waited_for[0])
