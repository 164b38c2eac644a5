"""Executing a backfill step by step: each step is one transaction that may be repeated.

A step never overtakes the schedule: it waits for instants that the trigger has yet to plan. It respects the
current state of the job (paused, cancelled, no overlapping runs), and the pool, version and schedule that
the job had when the backfill was requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.faults import hit
from noonmark.core.ids import uuid7_batch
from noonmark.core.instants import format_instant
from noonmark.core.planning.backfill import BackfillRange, courtesy, to_run
from noonmark.core.planning.promotion import Gate, gates_of
from noonmark.core.schedules.schedule import TICK, Schedule
from noonmark.core.states import BackfillMode, BackfillState, JobState, Lane, Origin, Overlap, RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.store.backfills.requests import BackfillBounds, read_bounds, read_ledger, zone_data_problem
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.limits.slots import acquire_slots, release_slots
from noonmark.store.limits.wait_queue import WaitingRun, enqueue_waiting
from noonmark.store.schedules.time_facts import share_time_facts

_LOCK_TIMEOUT: Final = "2s"
_FIRST_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The most that one step does.

    Attributes:
        queue: runs that it queues.
        lookahead: instants that it compares with the ledger.
        unfinished: runs of one backfill that may be unfinished at a time.
    """

    queue: int = 40
    lookahead: int = 200
    unfinished: int = 1000


class Step(NamedTuple):
    """What a step did.

    Attributes:
        examined: instants that were dealt with, including those that need no run.
        queued: runs that it created.
        state: the state of the backfill now.
        waits_for: why it did not continue; None if it did.
        soon: whether it waits for something that may be over within a second.
    """

    examined: int = 0
    queued: int = 0
    state: BackfillState = BackfillState.RUNNING
    waits_for: str | None = None
    soon: bool = False


class _Backfill(NamedTuple):
    """A locked backfill."""

    id: UUID
    job_id: UUID
    namespace: str
    pool: str
    shard: int
    job_version: int
    schedule: str
    mode: str
    until_at: datetime
    next_at: datetime
    ended_to: datetime
    state_reason: str | None
    now: datetime


class _Job(NamedTuple):
    """Its job as it is now."""

    state: str
    one_by_one: bool
    limits: list[tuple[str, str | None]] | None
    capped: bool


class _QueueCapacity(NamedTuple):
    """How many runs a step may queue, why no more, and before which instant every run has finished."""

    runs: int
    ended_to: datetime
    reason: str


_BUSY: Final = Step(
    waits_for="another process is working on it, or is changing its job or the zone data", soon=True
)


