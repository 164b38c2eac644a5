"""The trigger's claim: due timers become runs and outbox rows, each lane in one transaction.

One-time instants without rules are claimed in Postgres alone, as are recurring instants that share a plan
(`alike.py`). The others are locked, planned in Python (`noonmark.core.planning.plan`, cached), and written
back in batches.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import psycopg

from noonmark.core.faults import hit
from noonmark.core.states import Lane, TimerKind
from noonmark.store.claims.alike import claim_alike
from noonmark.store.claims.kept_slots import keep_slots
from noonmark.store.claims.planned_runs import ClaimResult, Planning, TimerPlan, carry_out
from noonmark.store.database.columns import span
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import DueTimer, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.wait_queue import enqueue_gated
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import callbacks
from noonmark.store.runs.locked_runs import find_locked
from noonmark.store.schedules.time_facts import share_time_facts

_ROWS_AT_ONCE: Final = 10_000
_PLANNING_SECONDS: Final = 0.25
"""What one claim plans at most: ledger rows, and seconds of planning inside its transaction."""


class Probe(NamedTuple):
    """What is due at the database's `now`, and when the next timer fires."""

    now: datetime
    due: dict[tuple[int, int], list[int]]
    """Shards that have due timers, by (lane, timer kind)."""
    next_at: datetime | None


def probe(connection: psycopg.Connection, shards: Sequence[int]) -> Probe | None:
    """Read the next timer of each owned shard, lane and kind; None if there is no timer at all."""
    rows = connection.execute(planned_once("read_next_timers"), {"shards": list(shards)}).fetchall()
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
    """Create the ledger days that due timers need; return how many were created."""
    days = connection.execute(
        statement("list_missing_days"), {"shards": list(shards), "limit": limit}
    ).fetchall()
    made = 0
    for (day,) in days:
        row = connection.execute("select noonmark_make_day(%s)", [day]).fetchone()
        made += bool(row and row[0])
    return made


