"""Slots that runs hold until their verdict: of their job, where runs must not overlap, and of limits."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement


def acquire_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> set[UUID]:
    """Take the overlap slot of the job of each (run, job) pair; return the runs that got theirs.

    Of several runs of one job the first in order gets it.
    """
    # By key, so that two transactions that want some of the same slots wait for each other in one order.
    rows = sorted(runs, key=lambda pair: pair[1])
    if not rows:
        return set()
    taken = connection.execute(
        statement("acquire_slots"),
        {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
    )
    return {row[0] for row in taken}


def release_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> bool:
    """Free all that these (run, job) pairs hold, in the transaction that ends the runs.

    Returns whether a run waits for what was freed: after the commit, hint the triggers.
    """
    rows = list(runs)
    if not rows:
        return False
    waited_for = connection.execute(
        statement("release_slots"),
        {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
    ).fetchone()
    return bool(waited_for and waited_for[0])
