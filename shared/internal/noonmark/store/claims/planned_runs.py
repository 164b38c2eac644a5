"""Writing what was planned for due timers, in batches: ledger, outbox, slots, skip events, timers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

import psycopg

from noonmark.core.ids import uuid7_batch
from noonmark.core.planning.promotion import Gate, Limits, gates_of
from noonmark.core.states import Lane, Origin, Overlap, RunState, SkipReason
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.schemas.events.settled import SettledRun
from noonmark.store.claims.overlap import SlotDecision, SlotRequest, decide_slots
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import DueTimer
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import release_slots
from noonmark.store.limits.wait_queue import WaitingRun, enqueue_waiting
from noonmark.store.outcomes.events import EventTopics, announce

_SLOT_RETRY: Final = timedelta(seconds=1)
"""How soon a catch-up run is planned again while another run of its job is unfinished."""


# Two of these are created per claimed run; frozen ones take three times as long to create.
@dataclass(slots=True)
class PlannedRun:
    """A ledger row to write: an instant with its verdict, or a range of skipped instants."""

    scheduled_for: datetime
    state: RunState
    reason: str | None = None
    last_scheduled_for: datetime | None = None
    instants: int = 1
    start_by: datetime | None = None
    wants_slot: bool = False
    patient: bool = False
    """If it gets no slot, it is not written, and is planned again a moment later."""
    overlap: Overlap = Overlap.SKIP
    """What it does if it needs a slot and gets none."""
    limits: Limits = ()
    """It waits for capacity under each of these."""


@dataclass(slots=True)
class TimerPlan:
    """What happens to a locked timer.

    Attributes:
        runs: ledger rows to write.
        next_at: the nominal instant to which the timer advances; None: the timer is deleted.
        fire_at: when that instant may fire; None: at `next_at`.
        after_at: the last instant with a verdict, stored if zone data or calendars decide what follows.
        after_offset: seconds from UTC of the wall clock at `after_at`.
        runs_left: runs left under the job's `max_runs` before this plan.
        completed: whether a recurring job has no further instant.
        broken: why the job cannot be planned.
    """

    runs: Sequence[PlannedRun] = ()
    next_at: datetime | None = None
    fire_at: datetime | None = None
    after_at: datetime | None = None
    after_offset: int | None = None
    runs_left: int | None = None
    completed: bool = False
    broken: str | None = None


class Planning(Protocol):
    """Plans timers.

    Attributes:
        zone_data: the version of the time zone data that it plans with.
    """

    zone_data: str

    def prepare(self, connection: psycopg.Connection, timers: Sequence[DueTimer]) -> None:
        """Read from the database what the plans of these timers need, unless it is cached."""

    def __call__(self, timer: DueTimer) -> TimerPlan:
        """Return the plan of a due timer; a failure is a plan with `broken` set, never an exception."""


@dataclass(slots=True)
class ClaimResult:
    """The counts of one claim, for metrics.

    `waiting` counts runs that wait for capacity, `postponed` those planned again when another run ends.
    """

    claimed: int = 0
    queued: int = 0
    waiting: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    broken: list[tuple[UUID, str]] = field(default_factory=list)
    postponed: int = 0
    settled: dict[str, int] = field(default_factory=dict)
    """Runs whose target had not reported in time, by state."""
    made: list[tuple[UUID, UUID]] = field(default_factory=list)
    """New runs that were queued or wait, with their jobs; only filled on request."""


@dataclass(slots=True)
class _Row:
    """A planned run with everything that its ledger row needs."""

    id: UUID
    timer: DueTimer
    run: PlannedRun
    state: RunState
    reason: str | None
    holds_slot: bool
    gate: Gate | None = None


def carry_out(
    connection: psycopg.Connection,
    lane: Lane,
    plans: Sequence[tuple[DueTimer, TimerPlan]],
    *,
    topics: EventTopics,
    install_shards: int,
    named: bool = False,
    arrays: bool = False,
) -> ClaimResult:
    """Write what was planned for locked timers of one lane: ledger, outbox, slots, timers, jobs.

    Args:
        connection: in the transaction that locked the timers.
        lane: the lane of the timers.
        plans: each timer with its plan.
        topics: where verdicts are announced.
        install_shards: the number of shards of the installation.
        named: whether the result lists the new runs.
        arrays: whether a row of the outbox has several runs.
    """
    result = ClaimResult(claimed=len(plans))
    rows: Sequence[_Row] = _rows(plans)
    _make_days(connection, rows)
    requested = len(rows)
    rows, plans = _grant_slots(connection, rows, plans, topics, install_shards)
    result.postponed = requested - len(rows)
    _find_gates(lane, rows)
    inserted = _insert(connection, lane, rows, arrays=arrays)
    _enqueue_waiting(connection, lane, rows, inserted)
    _release_slots(connection, rows, inserted)
    _announce_skips(connection, topics, lane, [row for row in rows if row.id in inserted], install_shards)
    for row in rows:
        if named and row.state is not RunState.SKIPPED and row.id in inserted:
            result.made.append((row.id, row.timer.job_id))
        if row.state is RunState.QUEUED:
            result.queued += row.id in inserted
        elif row.gate is not None:
            result.waiting += row.id in inserted
        elif row.state is RunState.SKIPPED and row.reason and row.id in inserted:
            result.skipped[row.reason] = result.skipped.get(row.reason, 0) + row.run.instants
    moves, used_up = _count_down(plans, rows, inserted)
    _advance(connection, moves)
    result.broken = [(timer.job_id, p.broken) for timer, p in moves if p.broken]
    _mark_broken(
        connection, result.broken, [t.job_id for t, p in moves if p.completed or t.job_id in used_up]
    )
    return result


def _rows(plans: Sequence[tuple[DueTimer, TimerPlan]]) -> list[_Row]:
    flat = [(timer, run) for timer, p in plans for run in p.runs]
    ids = uuid7_batch(len(flat))
    return [
        _Row(run_id, timer, run, run.state, run.reason, holds_slot=False)
        for run_id, (timer, run) in zip(ids, flat, strict=True)
    ]


def _make_days(connection: psycopg.Connection, rows: Sequence[_Row]) -> None:
    """Create the days of a gap over midnight: there may have been no housekeeping meanwhile."""
    if not rows:
        return
    midnight = rows[0].timer.now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    past = [row.run.scheduled_for for row in rows if row.run.scheduled_for < midnight]
    if past:
        for day in sorted({at.astimezone(UTC).date() for at in (*past, midnight)}):
            connection.execute("select noonmark_make_day(%s)", [day])


def _grant_slots(
    connection: psycopg.Connection,
    rows: Sequence[_Row],
    plans: Sequence[tuple[DueTimer, TimerPlan]],
    topics: EventTopics,
    install_shards: int,
) -> tuple[Sequence[_Row], Sequence[tuple[DueTimer, TimerPlan]]]:
    """Acquire the overlap slot of each run that needs one; otherwise apply the overlap rule of its job.

    A catch-up run waits instead: its timer stays and fires again soon. Returns the rows and plans to write.
    """
    requests = [row for row in rows if row.run.wants_slot]
    if not requests:
        return rows, plans
    decisions = decide_slots(
        connection,
        [SlotRequest(row.id, row.timer.job_id, row.run.overlap, row.run.patient) for row in requests],
        topics=topics,
        install_shards=install_shards,
    )
    waiting: dict[str, _Row] = {}
    for row in requests:
        decision = decisions[row.id]
        if decision is SlotDecision.HAS_SLOT:
            row.holds_slot = True
        elif decision is SlotDecision.POSTPONED:
            waiting[row.timer.place] = row
        elif decision is SlotDecision.SKIPPED:
            row.state, row.reason = RunState.SKIPPED, SkipReason.OVERLAP.value
    if not waiting:
        return rows, plans
    rows = [row for row in rows if waiting.get(row.timer.place) is not row]
    return rows, [
        (timer, _replan_soon(timer, p, waiting[timer.place]) if timer.place in waiting else p)
        for timer, p in plans
    ]


def _replan_soon(timer: DueTimer, p: TimerPlan, row: _Row) -> TimerPlan:
    """Return the plan without the run that has no slot yet; it is the last one of a step."""
    return replace(
        p,
        runs=[run for run in p.runs if run is not row.run],
        next_at=row.run.scheduled_for,
        fire_at=timer.now + _SLOT_RETRY,
        # As it was before this claim; what was skipped since is in the ledger and stays there.
        after_at=timer.after_at,
        after_offset=timer.after_offset,
        completed=False,
    )


def _find_gates(lane: Lane, rows: Sequence[_Row]) -> None:
    """Set the gate of runs that need capacity: without their job's slot, under limits, or under a cap.

    The cap of a namespace is for runs that are executed: of a workflow, the runs of its tasks.
    """
    for row in rows:
        if row.state is not RunState.QUEUED:
            continue
        run, timer = row.run, row.timer
        lacks_slot = run.wants_slot and not row.holds_slot
        capped = timer.capped and timer.pool != WORKFLOW_POOL
        if lacks_slot or run.limits or capped:
            rule = run.overlap if lacks_slot else Overlap.ALLOW
            gates = gates_of(timer.job_id, timer.namespace, lane, run.limits, rule, capped=capped)
            row.state, row.reason, row.gate = RunState.WAITING, gates[0].reason.value, gates[0]


def _enqueue_waiting(
    connection: psycopg.Connection, lane: Lane, rows: Sequence[_Row], inserted: Collection[UUID]
) -> None:
    enqueue_waiting(
        connection,
        [
            WaitingRun(
                row.id,
                row.run.scheduled_for,
                row.timer.job_id,
                lane,
                row.gate,
                row.run.start_by,
                row.run.scheduled_for,
            )
            for row in rows
            if row.gate is not None and row.id in inserted
        ],
    )


def _insert(connection: psycopg.Connection, lane: Lane, rows: Sequence[_Row], *, arrays: bool) -> set[UUID]:
    if not rows:
        return set()
    inserted = connection.execute(
        planned_once("insert_runs"),
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
            "arrays": arrays,
        },
    ).fetchall()
    return {row[0] for row in inserted}


def _release_slots(connection: psycopg.Connection, rows: Sequence[_Row], inserted: Collection[UUID]) -> None:
    """Release the slots of instants that were in the ledger already."""
    release_slots(
        connection,
        [(row.id, row.timer.job_id) for row in rows if row.holds_slot and row.id not in inserted],
    )


def _announce_skips(
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


def _count_down(
    plans: Sequence[tuple[DueTimer, TimerPlan]], rows: Sequence[_Row], inserted: Collection[UUID]
) -> tuple[Sequence[tuple[DueTimer, TimerPlan]], set[UUID]]:
    """Subtract the inserted runs from `runs_left`; return the new plans, and the jobs that are used up."""
    limited = {timer.job_id: p.runs_left for timer, p in plans if p.runs_left is not None}
    if not limited:
        return plans, set()
    for row in rows:
        runs = row.state is RunState.QUEUED or row.gate is not None
        if runs and row.id in inserted and row.timer.job_id in limited:
            limited[row.timer.job_id] -= 1
    used_up = {job_id for job_id, left in limited.items() if left <= 0}
    counted = []
    for timer, p in plans:
        if timer.job_id in used_up:
            counted.append((timer, replace(p, next_at=None)))
        elif timer.job_id in limited:
            counted.append((timer, replace(p, runs_left=limited[timer.job_id])))
        else:
            counted.append((timer, p))
    return counted, used_up


def _advance(connection: psycopg.Connection, plans: Sequence[tuple[DueTimer, TimerPlan]]) -> None:
    moved = [(timer.place, p) for timer, p in plans if p.next_at is not None]
    dropped = [timer.place for timer, p in plans if p.next_at is None]
    if moved:
        connection.execute(
            planned_once("advance_timers"),
            {
                "places": [place for place, _ in moved],
                "at": [p.next_at for _, p in moved],
                "fire_at": [p.fire_at or p.next_at for _, p in moved],
                "after_at": [p.after_at for _, p in moved],
                "after_offset": [p.after_offset for _, p in moved],
                "runs_left": [p.runs_left for _, p in moved],
            },
        )
    if dropped:
        connection.execute(statement("delete_timers"), {"places": dropped})


def _mark_broken(
    connection: psycopg.Connection, broken: Sequence[tuple[UUID, str]], completed: Sequence[UUID]
) -> None:
    if broken:
        connection.execute(
            statement("mark_jobs_broken"), {"ids": [b[0] for b in broken], "reasons": [b[1] for b in broken]}
        )
    if completed:
        connection.execute(statement("complete_jobs"), {"ids": list(completed)})
