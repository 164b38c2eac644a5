"""What a worker holds by Postgres' account: compared with its memory, handed back, or ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.words import RunState
from noonmark.store.events import EventTopics, announce, settled_of
from noonmark.store.queued_again import hold_queued, paused_jobs_of
from noonmark.store.rows import ChangedRun, row_of
from noonmark.store.slots import free_slots
from noonmark.store.statements import statement
from noonmark.store.work import Identity, span


class LiveRun(NamedTuple):
    """A run that Postgres believes this worker owns."""

    state: str
    scheduled_for: datetime


class Held(NamedTuple):
    """What Postgres believes about this worker's runs."""

    batches: dict[int, list[UUID]]
    live: dict[UUID, LiveRun]


def held(connection: psycopg.Connection, identity: Identity) -> Held:
    """Read the worker's start batches and the state of those of their runs that it still owns."""
    batches = connection.execute(statement("my_batches"), identity._asdict()).fetchall()
    if not batches:
        return Held({}, {})
    rows = connection.execute(
        statement("my_live_runs"),
        {
            **identity._asdict(),
            "ids": [run_id for batch in batches for run_id in batch[3]],
            "first": min(batch[1] for batch in batches),
            "last": max(batch[2] for batch in batches),
        },
    ).fetchall()
    return Held({batch[0]: batch[3] for batch in batches}, {row[0]: LiveRun(row[1], row[2]) for row in rows})


def asked_to_stop(
    connection: psycopg.Connection, identity: Identity, runs: Sequence[tuple[UUID, datetime]]
) -> list[UUID]:
    """Return those of the worker's runs that somebody has cancelled."""
    rows = connection.execute(statement("my_live_runs"), {**identity._asdict(), **span(runs)})
    return [row[0] for row in rows if row[1] == RunState.CANCELLING]


def hand_back(
    connection: psycopg.Connection, identity: Identity, runs: Iterable[tuple[UUID, datetime]]
) -> int:
    """Queue runs of this worker again without burning an attempt; return how many were still its own.

    Those of paused jobs wait for the resume instead.
    """
    rows = list(runs)
    if not rows:
        return 0
    with connection.transaction():
        days = [at for _, at in rows]
        paused = paused_jobs_of(connection, [run_id for run_id, _ in rows], min(days), max(days))
        given = connection.execute(statement("hand_back"), {**identity._asdict(), **span(rows)}).fetchall()
        hold_queued(connection, given, paused)
    return len(given)


def cancel_unheld(
    connection: psycopg.Connection,
    identity: Identity,
    topics: EventTopics,
    runs: Sequence[tuple[UUID, datetime]],
    *,
    shards: int,
) -> int:
    """Give cancelled runs that the worker does not hold their verdict; return how many there were."""
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        ended = cursor.execute(statement("cancel_unheld"), {**identity._asdict(), **span(runs)}).fetchall()
        free_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    return len(ended)


def drain(connection: psycopg.Connection, identity: Identity) -> None:
    """Say that the worker finishes what it has and takes nothing new."""
    connection.execute(statement("drain_worker"), identity._asdict())
