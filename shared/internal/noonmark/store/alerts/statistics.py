"""Statistics of outcomes, stored in the same transaction as the offsets, so that each outcome counts once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.monitoring.statistics import Counts, JobFacts, JobStats, WindowKey
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


class Rates(NamedTuple):
    """Outcomes of a job in the last hour; `seconds_buckets` by `core.monitoring.statistics.BOUNDS`."""

    job_id: UUID
    succeeded: int
    failed: int
    dead: int
    skipped: int
    other: int
    seconds_buckets: list[int]


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


def facts_of(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, JobFacts]:
    """Return kind and recurrence of the jobs that exist."""
    rows = connection.execute(statement("read_observed_jobs"), {"ids": list(job_ids)}).fetchall()
    return {job_id: JobFacts(kind, recurring) for job_id, kind, recurring in rows}


def stats_of(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, JobStats]:
    """Return the stored statistics of jobs; those without history are left out."""
    rows = connection.execute(statement("read_job_stats"), {"ids": list(job_ids)}).fetchall()
    return {row[0]: JobStats(*row) for row in rows}


def write_stats(connection: psycopg.Connection, stats: Collection[JobStats]) -> None:
    """Store the statistics of jobs."""
    if stats:
        connection.execute(
            statement("upsert_job_stats"),
            {
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
            },
        )


def add_counts(connection: psycopg.Connection, counts: Mapping[WindowKey, Counts]) -> None:
    """Add to the counts of windows."""
    if counts:
        values = counts.values()
        connection.execute(
            statement("add_outcome_windows"),
            {
                "window_at": [key.window_at for key in counts],
                "job_ids": [key.job_id for key in counts],
                "namespaces": [key.namespace for key in counts],
                "kinds": [key.kind for key in counts],
                "succeeded": [one.succeeded for one in values],
                "failed": [one.failed for one in values],
                "dead": [one.dead for one in values],
                "skipped": [one.skipped for one in values],
                "other": [one.other for one in values],
                "buckets": ["{" + ",".join(map(str, one.seconds_buckets)) + "}" for one in values],
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
    connection.execute(statement("prune_outcome_windows"), {"limit": limit})
    connection.execute(statement("prune_observer_events"), {"limit": limit})
    row = connection.execute(statement("prune_job_stats"), {"after": after, "limit": limit}).fetchone()
    return row[0] if row else None


def rates(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, Rates]:
    """Return the outcomes of the last hour of those jobs that had any."""
    rows = connection.execute(statement("read_job_rates"), {"ids": list(job_ids)}).fetchall()
    return {row[0]: Rates(*row) for row in rows}
