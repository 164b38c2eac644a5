"""Cancelling runs: a run without a worker ends at once, a running one is asked to stop.

A step is one transaction. It takes its locks in the order of every control statement: timers, (jobs,) runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.states import RunState
from noonmark.store.database.columns import span
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of

CANCELLABLE: Final = (RunState.WAITING, RunState.QUEUED, RunState.RETRYING, RunState.RUNNING)
"""States in which a run can be cancelled."""

STEP: Final = 1000
"""The most runs in one transaction."""


class RunKey(NamedTuple):
    """A run, and the instant that finds its ledger day."""

    id: UUID
    scheduled_for: datetime


@dataclass(slots=True)
class Cancels:
    """What a cancel did: the runs that ended, and the running ones that were asked to stop."""

    ended: list[UUID] = field(default_factory=list)
    stopping: list[RunKey] = field(default_factory=list)


class LockedRun(NamedTuple):
    """A run as it was read under its lock."""

    id: UUID
    scheduled_for: datetime
    state: str
    reason: str | None
    job_id: UUID
    shard: int


def because(who: str, reason: str | None) -> str:
    """Return the reason that a cancelled run keeps: who or what cancelled it and, if given, why."""
    return f"{who}: {reason}" if reason else who


def locate(
    connection: psycopg.Connection, ids: Sequence[UUID], within: frozenset[str] | None = None
) -> list[tuple[RunKey, RunState]]:
    """Return the runs with these ids and their states; ids without a run are left out.

    Args:
        connection: only reads are sent.
        ids: ids of runs.
        within: namespaces; runs of other namespaces are left out too. None: runs of all namespaces.
    """
    rows = connection.execute(
        "select id, scheduled_for, state, namespace from runs where id = any (%s) order by id", [list(ids)]
    ).fetchall()
    return [(RunKey(row[0], row[1]), RunState(row[2])) for row in rows if within is None or row[3] in within]


def cancel(
    connection: psycopg.Connection,
    topics: EventTopics,
    runs: Sequence[RunKey],
    *,
    states: Sequence[RunState] = CANCELLABLE,
    reason: str | None = None,
    shards: int,
    report_tasks: bool = True,
) -> Cancels:
    """Cancel those of the runs that are in one of the states, in one transaction.

    Args:
        connection: a transaction may be open.
        topics: where the verdicts are announced.
        runs: at most `STEP`.
        states: a run in any other state is left alone.
        reason: who cancelled and why, as `because` returns it; stored with the runs.
        shards: the number of shards of the installation.
        report_tasks: False if a pass over workflows stops those of these runs. It holds timers already, so
            it must not wait for others: rivals hold those, and wait for its own.
    """
    if not runs:
        return Cancels()
    with connection.transaction(), connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        locked = lock_runs(connection, runs, states, timers=report_tasks)
        if not locked:
            return Cancels()
        which = span([(run.id, run.scheduled_for) for run in locked])
        changed = cursor.execute(
            statement("cancel_runs"),
            {**which, "shards": sorted({run.shard for run in locked}), "reason": reason},
        ).fetchall()
        assert len(changed) == len(locked), "runs changed under their lock"
        ended = [run for run in changed if run.state == RunState.CANCELLED]
        if ended:
            connection.execute(
                statement("delete_cancelled_run_timers"),
                {"job_ids": sorted({run.job_id for run in ended}), "ids": [run.id for run in ended]},
            )
            release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
            settled = [settled_of(run) for run in ended]
            announce(connection, topics, settled, shards=shards, report_tasks=report_tasks)
    return Cancels(
        [run.id for run in ended],
        [RunKey(run.id, run.scheduled_for) for run in changed if run.state == RunState.CANCELLING],
    )


def lock_runs(
    connection: psycopg.Connection,
    runs: Sequence[RunKey],
    states: Sequence[RunState],
    *,
    timers: bool = True,
) -> list[LockedRun]:
    """Lock the timers of the runs, then those runs that are in one of the states; return the locked runs."""
    which = span(runs)
    if timers:
        jobs = connection.execute(statement("list_jobs_of_runs"), which).fetchall()
        connection.execute(
            statement("lock_run_timers"), {"job_ids": [row[0] for row in jobs], "ids": which["ids"]}
        )
    with connection.cursor(row_factory=row_of(LockedRun)) as cursor:
        return cursor.execute(
            statement("lock_runs_in_states"), {**which, "states": [state.value for state in states]}
        ).fetchall()
