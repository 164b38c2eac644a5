"""The outbox as the dispatcher sees it: read, delete what was acknowledged, park what never will be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.words import Lane
from noonmark.store.rows import OutboxRow, row_of
from noonmark.store.statements import statement

EVENT_LANE = 3
"""Events (lifecycle, rejections) are relayed after the run messages of every lane."""


class Pressure(NamedTuple):
    """How far the relay of a slice's lane is behind. `rows` stops counting at the cap asked for."""

    slice: int
    lane: int
    age_seconds: float | None
    rows: int


class Parked(NamedTuple):
    """A run message that Kafka refused for good."""

    run_id: UUID
    scheduled_for: datetime
    fence: int
    reason: str


def read(
    connection: psycopg.Connection, slices: Sequence[int], limit: int, *, events: bool = True
) -> list[OutboxRow]:
    """Read the next rows of the owned slices, high lanes first, in order within each slice and lane.

    Args:
        connection: autocommit.
        slices: the owned slices.
        limit: most rows per lane.
        events: whether to read events as well, or run messages only.
    """
    per_slice = max(1, limit // max(1, len(slices)))
    lanes = [*Lane, EVENT_LANE] if events else [*Lane]
    with connection.cursor(row_factory=row_of(OutboxRow), binary=True) as cursor:
        cursor.execute(
            statement("read_outbox"),
            {
                "slices": list(slices),
                "lanes": [int(lane) for lane in lanes],
                # Low goes in smaller bites: what is due meanwhile in a higher lane waits for less.
                "limits": [max(1, per_slice // 2) if lane is Lane.LOW else per_slice for lane in lanes],
            },
        )
        rows = cursor.fetchall()
    rows.sort(key=lambda row: (row.lane, row.slice, row.seq))
    return rows


def delete(connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> int:
    """Remove rows that Kafka has acknowledged; return how many were still there."""
    return connection.execute(
        statement("delete_outbox"), {"places": [row.place for row in rows], "seqs": [row.seq for row in rows]}
    ).rowcount


def park(
    connection: psycopg.Connection,
    rows: Sequence[OutboxRow],
    parked: Sequence[Parked],
    *,
    retry_seconds: float,
) -> int:
    """Take refused rows out of the outbox and make their runs wait with the reason, in one transaction."""
    with connection.transaction():
        done = connection.execute(
            statement("park_runs"),
            {
                "ids": [p.run_id for p in parked],
                "first": min(p.scheduled_for for p in parked),
                "last": max(p.scheduled_for for p in parked),
                "refused": orjson.dumps({str(p.run_id): [p.fence, p.reason] for p in parked}).decode(),
                "retry_seconds": retry_seconds,
            },
        ).fetchone()
        delete(connection, rows)
    return int(done[0]) if done else 0


def pressure(connection: psycopg.Connection, slices: Sequence[int], *, cap: int) -> list[Pressure]:
    """Measure age and depth of each lane of each slice; the depth stops at `cap`."""
    with connection.cursor(row_factory=row_of(Pressure)) as cursor:
        return cursor.execute(statement("pressure"), {"slices": list(slices), "cap": cap}).fetchall()
