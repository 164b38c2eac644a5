"""The trigger's claim: due timers become runs and outbox rows, each lane in one transaction.

One-time instants without rules never leave Postgres. The others are locked, planned in Python
(`noonmark.core.planning`, memoised), and written back set-based.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.faults import hit
from noonmark.core.ids import uuid7_batch
from noonmark.core.words import Lane, Origin, RunState
from noonmark.schemas.lifecycle import SettledRun
from noonmark.store.events import EventTopics, announce
from noonmark.store.rows import DueTimer, row_of
from noonmark.store.slots import free_slots, take_slots
from noonmark.store.statements import statement


class Probe(NamedTuple):
    """What is due at the database's `now`, and when the next timer is."""

    now: datetime
    due: dict[tuple[int, int], list[int]]
    """Shards with something due, by (lane, timer kind)."""
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A ledger row to write: an instant with its verdict, or a range of skipped ones."""

    scheduled_for: datetime
    state: RunState
    reason: str | None = None
    last_scheduled_for: datetime | None = None
    instants: int = 1
    start_by: datetime | None = None
    wants_slot: bool = False


@dataclass(frozen=True, slots=True)
class TimerPlan:
    """What becomes of a locked timer."""

    runs: Sequence[PlannedRun] = ()
    next_at: datetime | None = None
    completed: bool = False
    broken: str | None = None


@dataclass(slots=True)
class ClaimResult:
    """Counts of one claim, for metrics."""

    claimed: int = 0
    queued: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    broken: list[tuple[UUID, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Row:
    """A planned run with everything the ledger row needs."""

    id: UUID
    timer: DueTimer
    run: PlannedRun
    state: RunState
    reason: str | None
    holds_slot: bool


def probe(connection: psycopg.Connection, shards: Sequence[int]) -> Probe | None:
    """Look at the next timer of each owned shard, lane and kind; None when there is none at all."""
    rows = connection.execute(statement("probe_due"), {"shards": list(shards)}).fetchall()
    if not rows:
        return None
    now: datetime = rows[0][4]
    due: dict[tuple[int, int], list[int]] = {}
    next_at: datetime | None = None
    for shard, lane, kind, fire_at, _ in rows:
        if fire_at <= now:
            due.setdefault((lane, kind), []).append(shard)
        elif next_at is None or fire_at < next_at:
            next_at = fire_at
    return Probe(now, due, next_at)


def missing_days(connection: psycopg.Connection, shards: Sequence[int], limit: int) -> int:
    """Make the ledger's days that due timers need; return how many were made."""
    days = connection.execute(statement("due_days"), {"shards": list(shards), "limit": limit}).fetchall()
    made = 0
    for (day,) in days:
        row = connection.execute("select noonmark_make_day(%s)", [day]).fetchone()
        made += bool(row and row[0])
    return made


