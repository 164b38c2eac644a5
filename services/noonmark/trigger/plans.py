"""From a locked timer to its plan: stored schedule and policy in, verdicts out. Memoised, never raising."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from noonmark.core.planning import Misfire, MisfirePolicy, plan
from noonmark.core.schedule import Once, Schedule, load_schedule
from noonmark.core.words import JobState, Overlap, RunState, WaitReason
from noonmark.store.claims import PlannedRun, TimerPlan
from noonmark.store.rows import DueTimer


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides over an instant besides its schedule."""

    misfire: Misfire
    overlap: Overlap
    start_deadline_seconds: float | None


@lru_cache(maxsize=65_536)
def read_schedule(text: str) -> Schedule:
    """Read a stored schedule, remembered by its text."""
    return load_schedule(json.loads(text))


@lru_cache(maxsize=4096)
def read_policy(text: str) -> Policy:
    """Read a stored policy, remembered by its text."""
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
    )


class Planner:
    """Plans timers one by one; a job that cannot be planned is set aside with the reason."""

    def __init__(self, *, catch_up_cap: int, ledger_cap: int) -> None:
        """Take the caps of one planning step: runs per job, and rows before a gap is summed up."""
        self._catch_up_cap = catch_up_cap
        self._ledger_cap = ledger_cap

    def __call__(self, timer: DueTimer) -> TimerPlan:
        """Return what becomes of a due timer."""
        try:
            return self._plan(timer)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one job must not stop the others
            return TimerPlan(broken=f"cannot be planned: {type(error).__name__}: {error}")

    def _plan(self, timer: DueTimer) -> TimerPlan:
        if timer.state not in (JobState.ACTIVE, JobState.PAUSED) or timer.schedule is None:
            return TimerPlan()
        schedule = read_schedule(timer.schedule)
        policy = read_policy(timer.policy or "{}")
        paused = timer.state == JobState.PAUSED
        if paused and isinstance(schedule, Once):
            return TimerPlan([PlannedRun(timer.scheduled_for, RunState.WAITING, WaitReason.PAUSED)])
        planned = plan(
            schedule,
            policy.misfire,
            due=timer.scheduled_for,
            now=timer.now,
            paused=paused,
            start_deadline_seconds=policy.start_deadline_seconds,
            catch_up_cap=self._catch_up_cap,
            ledger_cap=self._ledger_cap,
        )
        deadline = policy.start_deadline_seconds
        runs = [
            PlannedRun(
                instant.scheduled_for,
                RunState.SKIPPED if instant.skipped else RunState.QUEUED,
                instant.skipped,
                start_by=instant.scheduled_for + timedelta(seconds=deadline)
                if deadline is not None and not instant.skipped
                else None,
                wants_slot=policy.overlap is Overlap.SKIP and not instant.skipped,
            )
            for instant in planned.runs
        ]
        runs += [
            PlannedRun(
                gap.first, RunState.SKIPPED, gap.reason, last_scheduled_for=gap.last, instants=gap.count
            )
            for gap in planned.summary
        ]
        ended = planned.next_at is None and not isinstance(schedule, Once)
        return TimerPlan(runs, planned.next_at, completed=ended)
