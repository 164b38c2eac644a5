"""The runs that a worker owns according to Postgres: compared with its memory, requeued, or ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.states import RunState
from noonmark.store.database.columns import fenced_span
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of
from noonmark.store.runs.locked_runs import find_locked
from noonmark.store.runs.requeue import lock_jobs, pause_requeued
from noonmark.store.runs.worker_lease import Identity

FencedRun = tuple[UUID, datetime, int]
"""Id, instant and fence of a run: a worker may write to the run under this fence, and under no later one."""


class LiveRun(NamedTuple):
    """A run that this worker owns according to Postgres."""

    state: str
    scheduled_for: datetime
    fence: int


class WorkerRuns(NamedTuple):
    """The worker's start batches, and those of their runs that it owns, according to Postgres."""

    batches: dict[int, list[UUID]]
    live: dict[UUID, LiveRun]


def read_worker_runs(connection: psycopg.Connection, identity: Identity) -> WorkerRuns:
    """Read the worker's start batches, and the state of those of their runs that it still owns."""
    batches = connection.execute(statement("list_worker_batches"), identity._asdict()).fetchall()
    if not batches:
        return WorkerRuns({}, {})
    rows = connection.execute(
        statement("list_worker_runs"),
        {
            **identity._asdict(),
            "ids": [run_id for batch in batches for run_id in batch[3]],
            "first": min(batch[1] for batch in batches),
            "last": max(batch[2] for batch in batches),
        },
    ).fetchall()
    return WorkerRuns({batch[0]: batch[3] for batch in batches}, {row[0]: LiveRun(*row[1:]) for row in rows})


def read_stop_requests(
    connection: psycopg.Connection, identity: Identity, runs: Sequence[FencedRun]
) -> list[UUID]:
    """Return those of the worker's runs that were cancelled."""
    rows = connection.execute(statement("list_worker_runs"), {**identity._asdict(), **fenced_span(runs)})
    fences = {run_id: fence for run_id, _, fence in runs}
    return [row[0] for row in rows if row[1] == RunState.CANCELLING and row[3] == fences[row[0]]]


class Requeued(NamedTuple):
    """What was requeued of a worker's runs.

    Attributes:
        requeued: the number of runs that the worker still owned, and that are queued again.
        locked: runs that another transaction has locked, or their jobs; nothing was changed about them.
    """

    requeued: int
    locked: set[UUID]


def requeue_unfinished(
    connection: psycopg.Connection, identity: Identity, runs: Iterable[FencedRun]
) -> Requeued:
    """Requeue runs of this worker without using up an attempt; wait for none that is locked.

    Runs of paused jobs wait for the resume instead.
    """
    given = list(runs)
    if not given:
        return Requeued(0, set())
    with connection.transaction():
        days = [at for _, at, _ in given]
        jobs = lock_jobs(connection, [run_id for run_id, _, _ in given], min(days), max(days))
        locked = find_locked(connection, [(run_id, at) for run_id, at, _ in given]) | jobs.unavailable
        free = [row for row in given if row[0] not in locked]
        if not free:
            return Requeued(0, locked)
        requeued = connection.execute(
            statement("requeue_unfinished_runs"), {**identity._asdict(), **fenced_span(free)}
        ).fetchall()
        pause_requeued(connection, requeued, jobs.paused)
    return Requeued(len(requeued), locked)


def cancel_unowned(
    connection: psycopg.Connection,
    identity: Identity,
    topics: EventTopics,
    runs: Sequence[FencedRun],
    *,
    shards: int,
) -> int:
    """End cancelled runs that the worker does not run; return how many there were."""
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        ended = cursor.execute(
            statement("cancel_unowned_runs"), {**identity._asdict(), **fenced_span(runs)}
        ).fetchall()
        release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    return len(ended)


def drain(connection: psycopg.Connection, identity: Identity) -> None:
    """Record that the worker finishes its runs and starts no new ones."""
    connection.execute(statement("drain_worker"), identity._asdict())
