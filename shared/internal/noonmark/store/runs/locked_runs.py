"""Runs whose rows or slots others have locked, such as a person: the rest must not wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import psycopg

from noonmark.store.database.columns import span
from noonmark.store.database.statements import statement

LOCK_WAIT_SECONDS: Final = 1.0
"""How long a worker's statement about many runs waits for the lock of one; most locks last milliseconds."""


def find_locked(connection: psycopg.Connection, runs: Sequence[tuple[UUID, datetime]]) -> set[UUID]:
    """Return which runs, given by id and instant, or slots of them, are locked by other transactions now.

    Raises:
        psycopg.errors.LockNotAvailable: the whole table is locked.
    """
    if not runs:
        return set()
    return {row[0] for row in connection.execute(statement("find_locked_runs"), span(runs))}


def find_locked_between(
    connection: psycopg.Connection, ids: Sequence[UUID], first: datetime, last: datetime
) -> set[UUID]:
    """Return the same of runs whose instants lie between two."""
    rows = connection.execute(statement("find_locked_runs"), {"ids": list(ids), "first": first, "last": last})
    return {row[0] for row in rows}


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether a statement failed because it waited for a lock for too long; it changed nothing."""
    return isinstance(error, psycopg.errors.LockNotAvailable)
