"""Slots that runs hold until their verdict: the overlap slot of their job, and slots of limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

import psycopg

from noonmark.store.database.planned_once import planned_once

_FEW: Final = 20
"""So many slots cost less with ON CONFLICT than with a savepoint."""


def keep_own_slots(connection: psycopg.Connection) -> None:
    """Take over, until the open transaction ends, what triggers of the database do about slots without a row.

    They write the row of such a run in `slots` when its timer moves or another run wants its slot.
    """
    connection.execute("select set_config('noonmark.keeps_slots', 'yes', true)")


def acquire_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> set[UUID]:
    """Acquire the overlap slot of the job of each (run, job) pair; return the runs that got one.

    Of several runs of one job, the first in order gets the slot.
    """
    firsts: dict[UUID, UUID] = {}
    for run_id, job_id in runs:
        firsts.setdefault(job_id, run_id)
    # Sorted by key, so that two transactions that need the same slots lock them in one order.
    keys = sorted(firsts)
    if not keys:
        return set()
    requested = {"keys": keys, "run_ids": [firsts[key] for key in keys]}
    if len(keys) > _FEW:
        try:
            with connection.transaction():  # a savepoint
                return {row[0] for row in connection.execute(planned_once("acquire_free_slots"), requested)}
        except psycopg.errors.UniqueViolation:
            pass  # another transaction has just acquired one of them, which is rare
    return {row[0] for row in connection.execute(planned_once("acquire_slots"), requested)}


def release_slots(connection: psycopg.Connection, runs: Iterable[tuple[UUID, UUID]]) -> bool:
    """Release all slots of these (run, job) pairs, in the transaction that ends the runs.

    Returns whether a run waits for a released slot: after the commit, send the triggers a hint.
    """
    rows = list(runs)
    if not rows:
        return False
    waited_for = connection.execute(
        planned_once("release_slots"),
        {"keys": [job_id for _, job_id in rows], "run_ids": [run_id for run_id, _ in rows]},
    ).fetchone()
    return bool(waited_for and waited_for[0])
