"""Planning a locked timer: from the stored schedule and policy to verdicts. Cached; it never raises."""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import psycopg

from noonmark.core.planning.jitter import Jitter
from noonmark.core.planning.plan import Caps, Misfire, MisfirePolicy, PauseWindow, Plan, plan, plan_skips
from noonmark.core.planning.promotion import Limits
from noonmark.core.schedules.schedule import TICK, Once, Schedule
from noonmark.core.schedules.zone_change import next_open
from noonmark.core.states import JobState, Overlap, ResumeChoice, RunState, SkipReason, WaitReason
from noonmark.core.zones.zones import Zone, zone_data_version
from noonmark.store.claims.planned_runs import PlannedRun, TimerPlan
from noonmark.store.database.row_types import DueTimer
from noonmark.store.documents.columns import NEVER
from noonmark.store.documents.schedules import ScheduleTexts

_log = logging.getLogger(__name__)

_ACTIVE: Final = JobState.ACTIVE.value


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides about an instant in addition to its schedule."""

    misfire: Misfire
    overlap: Overlap
    start_deadline_seconds: float | None
    limits: Limits = ()


@lru_cache(maxsize=4096)
def read_policy(text: str) -> Policy:
    """Parse a stored policy; cached by its text."""
    stored = json.loads(text)
    misfire = stored.get("misfire") or {}
    return Policy(
        Misfire(
            MisfirePolicy(misfire.get("policy", MisfirePolicy.FIRE_LATEST)),
            misfire.get("grace_seconds", 60.0),
            misfire.get("look_back_seconds"),
        ),
        Overlap(stored.get("overlap", Overlap.ALLOW)),
        stored.get("start_deadline_seconds"),
        tuple((name, part) for name, part in stored.get("limits", ())),
    )


class Planner:
    """Plans timers one by one; a job that cannot be planned is marked broken, with the reason."""

    def __init__(self, *, catch_up_cap: int, ledger_cap: int) -> None:
        """Set the caps of one planning step: runs per job, and rows before a gap is summarised."""
        self.zone_data = zone_data_version()
        self._caps = Caps(catch_up_cap, ledger_cap)
        self._schedules = ScheduleTexts()
        # Many jobs have one expression: timers that differ in nothing but their job share a plan.
        self._shared: dict[Hashable, TimerPlan] = {}

    def prepare(self, connection: psycopg.Connection, timers: Sequence[DueTimer]) -> None:
        """Read the calendars that are not cached yet; a new claim begins."""
        self._shared.clear()
        self._schedules.learn(connection, (timer.schedule for timer in timers if timer.schedule))

    def __call__(self, timer: DueTimer, *, at_once: bool = False) -> TimerPlan:
        """Return the plan of a due timer; `at_once`: without waiting for its jitter."""
        try:
            return self._plan(timer, at_once=at_once)
        except Exception as error:  # noqa: BLE001 - an error in one job must not stop the others
            return TimerPlan(broken=f"cannot be planned: {type(error).__name__}: {error}")

    def _plan(self, timer: DueTimer, *, at_once: bool) -> TimerPlan:
        if timer.schedule is None:
            return TimerPlan()
        schedule = self._schedules.read(timer.schedule)
        if timer.state != _ACTIVE:
            if timer.state == JobState.CANCELLED:
                return self._owed(timer, schedule)
            return _of_a_paused_job(timer, schedule) if timer.state == JobState.PAUSED else TimerPlan()
        if timer.after_at == timer.scheduled_for:
            return _replanned(timer, schedule)
        if timer.scheduled_for < timer.floor and not isinstance(schedule, Once):
            return _from_the_floor(timer, schedule)
        return self._shared_plan(timer, schedule, at_once=at_once)

    def _shared_plan(self, timer: DueTimer, schedule: Schedule, *, at_once: bool) -> TimerPlan:
        """Return the plan of a due timer of an active job; it may have been made for another job."""
        if schedule.jitter_seconds:
            return self._plan_due(timer, schedule, Jitter(schedule, timer.job_id.bytes), at_once=at_once)
        key = (
            *(at_once, timer.schedule, timer.policy, timer.scheduled_for, timer.after_at, timer.after_offset),
            *(timer.runs_left, timer.resumed_at, timer.resume_choice, timer.now),
        )
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = self._plan_due(timer, schedule, None, at_once=at_once)
        return known

    def _plan_due(
        self, timer: DueTimer, schedule: Schedule, jitter: Jitter | None, *, at_once: bool
    ) -> TimerPlan:
        """Return the plan of a due timer of an active job."""
        policy = read_policy(timer.policy or "{}")
        planned = plan(
            schedule,
            policy.misfire,
            due=timer.scheduled_for,
            now=timer.now,
            held=_pause_window(timer),
            jitter=None if at_once else jitter,
            start_deadline_seconds=policy.start_deadline_seconds,
            runs_left=timer.runs_left,
            one_at_a_time=policy.overlap is not Overlap.ALLOW,
            caps=self._caps,
        )
        return _move(
            timer,
            schedule,
            planned.next_at,
            planned.planned_to or timer.after_at,
            jitter=jitter,
            runs=_runs_of(planned, policy, jitter),
        )

    def _owed(self, timer: DueTimer, schedule: Schedule) -> TimerPlan:
        """Skip a step of what came due before the job was cancelled; it was too much for the cancel."""
        assert timer.updated_at is not None
        if isinstance(schedule, Once):
            return TimerPlan()
        planned = plan_skips(
            schedule, SkipReason.CANCELLED, due=timer.scheduled_for, now=timer.updated_at, caps=self._caps
        )
        left = planned.next_at if planned.next_at and planned.next_at <= timer.updated_at else None
        runs = _runs_of(planned, read_policy(timer.policy or "{}"), None)
        return TimerPlan(runs, next_at=left, fire_at=timer.now if left else None)


def _of_a_paused_job(timer: DueTimer, schedule: Schedule) -> TimerPlan:
    if isinstance(schedule, Once):
        return TimerPlan([_waiting(timer)])
    # The timer was written while the job was being paused: it waits for the resume like any other.
    return _move(timer, schedule, timer.scheduled_for, timer.after_at, fire_at=NEVER)


def _from_the_floor(timer: DueTimer, schedule: Schedule) -> TimerPlan:
    """Continue at the ledger floor: earlier instants were dropped with their days and get no verdict."""
    jitter = Jitter(schedule, timer.job_id.bytes) if schedule.jitter_seconds else None
    _log.warning(
        "job %s: instants from %s on are before the ledger floor %s and get no verdict",
        timer.job_id,
        timer.scheduled_for,
        timer.floor,
    )
    return _move(timer, schedule, schedule.next(timer.floor - TICK), timer.after_at, jitter=jitter)


def _waiting(timer: DueTimer) -> PlannedRun:
    """Return the run of a paused one-time job; its start deadline continues to count."""
    deadline = read_policy(timer.policy or "{}").start_deadline_seconds
    start_by = _start_by(timer.scheduled_for, deadline, None) if deadline is not None else None
    return PlannedRun(timer.scheduled_for, RunState.WAITING, WaitReason.PAUSED, start_by=start_by)


def _pause_window(timer: DueTimer) -> PauseWindow | None:
    if timer.resumed_at is None or timer.scheduled_for >= timer.resumed_at:
        return None  # `plan` compares the start, which jitter may have moved after the resume
    return PauseWindow(timer.resumed_at, ResumeChoice(timer.resume_choice or ResumeChoice.SKIP))


def _replanned(timer: DueTimer, schedule: Schedule) -> TimerPlan:
    """Find the instant after the last one with a verdict, under the current zone data and calendars."""
    assert timer.after_at is not None
    after = timer.after_at
    if timer.after_offset is None:
        next_at = schedule.next(after)
    else:
        next_at = next_open(schedule, after, timedelta(seconds=timer.after_offset))
    jitter = Jitter(schedule, timer.job_id.bytes) if schedule.jitter_seconds else None
    return _move(timer, schedule, next_at, after, jitter=jitter)


def _move(
    timer: DueTimer,
    schedule: Schedule,
    next_at: datetime | None,
    after_at: datetime | None,
    *,
    fire_at: datetime | None = None,
    jitter: Jitter | None = None,
    runs: Sequence[PlannedRun] = (),
) -> TimerPlan:
    if next_at is None and after_at is not None and _may_get_instants(schedule, timer.now):
        next_at, fire_at = after_at, NEVER
    elif jitter is not None and next_at is not None:
        fire_at = jitter.fire_at(next_at)
    zone = schedule.zone
    if zone is None and schedule.calendars is None:
        after_at = None
    return TimerPlan(
        runs,
        next_at=next_at,
        fire_at=fire_at,
        after_at=after_at,
        after_offset=_offset_at(timer, zone, after_at),
        runs_left=timer.runs_left,
        completed=next_at is None and not isinstance(schedule, Once),
    )


def _may_get_instants(schedule: Schedule, now: datetime) -> bool:
    """Whether a change of its calendars can give the schedule instants again: its timer is kept for that."""
    return schedule.calendars is not None and (schedule.end is None or schedule.end > now)


def _runs_of(planned: Plan, policy: Policy, jitter: Jitter | None) -> list[PlannedRun]:
    deadline = policy.start_deadline_seconds
    wants_slot = policy.overlap is not Overlap.ALLOW
    if len(planned.runs) == 1 and deadline is None and not planned.summary:
        (only,) = planned.runs
        if only.skipped is None:  # the usual case
            return [
                PlannedRun(
                    only.scheduled_for,
                    RunState.QUEUED,
                    wants_slot=wants_slot,
                    patient=only.patient,
                    overlap=policy.overlap,
                    limits=policy.limits,
                )
            ]
    runs = [
        PlannedRun(
            instant.scheduled_for,
            RunState.SKIPPED if instant.skipped else RunState.QUEUED,
            instant.skipped,
            start_by=_start_by(instant.scheduled_for, deadline, jitter)
            if deadline is not None and not instant.skipped
            else None,
            wants_slot=wants_slot and not instant.skipped,
            patient=instant.patient,
            overlap=policy.overlap,
            limits=policy.limits if not instant.skipped else (),
        )
        for instant in planned.runs
    ]
    runs += [
        PlannedRun(gap.first, RunState.SKIPPED, gap.reason, last_scheduled_for=gap.last, instants=gap.count)
        for gap in planned.summary
    ]
    return runs


def _start_by(at: datetime, deadline_seconds: float, jitter: Jitter | None) -> datetime:
    return (at if jitter is None else jitter.fire_at(at)) + timedelta(seconds=deadline_seconds)


def _offset_at(timer: DueTimer, zone: Zone | None, after_at: datetime | None) -> int | None:
    """Return the offset of the wall clock from UTC; the stored offset if the instant is unchanged."""
    if zone is None or after_at is None:
        return None
    if after_at == timer.after_at and timer.after_offset is not None:
        return timer.after_offset
    return int(zone.offset(after_at).total_seconds())
