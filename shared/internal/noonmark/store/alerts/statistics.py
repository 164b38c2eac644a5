"""Statistics of outcomes, stored in the same transaction as the offsets, so that each outcome counts once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.monitoring.recent import Rates, decode, encode, last_hour, rates_of
from noonmark.core.monitoring.statistics import JobStats
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.statements import statement


class Place(NamedTuple):
    """A partition on the broker: its first offset and the one after its last record."""

    partition: int
    first: int
    end: int


class Move(NamedTuple):
    """The new offset of a partition after a batch, and whether it has caught up."""

    partition: int
    next_offset: int
    caught_up: bool


class StoredStats(NamedTuple):
    """What `stats_of` found.

    Attributes:
        hour: keys of the outcomes that count as those of the last hour, by the database's clock.
        by_job: by id as a number; jobs without history are left out.
        places: ctids of their rows.
    """

    hour: range
    by_job: dict[int, JobStats]
    places: dict[int, str]


def place(connection: psycopg.Connection, topic: str, places: Sequence[Place]) -> dict[int, int]:
    """Return the offset from which to read each partition: the stored one, if the topic still contains it."""
    rows = connection.execute(
        statement("read_observer_offsets"),
        {
            "topic": topic,
            "partitions": [one.partition for one in places],
            "firsts": [one.first for one in places],
            "ends": [one.end for one in places],
        },
    ).fetchall()
    return dict(rows)


def lock(connection: psycopg.Connection, topic: str, partitions: Collection[int]) -> dict[int, int]:
    """Lock partitions until the transaction ends, and return their stored offsets."""
    rows = connection.execute(
        statement("lock_observer_offsets"), {"topic": topic, "partitions": list(partitions)}
    ).fetchall()
    return dict(rows)


def move(connection: psycopg.Connection, topic: str, moves: Sequence[Move]) -> None:
    """Advance the offsets of partitions, in the transaction that stored their records.

    Raises:
        RuntimeError: the offset of a partition is not the one that `lock` found.
    """
    moved = connection.execute(
        statement("advance_observer_offsets"),
        {
            "topic": topic,
            "partitions": [one.partition for one in moves],
            "next_offsets": [one.next_offset for one in moves],
            "caught_up": [one.caught_up for one in moves],
        },
    ).rowcount
    if moved != len(moves):
        raise RuntimeError(
            f"only {moved} of {len(moves)} partitions of {topic} advanced: their locks were lost"
        )


def new_events(connection: psycopg.Connection, ids: Collection[UUID]) -> set[UUID]:
    """Store the ids of events; return those that were not read before."""
    rows = connection.execute(statement("insert_observer_events"), {"ids": list(ids)}).fetchall()
    return {row[0] for row in rows}


def recurring_kinds(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[int, str]:
    """Return the kinds of those jobs that recur, by id as a number; deleted ones are left out."""
    rows = connection.execute(statement("read_recurring_kinds"), {"ids": list(job_ids)}).fetchall()
    return {job_id.int: kind for job_id, kind in rows}


def stats_of(connection: psycopg.Connection, job_ids: Collection[UUID]) -> StoredStats:
    """Return the stored statistics of jobs, with the outcomes of the last hour only."""
    rows = connection.execute(statement("read_job_stats"), {"ids": list(job_ids)}).fetchall()
    found = StoredStats(last_hour(rows[0][0]) if rows else range(0), {}, {})
    for _, place, counts, *figures in rows:
        if place is not None:
            stats = JobStats(*figures)
            stats.recent = decode(counts, found.hour)
            found.by_job[stats.job_id.int] = stats
            found.places[stats.job_id.int] = place
    return found


def write_stats(
    connection: psycopg.Connection, stats: Collection[JobStats], places: Mapping[int, str]
) -> None:
    """Store the statistics of jobs; `places` are those of rows that this transaction has read."""
    if stats:
        connection.execute(
            planned_once("write_job_stats"),
            {
                "places": [places.get(one.job_id.int) for one in stats],
                "job_ids": [one.job_id for one in stats],
                "namespaces": [one.namespace for one in stats],
                "kinds": [one.kind for one in stats],
                "runs": [one.runs for one in stats],
                "usual": [one.usual_seconds for one in stats],
                "failures": [one.failures for one in stats],
                "causes": [one.failure_cause for one in stats],
                "errors": [one.last_error for one in stats],
                "run_ids": [one.last_run_id for one in stats],
                "failed_at": [one.last_failure_at for one in stats],
                "succeeded_at": [one.last_success_at for one in stats],
                "recent": [encode(one.recent) for one in stats],
            },
        )


def heard(connection: psycopg.Connection, at: datetime) -> None:
    """Store when the last outcome arrived, by the broker's clock."""
    connection.execute(statement("mark_observer_heard"), {"at": at})


def begin(connection: psycopg.Connection) -> None:
    """Insert the observer's position in the ledger, if it has none."""
    connection.execute(statement("begin_observing"))


def forget(connection: psycopg.Connection) -> None:
    """Delete all statistics and offsets: observers start again at the first record of the topic."""
    connection.execute(statement("reset_observer"))


def prune(connection: psycopg.Connection, *, after: UUID, limit: int) -> UUID | None:
    """Delete rows past their retention, and the history of jobs that no longer exist.

    Args:
        connection: a connection in autocommit.
        after: the position in the history of jobs to continue from.
        limit: maximum number of rows of each table.

    Returns:
        The position to continue from; None at the end of the history.
    """
    connection.execute(statement("prune_observer_events"), {"limit": limit})
    row = connection.execute(statement("prune_job_stats"), {"after": after, "limit": limit}).fetchone()
    return row[0] if row else None


def rates(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, Rates]:
    """Return the outcomes of the last hour of those jobs that had any."""
    found = stats_of(connection, job_ids).by_job.values()
    return {one.job_id: rates_of(one.recent) for one in found if one.recent}