def running(
    connection: psycopg.Connection, shards: Sequence[int], *, after: UUID | None = None, limit: int = 50
) -> list[tuple[UUID, int]]:
    """Return id and shard of the running backfills in owned shards, after the previous page."""
    rows = connection.execute(
        statement("list_due_backfills"), {"shards": list(shards), "after": after or _FIRST_ID, "limit": limit}
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def step(
    connection: psycopg.Connection,
    backfill_id: UUID,
    texts: ScheduleTexts,
    limits: StepLimits,
    *,
    held_back: bool = False,
) -> Step:
    """Advance a backfill by one step.

    Args:
        connection: no transaction is open.
        backfill_id: the id of the backfill.
        texts: the cache of schedules.
        limits: the limits of the step.
        held_back: the relay of the low lane of its shard is far behind: nothing is queued.

    Raises:
        psycopg.Error: nothing was done; try again.
    """
    try:
        with connection.transaction():
            connection.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'")
            # The common lock order: time facts, the backfill, the job's timers, the job, its runs.
            if not share_time_facts(connection):
                return _BUSY
            with connection.cursor(row_factory=row_of(_Backfill)) as cursor:
                backfill = cursor.execute(statement("lock_backfill"), {"id": backfill_id}).fetchone()
            if backfill is None:
                return _BUSY
            done = _Stepper(connection, backfill, texts, limits).run(held_back=held_back)
            if done.examined or done.queued:
                hit("trigger.before_commit")
    except (psycopg.errors.LockNotAvailable, psycopg.errors.CheckViolation):
        # Its job is being changed; or a day of the ledger was just dropped: the floor has risen.
        return _BUSY
    if done.examined or done.queued:
        hit("trigger.after_commit")
    return done


class _Stepper:
    """One step of one locked backfill."""

    def __init__(
        self,
        connection: psycopg.Connection,
        backfill: _Backfill,
        texts: ScheduleTexts,
        limits: StepLimits,
    ) -> None:
        self._connection = connection
        self._backfill = backfill
        self._texts = texts
        self._limits = limits

    def run(self, *, held_back: bool) -> Step:
        backfill = self._backfill
        planned_to, fires_at = self._lock_timer()
        job = self._lock_job()
        bounds = read_bounds(self._connection)
        if job is None or job.state == JobState.CANCELLED:
            return self._end(BackfillState.CANCELLED, "its job was cancelled")
        if (blocked := self._blocked_step(job, bounds, planned_to)) is not None:
            return blocked
        try:
            self._texts.learn(self._connection, [backfill.schedule])
            schedule = self._texts.read(backfill.schedule)
            if (problem := zone_data_problem(schedule, bounds.zone_data)) is not None:
                return self._wait(problem)
            high = min(backfill.until_at, planned_to or backfill.until_at)
            instants = self._instants(schedule, high)
        except psycopg.Error:
            raise
        except Exception as error:  # noqa: BLE001 - an error in one must not stop the others
            return self._end(BackfillState.FAILED, f"cannot be planned: {type(error).__name__}: {error}")
        chosen = to_run(
            BackfillMode(backfill.mode), instants, read_ledger(self._connection, backfill.job_id, instants)
        )
        capacity = self._capacity(job, schedule, fires_at, held_back=held_back) if chosen else None
        return self._advance(job, instants, chosen, capacity, high)

    def _blocked_step(self, job: _Job, bounds: BackfillBounds, planned_to: datetime | None) -> Step | None:
        """Return the result of a step that cannot process instants now; None if it can."""
        if planned_to is None and self._has_timer():
            return _BUSY  # an edit or a calendar change has just replaced the timer, which is not locked
        if job.state in (JobState.PAUSED, JobState.BROKEN):
            return self._wait(f"its job is {job.state}")
        return self._below_floor(bounds) if self._backfill.next_at < bounds.ledger_floor else None

    def _instants(self, schedule: Schedule, high: datetime) -> list[datetime]:
        """Return the next instants that have their verdict from the schedule, or will never have one."""
        low = self._backfill.next_at
        return BackfillRange(low, high).instants(schedule, low, self._limits.lookahead) if high > low else []

    def _advance(
        self,
        job: _Job,
        instants: Sequence[datetime],
        chosen: Sequence[datetime],
        capacity: _QueueCapacity | None,
        high: datetime,
    ) -> Step:
        """Queue the runs for which there is capacity, and move to the first instant that must wait."""
        backfill = self._backfill
        queueing = chosen[: capacity.runs] if capacity else []
        queued = self._queue(queueing, job)
        reason: str | None = None
        ended_to = capacity.ended_to if capacity else backfill.ended_to
        if capacity is not None and queued is None:
            queueing, queued, reason = [], 0, "a run of its job is unfinished, and its runs may not overlap"
        elif capacity is not None and len(chosen) > len(queueing):
            reason = capacity.reason
        stop = chosen[len(queueing)] if len(chosen) > len(queueing) else None
        examined = len(instants) if stop is None else instants.index(stop)
        state = BackfillState.RUNNING
        if stop is not None:
            next_at: datetime | None = stop
        elif len(instants) == self._limits.lookahead:
            next_at = instants[-1] + TICK
        elif high < backfill.until_at:
            next_at = max(high, backfill.next_at)
            reason = f"the schedule is planned only up to {format_instant(high)}: the backfill waits for it"
        else:
            next_at, state = None, BackfillState.DONE
        return self._note(
            Step(examined, queued or 0, state, None if examined else reason, soon=stop is not None),
            next_at=next_at,
            ended_to=ended_to,
            reason=None if state is BackfillState.DONE else reason if not queued else None,
        )

    def _lock_timer(self) -> tuple[datetime | None, datetime | None]:
        """Return the first instant that the job's schedule has not planned yet, and when that fires."""
        rows = self._connection.execute(
            statement("lock_backfill_timer"), {"job_id": self._backfill.job_id}
        ).fetchall()
        return (rows[0][0], min(row[1] for row in rows)) if rows else (None, None)

    def _has_timer(self) -> bool:
        query = "select from timers where job_id = %s and kind in (0, 1, 3) limit 1"
        return self._connection.execute(query, [self._backfill.job_id]).fetchone() is not None

    def _lock_job(self) -> _Job | None:
        with self._connection.cursor(row_factory=row_of(_Job)) as cursor:
            return cursor.execute(
                statement("lock_backfill_job"), {"job_id": self._backfill.job_id}
            ).fetchone()

    def _capacity(
        self, job: _Job, schedule: Schedule, fires_at: datetime | None, *, held_back: bool
    ) -> _QueueCapacity:
        """Return how many runs may be queued now."""
        backfill = self._backfill
        row = self._connection.execute(
            statement("count_backfill_unfinished"),
            {
                "job_id": backfill.job_id,
                "first": backfill.ended_to,
                "last": backfill.next_at,
                "request_id": backfill.id.hex,
                "cap": self._limits.unfinished,
            },
        ).fetchone()
        assert row is not None
        unfinished, oldest = row
        ended_to = oldest or backfill.next_at
        if held_back:
            return _QueueCapacity(0, ended_to, "the relay of the low lane is behind")
        left = self._limits.unfinished - unfinished
        if left <= 0:
            return _QueueCapacity(0, ended_to, f"{unfinished} of its runs are unfinished, which is the limit")
        if not job.one_by_one:
            return _QueueCapacity(min(left, self._limits.queue), ended_to, "its pace")
        left_alone = courtesy(schedule.period_seconds(backfill.now))
        if fires_at is not None and fires_at - backfill.now <= left_alone:
            return _QueueCapacity(
                0, ended_to, "an instant of the schedule is due, and its runs may not overlap"
            )
        return _QueueCapacity(1, ended_to, "its runs may not overlap")

    def _queue(self, instants: Sequence[datetime], job: _Job) -> int | None:
        """Write runs with their messages or wait rows; None if the slot of the job is not free."""
        if not instants:
            return 0
        backfill, needs_slot = self._backfill, job.one_by_one
        ids = uuid7_batch(len(instants))
        if needs_slot and not acquire_slots(self._connection, [(ids[0], backfill.job_id)]):
            return None
        days = sorted({at.astimezone(UTC).date() for at in instants})
        self._connection.execute("select noonmark_make_day(day) from unnest(%s::date[]) as u (day)", [days])
        # The cap of a namespace is for runs that are executed: of a workflow, the runs of its tasks.
        capped = job.capped and backfill.pool != WORKFLOW_POOL
        gates = gates_of(
            backfill.job_id, backfill.namespace, Lane.LOW, job.limits or (), Overlap.ALLOW, capped=capped
        )
        inserted = self._insert(ids, instants, gates[0] if gates else None, holds_slot=needs_slot)
        enqueue_waiting(
            self._connection,
            [
                WaitingRun(run_id, at, backfill.job_id, Lane.LOW, gates[0], None)
                for run_id, at in zip(ids, instants, strict=True)
                if gates and run_id in inserted
            ],
        )
        if needs_slot and not inserted:
            release_slots(self._connection, [(ids[0], backfill.job_id)])
        return len(inserted)

    def _insert(
        self, ids: Sequence[UUID], instants: Sequence[datetime], gate: Gate | None, *, holds_slot: bool
    ) -> set[UUID]:
        """Insert runs that are queued, or wait for a gate; return those that the ledger did not have yet."""
        backfill, count = self._backfill, len(instants)
        inserted = self._connection.execute(
            statement("insert_runs"),
            {
                "ids": ids,
                "scheduled_for": list(instants),
                "last_scheduled_for": [None] * count,
                "instants": [1] * count,
                "job_ids": [backfill.job_id] * count,
                "job_versions": [backfill.job_version] * count,
                "states": [(RunState.WAITING if gate else RunState.QUEUED).value] * count,
                "reasons": [gate.reason.value if gate else None] * count,
                "start_by": [None] * count,
                "holds_slot": [holds_slot] * count,
                "shards": [backfill.shard] * count,
                "lanes": [int(Lane.LOW)] * count,
                "namespaces": [backfill.namespace] * count,
                "pools": [backfill.pool] * count,
                "origins": [Origin.BACKFILL.value] * count,
                "request_ids": [backfill.id.hex] * count,
                "arrays": False,
            },
        ).fetchall()
        return {row[0] for row in inserted}

    def _wait(self, reason: str) -> Step:
        return self._end(BackfillState.RUNNING, reason)

    def _end(self, state: BackfillState, reason: str) -> Step:
        done, backfill = Step(state=state, waits_for=reason), self._backfill
        return self._note(done, next_at=backfill.next_at, ended_to=backfill.ended_to, reason=reason)

    def _below_floor(self, bounds: BackfillBounds) -> Step:
        return self._end(
            BackfillState.FAILED,
            f"the ledger floor has risen to {format_instant(bounds.ledger_floor)}, after the next instant to"
            f" run, {format_instant(self._backfill.next_at)}: start another backfill from the floor",
        )

    def _note(self, done: Step, *, next_at: datetime | None, ended_to: datetime, reason: str | None) -> Step:
        """Store what changed; a backfill that only continues to wait is left alone."""
        backfill = self._backfill
        unchanged = (
            done.state is BackfillState.RUNNING
            and next_at == backfill.next_at
            and ended_to == backfill.ended_to
            and reason == backfill.state_reason
        )
        if not unchanged:
            self._connection.execute(
                statement("advance_backfill"),
                {
                    "id": backfill.id,
                    "next_at": next_at,
                    "ended_to": ended_to,
                    "examined": done.examined,
                    "queued": done.queued,
                    "state": done.state.value,
                    "reason": reason,
                },
            )
        return done
