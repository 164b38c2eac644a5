"""What the observer makes of outcomes, stored beside how far it has read: each outcome counts once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.monitoring.statistics import Counts, JobFacts, JobStats, WindowKey
from noonmark.store.database.statements import statement


class Place(NamedTuple):
    """A partition as the broker has it: its first record and the one after its last."""

    partition: int
    first: int
    end: int


class Move(NamedTuple):
    """How far a batch brings a partition, and whether that is the present."""

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
    """Return from where each partition is read: on from what is stored, if the topic still has that."""
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
    """Return how far partitions are read, and keep others from storing until the transaction ends."""
    rows = connection.execute(
        statement("lock_observer_offsets"), {"topic": topic, "partitions": list(partitions)}
    ).fetchall()
    return dict(rows)


def move(connection: psycopg.Connection, topic: str, moves: Sequence[Move]) -> None:
    """Note that partitions are read further, in the transaction that stored what was read.

    Raises:
        RuntimeError: a partition was not where `lock` found it.
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
        raise RuntimeError(f"{moved} of {len(moves)} partitions of {topic} moved: their locks did not hold")


def new_events(connection: psycopg.Connection, ids: Collection[UUID]) -> set[UUID]:
    """Return which events were not read before, and remember all of them."""
    rows = connection.execute(statement("insert_observer_events"), {"ids": list(ids)}).fetchall()
    return {row[0] for row in rows}


def facts_of(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, JobFacts]:
    """Return kind and recurrence of the jobs that are there."""
    rows = connection.execute(statement("read_observed_jobs"), {"ids": list(job_ids)}).fetchall()
    return {job_id: JobFacts(kind, recurring) for job_id, kind, recurring in rows}


def stats_of(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, JobStats]:
    """Return how jobs did until now; those without history are left out."""
    rows = connection.execute(statement("read_job_stats"), {"ids": list(job_ids)}).fetchall()
    return {row[0]: JobStats(*row) for row in rows}


def write_stats(connection: psycopg.Connection, stats: Collection[JobStats]) -> None:
    """Store how jobs do."""
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
    """Note when an outcome was last told of, by the clock of the broker."""
    connection.execute(statement("mark_observer_heard"), {"at": at})


def begin(connection: psycopg.Connection) -> None:
    """Make the observer's place in the ledger, where it has none."""
    connection.execute(statement("begin_observing"))


def forget(connection: psycopg.Connection) -> None:
    """Drop all that was made of outcomes: whoever observes begins again at the first record of the topic."""
    connection.execute(statement("reset_observer"))


def prune(connection: psycopg.Connection, *, after: UUID, limit: int) -> UUID | None:
    """Drop what is older than it is kept, and the history of jobs that are gone.

    Args:
        connection: autocommit.
        after: history of jobs is looked at from here on.
        limit: most rows of each.

    Returns:
        Where the next look at the history begins; None: that was all of it.
    """
    connection.execute(statement("prune_outcome_windows"), {"limit": limit})
    connection.execute(statement("prune_observer_events"), {"limit": limit})
    row = connection.execute(statement("prune_job_stats"), {"after": after, "limit": limit}).fetchone()
    return row[0] if row else None


def rates(connection: psycopg.Connection, job_ids: Collection[UUID]) -> dict[UUID, Rates]:
    """Return the outcomes of the last hour of those jobs that had any."""
    rows = connection.execute(statement("read_job_rates"), {"ids": list(job_ids)}).fetchall()
    return {row[0]: Rates(*row) for row in rows}
