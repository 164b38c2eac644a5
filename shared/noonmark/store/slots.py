"""Overlap slots: which run of a job may run where its runs must not overlap. The key is the job's id."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import psycopg

from noonmark.store.statements import statement


def take_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> set[UUID]:
    """Take the slot of the job of each (run, job) pair; return the runs that got theirs."""
    rows = list(runs)
    if not rows:
        return set()
    taken = connection.execute(
        statement("take_slots"),
        {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
    )
    return {row[0] for row in taken}


def free_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> None:
    """Free the slots that these (run, job) pairs hold, in the transaction that ends the runs."""
    rows = list(runs)
    if rows:
        connection.execute(
            statement("free_slots"),
            {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
        )
