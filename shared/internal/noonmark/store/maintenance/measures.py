"""Measurements of the leading trigger: backlog, workers, namespaces and the state of the database."""

from __future__ import annotations

from typing import Final, NamedTuple

import psycopg

from noonmark.core.states import Lane
from noonmark.store.database.statements import statement

DUE_CAP: Final = 1_000
"""Due timers of each shard, lane and kind are counted up to this number."""

DEAD_CAP: Final = 100_000
NAMESPACES: Final = 50
"""The number of namespaces that are shown separately; which ones depends on their load."""


class Due(NamedTuple):
    """Unclaimed due timers of a lane; age in seconds of the oldest, and of the oldest of workflows."""

    timers: int
    oldest_seconds: float
    facts_seconds: float


class PoolMeasures(NamedTuple):
    """Workers of a pool by state; slots of the live ones."""

    live: int
    silent: int
    draining: int
    busy: int
    free: int


class DatabaseMeasures(NamedTuple):
    """Age of the oldest snapshot in seconds, and connections of noonmark by state."""

    oldest_xmin_seconds: float
    active: int
    idle: int
    idle_in_transaction: int
    other: int


def due(connection: psycopg.Connection, *, shards: int) -> dict[Lane, Due]:
    """Count due timers of all shards by lane; every lane is included."""
    rows = connection.execute(statement("measure_due"), {"shards": shards, "cap": DUE_CAP})
    return {Lane(lane): Due(*found) for lane, *found in rows}


def pools(connection: psycopg.Connection) -> dict[str, PoolMeasures]:
    """Count workers and slots by registered pool, including pools without workers."""
    return {row[0]: PoolMeasures(*row[1:]) for row in connection.execute(statement("measure_pools"))}


def namespaces(connection: psycopg.Connection, *, most: int = NAMESPACES) -> dict[tuple[str, str], int]:
    """Count runs by (namespace, state); namespaces beyond the first `most` are combined as `_other`."""
    rows = connection.execute(statement("measure_namespaces"), {"most": most, "cap": DEAD_CAP})
    return {(namespace, state): runs for namespace, state, runs in rows}


def dead_letters(connection: psycopg.Connection) -> int:
    """Count dead letters, up to the cap."""
    row = connection.execute(
        "select count(*) from (select from dead_letters limit %s) as head", [DEAD_CAP]
    ).fetchone()
    assert row is not None
    return int(row[0])


def database(connection: psycopg.Connection) -> DatabaseMeasures:
    """Read the sessions of this database."""
    row = connection.execute(statement("measure_database")).fetchone()
    assert row is not None
    return DatabaseMeasures(*row)


def dead_rows(connection: psycopg.Connection) -> dict[str, int]:
    """Read the number of dead rows in the busiest tables, as Postgres estimates it."""
    return dict(connection.execute(statement("measure_dead_rows")).fetchall())
