"""Holding one workflow run: nothing more of it starts until it is released."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER


class Hold(NamedTuple):
    """Whether an open workflow run is held.

    Attributes:
        held_at: since when; None: it is not.
        stopping: why its tasks are being stopped: `cancelled` or `deadline`; None: they are not.
    """

    held_at: datetime | None
    stopping: str | None


def lock(connection: psycopg.Connection, workflow_ids: Sequence[UUID]) -> dict[UUID, Hold]:
    """Lock open workflow runs until the transaction ends; return those that are open."""
    rows = connection.execute(statement("lock_workflows"), {"ids": sorted(workflow_ids)})
    return {run_id: Hold(held_at, stopping) for run_id, held_at, stopping in rows}


def hold(connection: psycopg.Connection, workflow_ids: Sequence[UUID]) -> set[UUID]:
    """Hold open workflow runs; return those that are open. Runs of tasks that are under way go on.

    A deadline and a cancel are not held back.
    """
    return {row[0] for row in _set(connection, workflow_ids, held=True)}


def release(connection: psycopg.Connection, workflow_ids: Sequence[UUID]) -> set[UUID]:
    """Let held workflow runs go on; return those that are open. After it, send the triggers a hint."""
    with connection.transaction():
        rows = _set(connection, workflow_ids, held=False)
        if rows:
            connection.execute(
                statement("release_facts"),
                {
                    "ids": [row[0] for row in rows],
                    "first": min(row[1] for row in rows),
                    "last": max(row[1] for row in rows),
                    "job_ids": [row[2] for row in rows],
                    "never": NEVER,
                },
            )
    return {row[0] for row in rows}


def _set(
    connection: psycopg.Connection, workflow_ids: Sequence[UUID], *, held: bool
) -> Sequence[tuple[UUID, datetime, UUID, object]]:
    params = {"ids": sorted(workflow_ids), "held": held}
    return connection.execute(statement("hold_workflows"), params).fetchall()