def claim_once(
    connection: psycopg.Connection,
    lane: Lane,
    shards: Sequence[int],
    limit: int,
    *,
    named: bool = False,
    arrays: bool = False,
) -> ClaimResult:
    """Claim due one-time jobs of a lane in one statement and one commit.

    With `named` the result lists the new runs. With `arrays` a row of the outbox has several of them.
    """
    with connection.transaction():
        row = connection.execute(
            planned_once("claim_once"),
            {
                "shards": list(shards),
                "lane": int(lane),
                "limit": max(1, limit // len(shards)),
                "named": named,
                "arrays": arrays,
            },
        ).fetchone()
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    assert row is not None
    created = [(run_id, job_id) for run_id, job_id in row[2] or ()]
    return ClaimResult(claimed=row[0], queued=row[1], made=created)


def claim_retries(
    connection: psycopg.Connection, lane: Lane, shards: Sequence[int], limit: int
) -> ClaimResult:
    """Requeue runs whose retry is due.

    Runs of paused jobs wait for the resume instead. Runs of jobs with limits wait for capacity, because each
    attempt counts against the limits.
    """
    result = ClaimResult()
    with connection.transaction():
        claimed = _take(connection, TimerKind.RETRY, lane, shards, limit)
        result.claimed = len(claimed)
        rows = _without_waiting(connection, claimed, result)
        if rows:
            requeued = connection.execute(
                statement("requeue_runs"),
                {
                    "ids": [row[0] for row in rows],
                    "first": min(row[1] for row in rows),
                    "last": max(row[1] for row in rows),
                    "reason": "undeliverable",
                },
            ).fetchone()
            result.queued = requeued[0] if requeued else 0
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    return result


def claim_deadlines(
    connection: psycopg.Connection,
    lane: Lane,
    shards: Sequence[int],
    limit: int,
    *,
    topics: EventTopics,
    install_shards: int,
) -> ClaimResult:
    """End attempts whose target has not reported in time: they are retried, dead or `unknown`."""
    result = ClaimResult()
    with connection.transaction():
        claimed = _take(connection, TimerKind.DEADLINE, lane, shards, limit)
        result.claimed = len(claimed)
        settled = callbacks.expire(connection, topics, [row[0] for row in claimed], shards=install_shards)
        result.settled = dict(Counter(settled.states.values()))
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    return result


def _take(
    connection: psycopg.Connection, kind: TimerKind, lane: Lane, shards: Sequence[int], limit: int
) -> list[tuple[Any, ...]]:
    """Delete due timers of existing runs; return run, instant, job and shard of each."""
    share = max(1, limit // len(shards))
    params = {"shards": list(shards), "lane": int(lane), "kind": int(kind), "limit": share}
    return connection.execute(statement("claim_run_timers"), params).fetchall()


def _without_waiting(
    connection: psycopg.Connection, rows: Sequence[tuple[Any, ...]], result: ClaimResult
) -> Sequence[tuple[Any, ...]]:
    """Let runs of paused jobs and of jobs with limits wait; return the others.

    Rows contain run, instant, job and shard. A run that another session has locked, such as a person's, is
    left for a later claim: it must not hold up the others.
    """
    if not rows:
        return rows
    found = connection.execute(
        statement("lock_paused_jobs"), {"ids": list({row[2] for row in rows})}
    ).fetchall()
    # After the jobs: pauses lock in this order, too.
    if locked := find_locked(connection, [(row[0], row[1]) for row in rows]):
        held = span([(row[0], row[1]) for row in rows if row[0] in locked])
        connection.execute(statement("postpone_run_timers"), held)
        rows = [row for row in rows if row[0] not in locked]
    paused = {job_id for job_id, is_paused in found if is_paused}
    limited = {job_id for job_id, is_paused in found if not is_paused}
    deferred = [row for row in rows if row[2] in paused]
    if deferred:
        connection.execute(
            statement("pause_runs"),
            {
                "ids": [row[0] for row in deferred],
                "first": min(row[1] for row in deferred),
                "last": max(row[1] for row in deferred),
                "shards": list({row[3] for row in deferred}),
            },
        )
    # A run whose message was parked has taken its token already: it is not `retrying`, and is queued.
    waiting = enqueue_gated(
        connection, [(row[0], row[1]) for row in rows if row[2] in limited], waiting_for=""
    )
    result.waiting = len(waiting)
    return [row for row in rows if row[2] not in paused and row[0] not in waiting]


def claim_planned(
    connection: psycopg.Connection,
    lane: Lane,
    shards: Sequence[int],
    limit: int,
    *,
    kind: TimerKind,
    plan: Planning,
    topics: EventTopics,
    install_shards: int,
    named: bool = False,
    arrays: bool = False,
) -> ClaimResult:
    """Claim due timers that need planning: first groups that share a plan, then the others one by one.

    Args:
        connection: no transaction is open.
        lane: the lane of the timers.
        kind: `PLANNED`, or `ZONED`: claims nothing unless `plan.zone_data` is the active version.
        shards: owned shards that have due timers.
        limit: the most timers to claim.
        plan: returns the plan of each timer.
        topics: where verdicts are announced.
        install_shards: the number of shards of the installation.
        named: whether the result lists the new runs.
        arrays: whether a row of the outbox has several runs.
    """
    alike = claim_alike(connection, lane, shards, limit, kind=kind, plan=plan, named=named, arrays=arrays)
    if not alike.others:
        return alike.result
    with connection.transaction():
        if kind is TimerKind.ZONED and not share_time_facts(connection):
            return alike.result  # zone data or a calendar is being changed: claimed in the next round
        with connection.cursor(row_factory=row_of(DueTimer)) as cursor:
            timers = cursor.execute(
                planned_once("lock_planned_timers"),
                {
                    "shards": list(shards),
                    "lane": int(lane),
                    "kind": int(kind),
                    "zone_data": plan.zone_data,
                    "limit": max(1, limit // len(shards)),
                },
            ).fetchall()
        plan.prepare(connection, timers)
        plans = keep_slots(connection, _plan_some(timers, plan))
        result = carry_out(
            connection, lane, plans, topics=topics, install_shards=install_shards, named=named, arrays=arrays
        )
        hit("trigger.before_commit")
    hit("trigger.after_commit")
    result.claimed += alike.result.claimed
    result.queued += alike.result.queued
    result.made += alike.result.made
    return result


def _plan_some(timers: Sequence[DueTimer], plan: Planning) -> list[tuple[DueTimer, TimerPlan]]:
    """Plan timers until the claim is large enough; the others stay unchanged and are claimed next.

    After an outage each timer may need a thousand rows. A claim of all of them would delay the higher lanes,
    and the server's limit on idle transactions would end it before it wrote anything.
    """
    plans: list[tuple[DueTimer, TimerPlan]] = []
    rows = 0
    ends_at = time.monotonic() + _PLANNING_SECONDS
    for timer in timers:
        planned = plan(timer)
        plans.append((timer, planned))
        rows += len(planned.runs)
        if rows >= _ROWS_AT_ONCE or time.monotonic() > ends_at:
            break
    return plans
