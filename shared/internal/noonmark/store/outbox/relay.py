"""The outbox as the relay uses it: read, delete what was acknowledged, park what Kafka refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.states import Lane
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import OutboxRow, row_of
from noonmark.store.database.statements import statement

EVENT_LANE = 3
"""The lane of events (lifecycle, rejections, emitted events): relayed after the run messages of every lane.

Events that Kafka refuses (topic does not exist, too large) wait in the next lane and block nothing.
"""

ALL_LANES: Final[Sequence[int]] = (*Lane, EVENT_LANE)

ARRAYS: Final = 10
"""A lane's rows with several runs are in the lane with this added: release 0.2 does not read it."""

RUNS_PER_ROW: Final = 40
"""The most runs in a row, see `claim_once`."""


class Pressure(NamedTuple):
    """How far the relay of a slice's lane is behind. `rows` is counted up to a cap."""

    slice: int
    lane: int
    age_seconds: float | None
    rows: int


class Parked(NamedTuple):
    """A run message that Kafka refused permanently."""

    run_id: UUID
    scheduled_for: datetime
    fence: int
    reason: str


def read(
    connection: psycopg.Connection,
    slices: Sequence[int],
    limit: int,
    lanes: Sequence[int] = ALL_LANES,
    *,
    without: Collection[int] = (),
) -> list[OutboxRow]:
    """Read the next rows of the owned slices, high lanes first, in order within each slice and lane.

    Args:
        connection: in autocommit mode.
        slices: the owned slices.
        limit: the most rows per lane.
        lanes: which; `EVENT_LANE` for events.
        without: sequences of rows that are left out.
    """
    return _read(connection, slices, _limits(limit, slices, lanes), without)


def read_runs(
    connection: psycopg.Connection,
    slices: Sequence[int],
    limit: int,
    *,
    runs_per_row: float,
    without: Collection[int] = (),
) -> list[OutboxRow]:
    """Read the next rows of runs of the owned slices, high lanes first, in order within each slice and lane.

    Args:
        connection: in autocommit mode.
        slices: the owned slices.
        limit: about the most runs per lane.
        runs_per_row: how many runs rows with several had lately.
        without: sequences of rows that are left out.
    """
    limits = _limits(limit, slices, [*Lane])
    limits |= {lane + ARRAYS: max(1, round(most / max(1.0, runs_per_row))) for lane, most in limits.items()}
    return _in_order(_read(connection, slices, limits, without), limits)


def _limits(limit: int, slices: Sequence[int], lanes: Sequence[int]) -> dict[int, int]:
    """Return the most rows of each slice by lane, of `limit` per lane."""
    per_slice = max(1, limit // max(1, len(slices)))
    # Smaller batches for the low lane: what comes due in a higher lane meanwhile waits less.
    return {int(lane): max(1, per_slice // 2) if lane == Lane.LOW else per_slice for lane in lanes}


def _read(
    connection: psycopg.Connection,
    slices: Sequence[int],
    limits: Mapping[int, int],
    without: Collection[int],
) -> list[OutboxRow]:
    with connection.cursor(row_factory=row_of(OutboxRow), binary=True) as cursor:
        cursor.execute(
            planned_once("read_outbox"),
            {
                "slices": list(slices),
                "lanes": list(limits),
                "limits": list(limits.values()),
                "without": list(without),
            },
        )
        rows = cursor.fetchall()
    rows.sort(key=lambda row: (row.lane % ARRAYS, row.slice, row.seq))
    return rows


def _in_order(rows: Sequence[OutboxRow], limits: Mapping[int, int]) -> list[OutboxRow]:
    """Leave out what follows rows that were not read: a job may have runs in both kinds of rows."""
    counts = Counter((row.lane, row.slice) for row in rows)
    last = {(row.lane, row.slice): row.seq for row in rows}
    cut = {
        (lane % ARRAYS, slice_): min(
            last[each, slice_]
            for each in (lane % ARRAYS, lane % ARRAYS + ARRAYS)
            if counts[each, slice_] >= limits[each]
        )
        for (lane, slice_), count in counts.items()
        if count >= limits[lane]
    }
    if not cut:
        return list(rows)
    return [row for row in rows if row.seq <= cut.get((row.lane % ARRAYS, row.slice), row.seq)]


def server_time_ms(connection: psycopg.Connection) -> int:
    """Return the time of the database's host, milliseconds since 1970, to date records with.

    Not `noonmark_now()`: the brokers compare it with their own clocks, and nothing becomes due by it.
    """
    row = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    now_ms: int = row[0]
    return now_ms


def read_refused(
    connection: psycopg.Connection, slices: Sequence[int], limit: int, *, after: int
) -> list[OutboxRow]:
    """Read refused events of the owned slices whose sequence is above `after`, in sequence order."""
    with connection.cursor(row_factory=row_of(OutboxRow), binary=True) as cursor:
        return cursor.execute(
            statement("read_refused"), {"slices": list(slices), "most": limit, "after": after}
        ).fetchall()


def refuse(connection: psycopg.Connection, refused: Sequence[tuple[OutboxRow, str]]) -> int:
    """Move events that Kafka refuses to the lane of refused events; return how many were still there."""
    return connection.execute(
        statement("refuse_events"),
        {
            "places": [row.place for row, _ in refused],
            "seqs": [row.seq for row, _ in refused],
            "reasons": orjson.dumps({str(row.seq): reason for row, reason in refused}).decode(),
        },
    ).rowcount


def count_refused(connection: psycopg.Connection, slices: Sequence[int], *, cap: int) -> dict[str, int]:
    """Count refused events by topic, up to `cap` of each slice and for at most 100 topics."""
    rows = connection.execute(statement("count_refused"), {"slices": list(slices), "cap": cap}).fetchall()
    return dict(rows)


def delete(connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> int:
    """Delete rows that Kafka has acknowledged; return how many were still there."""
    row = connection.execute(
        planned_once("delete_outbox"),
        {"places": [row.place for row in rows], "seqs": [row.seq for row in rows]},
    ).fetchone()
    return row[0] if row is not None else 0


def delete_unlocked(connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> set[int]:
    """Delete acknowledged rows that no other session has locked; return the sequences of those left.

    Locking each row first costs as much as deleting it: only for rows that `delete` waits for.
    """
    which = {"places": [row.place for row in rows], "seqs": [row.seq for row in rows]}
    with connection.transaction():
        connection.execute(statement("delete_unlocked_outbox"), which)
        left = connection.execute(statement("find_outbox_rows"), which).fetchall()
    return {row[0] for row in left}


def park(
    connection: psycopg.Connection,
    rows: Sequence[OutboxRow],
    parked: Sequence[Parked],
    *,
    retry_seconds: float,
) -> int:
    """Delete refused rows from the outbox and let their runs wait with the reason, in one transaction."""
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
    """Measure age and depth of each lane of each slice; the depth is counted up to `cap`."""
    with connection.cursor(row_factory=row_of(Pressure)) as cursor:
        return cursor.execute(statement("measure_relay_lag"), {"slices": list(slices), "cap": cap}).fetchall()