def claim_once(connection: psycopg.Connection, lane: Lane, shards: Sequence[int], limit: int) -> ClaimResult:
    """Claim due one-time jobs of a lane: one statement, one commit."""
    with connection.transaction():
        row = connection.execute(
            statement("claim_once"),
            {"shards": list(shards), "lane": int(lane), "limit": max(1, limit // len(shards))},
        ).fetchone()
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    assert row is not None
    return ClaimResult(claimed=row[0], queued=row[1])


def claim_retries(
    connection: psycopg.Connection, lane: Lane, shards: Sequence[int], limit: int
) -> ClaimResult:
    """Queue runs again whose retry is due."""
    result = ClaimResult()
    with connection.transaction():
        rows = connection.execute(
            statement("take_retries"),
            {"shards": list(shards), "lane": int(lane), "limit": max(1, limit // len(shards))},
        ).fetchall()
        if rows:
            told = connection.execute(
                statement("requeue_runs"),
                {
                    "ids": [row[0] for row in rows],
                    "first": min(row[1] for row in rows),
                    "last": max(row[1] for row in rows),
                    "reason": "undeliverable",
                },
            ).fetchone()
            result = ClaimResult(claimed=len(rows), queued=told[0] if told else 0)
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    return result


def claim_planned(
    connection: psycopg.Connection,
    lane: Lane,
    shards: Sequence[int],
    limit: int,
    *,
    plan: Callable[[DueTimer], TimerPlan],
    topics: EventTopics,
    install_shards: int,
) -> ClaimResult:
    """Claim due timers that need planning.

    Args:
        connection: no transaction open.
        lane: whose timers.
        shards: owned shards that have some.
        limit: most timers taken.
        plan: gives each timer its plan; it must not raise (a failure is a plan with `broken` set).
        topics: where verdicts are announced.
        install_shards: shards of the installation.
    """
    with connection.transaction():
        with connection.cursor(row_factory=row_of(DueTimer)) as cursor:
            timers = cursor.execute(
                statement("lock_planned"),
                {"shards": list(shards), "lane": int(lane), "limit": max(1, limit // len(shards))},
            ).fetchall()
        plans = [(timer, plan(timer)) for timer in timers]
        result = ClaimResult(claimed=len(timers))
        rows = _rows(plans)
        _make_days(connection, rows)
        _grant_slots(connection, rows)
        inserted = _insert(connection, lane, rows)
        _give_back_slots(connection, rows, inserted)
        _tell_skips(connection, topics, lane, [row for row in rows if row.id in inserted], install_shards)
        for row in rows:
            if row.state is RunState.QUEUED:
                result.queued += row.id in inserted
            elif row.state is RunState.SKIPPED and row.reason and row.id in inserted:
                result.skipped[row.reason] = result.skipped.get(row.reason, 0) + row.run.instants
        _advance(connection, plans)
        result.broken = [(timer.job_id, p.broken) for timer, p in plans if p.broken]
        _set_aside(connection, result.broken, [timer.job_id for timer, p in plans if p.completed])
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    return result


def _rows(plans: Sequence[tuple[DueTimer, TimerPlan]]) -> list[_Row]:
    flat = [(timer, run) for timer, p in plans for run in p.runs]
    ids = uuid7_batch(len(flat))
    return [
        _Row(run_id, timer, run, run.state, run.reason, holds_slot=False)
        for run_id, (timer, run) in zip(ids, flat, strict=True)
    ]


def _make_days(connection: psycopg.Connection, rows: Sequence[_Row]) -> None:
    """Make the days that a gap over midnight reaches into: nobody may have kept house in the meantime."""
    if not rows:
        return
    midnight = rows[0].timer.now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    past = [row.run.scheduled_for for row in rows if row.run.scheduled_for < midnight]
    if past:
        for day in sorted({at.astimezone(UTC).date() for at in (*past, midnight)}):
            connection.execute("select noonmark_make_day(%s)", [day])


def _grant_slots(connection: psycopg.Connection, rows: Sequence[_Row]) -> None:
    """Take the overlap slot of each run that needs one; a run without is skipped for `overlap`."""
    wishes = [row for row in rows if row.run.wants_slot]
    granted = take_slots(connection, [(row.id, row.timer.job_id) for row in wishes])
    for row in wishes:
        if row.id in granted:
            row.holds_slot = True
        else:
            row.state, row.reason = RunState.SKIPPED, "overlap"


def _insert(connection: psycopg.Connection, lane: Lane, rows: Sequence[_Row]) -> set[UUID]:
    if not rows:
        return set()
    inserted = connection.execute(
        statement("insert_runs"),
        {
            "ids": [row.id for row in rows],
            "scheduled_for": [row.run.scheduled_for for row in rows],
            "last_scheduled_for": [row.run.last_scheduled_for for row in rows],
            "instants": [row.run.instants for row in rows],
            "job_ids": [row.timer.job_id for row in rows],
            "job_versions": [row.timer.job_version for row in rows],
            "states": [row.state.value for row in rows],
            "reasons": [row.reason for row in rows],
            "start_by": [row.run.start_by for row in rows],
            "holds_slot": [row.holds_slot for row in rows],
            "shards": [row.timer.shard for row in rows],
            "lanes": [int(lane)] * len(rows),
            "namespaces": [row.timer.namespace for row in rows],
            "pools": [row.timer.pool for row in rows],
            "origins": [Origin.SCHEDULE.value] * len(rows),
            "request_ids": [""] * len(rows),
        },
    ).fetchall()
    return {row[0] for row in inserted}


def _give_back_slots(
    connection: psycopg.Connection, rows: Sequence[_Row], inserted: Collection[UUID]
) -> None:
    """Free slots of instants that were in the ledger already."""
    free_slots(
        connection,
        [(row.id, row.timer.job_id) for row in rows if row.holds_slot and row.id not in inserted],
    )


def _tell_skips(
    connection: psycopg.Connection, topics: EventTopics, lane: Lane, rows: Sequence[_Row], shards: int
) -> None:
    settled = [
        SettledRun(
            run_id=row.id,
            job_id=row.timer.job_id,
            namespace=row.timer.namespace,
            scheduled_for=row.run.scheduled_for,
            origin=Origin.SCHEDULE.value,
            state=row.state.value,
            reason=row.reason,
            attempt=0,
            fence=1,
            lane=lane.label,
            pool=row.timer.pool,
            started_at=None,
            finished_at=row.timer.now,
            error=None,
        )
        for row in rows
        if row.state is RunState.SKIPPED
    ]
    announce(connection, topics, settled, shards=shards)


def _advance(connection: psycopg.Connection, plans: Sequence[tuple[DueTimer, TimerPlan]]) -> None:
    moved = [(timer.place, p.next_at) for timer, p in plans if p.next_at is not None]
    dropped = [timer.place for timer, p in plans if p.next_at is None]
    if moved:
        connection.execute(
            statement("move_timers"), {"places": [m[0] for m in moved], "at": [m[1] for m in moved]}
        )
    if dropped:
        connection.execute(statement("drop_timers"), {"places": dropped})


def _set_aside(
    connection: psycopg.Connection, broken: Sequence[tuple[UUID, str]], completed: Sequence[UUID]
) -> None:
    if broken:
        connection.execute(
            statement("break_jobs"), {"ids": [b[0] for b in broken], "reasons": [b[1] for b in broken]}
        )
    if completed:
        connection.execute(statement("complete_jobs"), {"ids": list(completed)})
