"""Leases of workers: watched and lapsed; the runs of lapsed workers are requeued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.retry import RetryPolicy
from noonmark.core.states import AttemptOutcome, RunState
from noonmark.store.database.columns import span
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of
from noonmark.store.runs.finish import Retry, delete_batches, write_retries
from noonmark.store.runs.locked_runs import find_locked_between
from noonmark.store.runs.requeue import lock_jobs, pause_requeued

LOSS_BUDGET = 5
"""How often a run may lose its worker before it can be dead. The retry budget is separate."""

LOSSES_BEFORE_WAIT = 3
"""A run that lost so many workers waits before its next try."""

_TRIED_AGAIN: Final = frozenset({RunState.QUEUED, RunState.RETRYING})
_rng = Random()
_WAITS: Final = RetryPolicy(delay_seconds=10.0, max_delay_seconds=600.0)


def wait_seconds(losses: int, spread: float) -> float:
    """Return how long a run waits after its worker was lost, so that runs that were lost together part.

    Args:
        losses: number of workers that it has lost, at least `LOSSES_BEFORE_WAIT`.
        spread: from 0 to 1; the wait is between half of its length and all of it.
    """
    return _WAITS.backoff_seconds(losses - LOSSES_BEFORE_WAIT + 1) * (1 + spread) / 2


class LeasePass(NamedTuple):
    """What one pass over the leases did."""

    lapsed: int
    lost: list[ChangedRun]
    watched_seconds: float


def run_pass(
    connection: psycopg.Connection, topics: EventTopics, *, shards: int, gap_seconds: float, batches: int = 20
) -> LeasePass:
    """Lapse silent workers and requeue their runs. Several processes may call this at once.

    Args:
        connection: in autocommit mode; the pass opens its own transactions.
        topics: where verdicts are announced.
        shards: the number of shards of the installation.
        gap_seconds: a longer gap between two passes restarts the watch.
        batches: the most start batches requeued in one pass.
    """
    row = connection.execute(statement("watch_leases"), {"gap_seconds": gap_seconds}).fetchone()
    assert row is not None
    watched: float = row[0]
    lapsed = connection.execute(statement("lapse_workers"), {"watched_seconds": watched}).fetchall()
    with connection.transaction():
        lost = _requeue_lost(connection, topics, shards=shards, batches=batches)
    return LeasePass(len(lapsed), lost, watched)


def _requeue_lost(
    connection: psycopg.Connection, topics: EventTopics, *, shards: int, batches: int
) -> list[ChangedRun]:
    orphans = connection.execute(statement("lock_orphaned_batches"), {"limit": batches}).fetchall()
    if not orphans:
        return []
    ids = [run_id for orphan in orphans for run_id in orphan[4]]
    first, last = min(orphan[2] for orphan in orphans), max(orphan[3] for orphan in orphans)
    jobs = lock_jobs(connection, ids, first, last)
    which = {
        "workers": list({orphan[1] for orphan in orphans}),
        "started_at": list({orphan[5] for orphan in orphans}),
        "first": first,
        "last": last,
    }
    locked = connection.execute(statement("lock_lost_runs"), {**which, "ids": ids}).fetchall()
    held = {row[0] for row in locked} | jobs.unavailable | find_locked_between(connection, ids, first, last)
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        lost = cursor.execute(
            statement("requeue_lost_runs"),
            {
                **which,
                "ids": [run_id for run_id in ids if run_id not in held],
                "neighbours": ids,
                "live_workers": list({orphan[1] for orphan in orphans if orphan[6]}),
                "loss_budget": LOSS_BUDGET,
                "losses_before_wait": LOSSES_BEFORE_WAIT,
            },
        ).fetchall()
    if lost:
        _record_lost(connection, lost, {(run_id, one[5]): one[1] for one in orphans for run_id in one[4]})
        queued = [run for run in lost if run.state == RunState.QUEUED]
        notify_queued(connection, queued)
        waiting = [run for run in lost if run.state == RunState.RETRYING]
        _delay(connection, [run for run in waiting if run.job_id not in jobs.paused])
        pause_requeued(
            connection, [(r.id, r.scheduled_for, r.job_id, r.shard) for r in (*queued, *waiting)], jobs.paused
        )
        ended = [run for run in lost if run.state not in _TRIED_AGAIN]
        release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    delete_batches(connection, [orphan[0] for orphan in orphans if held.isdisjoint(orphan[4])])
    return lost


def _record_lost(
    connection: psycopg.Connection,
    lost: Sequence[ChangedRun],
    owners: Mapping[tuple[UUID, datetime | None], int],
) -> None:
    """Record the lost attempts; `owners` has the worker of each run and start."""
    connection.execute(
        statement("insert_attempts"),
        {
            "run_ids": [run.id for run in lost],
            "scheduled_for": [run.scheduled_for for run in lost],
            "fences": [run.fence - (run.state != RunState.RETRYING) for run in lost],
            "attempts": [run.attempt + (run.state != RunState.UNKNOWN) for run in lost],
            "workers": [owners.get((run.id, run.started_at)) for run in lost],
            "outcomes": [AttemptOutcome.LOST.value] * len(lost),
            "errors": ["the worker was lost"] * len(lost),
            "started_at": [run.started_at for run in lost],
        },
    )


def _delay(connection: psycopg.Connection, waiting: Sequence[ChangedRun]) -> None:
    """Write the timers of runs that wait before their next try."""
    if waiting:
        which = span([(run.id, run.scheduled_for) for run in waiting])
        losses: dict[UUID, int] = dict(connection.execute(statement("read_losses"), which).fetchall())
        write_retries(
            connection,
            [Retry(run, run.pool, wait_seconds(losses[run.id], _rng.random())) for run in waiting],
        )


def notify_queued(connection: psycopg.Connection, queued: Sequence[ChangedRun]) -> None:
    """Write the outbox rows of runs that were requeued."""
    if queued:
        connection.execute(
            statement("enqueue_run_messages"),
            {
                "slices": [run.shard for run in queued],
                "lanes": [run.lane for run in queued],
                "run_ids": [run.id for run in queued],
                "job_ids": [run.job_id for run in queued],
                "scheduled_for": [run.scheduled_for for run in queued],
                "fences": [run.fence for run in queued],
                "job_versions": [run.job_version for run in queued],
                "namespaces": [run.namespace for run in queued],
                "pools": [run.pool for run in queued],
            },
        )
