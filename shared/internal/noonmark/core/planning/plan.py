"""Decides about the due instants of a job: which run, which are skipped and why, and when to plan again.

`plan` is pure: the trigger calls it inside its claim transaction and writes what it returns. However long
the gap, the work is bounded: counts are computed, rows are capped, and what is left over is planned in a next
step from `Plan.next_at`, which is then still in the past. Over all steps each due instant gets one verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from noonmark.core.planning.gaps import Gap, gap_of
from noonmark.core.planning.jitter import Jitter
from noonmark.core.schedules.schedule import TICK, Once, Schedule, next_memo
from noonmark.core.states import ResumeChoice, SkipReason

CATCH_UP_CAP: Final = 100
"""Runs of one job in one step: a long gap under `fire_all` must not delay other jobs."""

LEDGER_CAP: Final = 1000
"""Skipped instants of one gap that get a row each; more are recorded as ranges."""

MIN_LOOK_BACK_SECONDS: Final = 3600.0


class MisfirePolicy(StrEnum):
    """What to do with instants that are later than their grace."""

    FIRE_ALL = "fire_all"
    FIRE_LATEST = "fire_latest"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Misfire:
    """The misfire rule of a job.

    Attributes:
        policy: for instants within the look-back that are later than the grace.
        grace_seconds: an instant up to this late is on time.
        look_back_seconds: an instant older than this never runs. None means 1 h, the grace or one period of
            the schedule, whichever is longest: the latest instant of a recurring job is then always inside.
            For a one-time job, None means no limit.
    """

    policy: MisfirePolicy = MisfirePolicy.FIRE_LATEST
    grace_seconds: float = 60.0
    look_back_seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", MisfirePolicy(self.policy))  # rows hold the plain word
        if not 0 <= self.grace_seconds < math.inf:
            raise ValueError(f"grace_seconds is {self.grace_seconds}; use a number of at least 0")
        look_back = self.look_back_seconds
        if look_back is not None and not self.grace_seconds <= look_back < math.inf:
            raise ValueError(
                f"look_back_seconds is {look_back}; use a number of at least grace_seconds "
                f"({self.grace_seconds:g})"
            )

    def look_back_at(self, schedule: Schedule, now: datetime) -> float | None:
        """Return the look-back in seconds for `schedule` at `now`; None: no limit."""
        if self.look_back_seconds is not None or isinstance(schedule, Once):
            return self.look_back_seconds
        return max(MIN_LOOK_BACK_SECONDS, self.grace_seconds, schedule.period_seconds(now))


@dataclass(frozen=True, slots=True)
class PauseWindow:
    """A pause that has ended.

    Attributes:
        until: the resume: instants that would have fired before it and have no verdict yet were deferred by
                the pause.
        choice: what happens to them.
    """

    until: datetime
    choice: ResumeChoice


@dataclass(frozen=True, slots=True)
class PlannedInstant:
    """One due instant and its verdict.

    Attributes:
        scheduled_for: the nominal instant.
        skipped: the reason it is skipped, or None if it runs.
        patient: it is caught up: it waits for the job's current run instead of being skipped.
    """

    scheduled_for: datetime
    skipped: SkipReason | None = None
    patient: bool = False


@dataclass(frozen=True, slots=True)
class SkippedRange:
    """`count` skipped instants from `first` to `last`, both included, all for one reason."""

    first: datetime
    last: datetime
    count: int
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of one planning step.

    Attributes:
        runs: instants that get their own ledger row, oldest first, including skipped ones.
        summary: ranges of skipped instants, oldest first; they overlap neither each other nor `runs`.
        next_at: the timer's next instant: the first that is not planned yet. In the past: plan again,
                soon. None: the job has no further instant.
        planned_to: every instant up to here has its verdict; None if this step gave none.
    """

    runs: list[PlannedInstant]
    summary: list[SkippedRange] = field(default_factory=list)
    next_at: datetime | None = None
    planned_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """The limits of one planning step.

    Attributes:
        runs: of one job: a long gap under `fire_all` must not delay other jobs.
        rows: skipped instants that get a row each; more are recorded as ranges.
    """

    runs: int = CATCH_UP_CAP
    rows: int = LEDGER_CAP

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ValueError(f"the cap on runs is {self.runs}; use 1 or more")


_CAPS: Final = Caps()


def plan(
    schedule: Schedule,
    misfire: Misfire,
    *,
    due: datetime,
    now: datetime,
    held: PauseWindow | None = None,
    jitter: Jitter | None = None,
    start_deadline_seconds: float | None = None,
    runs_left: int | None = None,
    one_at_a_time: bool = False,
    caps: Caps = _CAPS,
) -> Plan:
    """Give every instant from `due` to `now` its verdict, as far as the caps allow in one step.

    Args:
        schedule: the schedule of the job version that the timer belongs to.
        misfire: the job's misfire rule.
        due: the timer's nominal instant: it gets a verdict even if the schedule no longer names it.
        now: the database's time. If `due` may not fire yet, nothing is planned and the timer stays.
        held: the pause that the job was last resumed from.
        jitter: of the job, where it has one. Lateness counts from the jittered moment.
        start_deadline_seconds: an instant later than this at `now` does not run.
        runs_left: runs that the job still has under its `max_runs`.
        one_at_a_time: its runs may not overlap: a step plans one, and of several that are due at once under
            `fire_latest` only the latest.
        caps: of one step.
    """
    fires_at = due if jitter is None else jitter.fire_at(due)
    if fires_at > now:
        return Plan([], [], due)
    following = next_memo(schedule, due)
    alone = following is None or following > now
    if held is not None and fires_at >= held.until:
        held = None
    if alone and held is None:
        age = (now - fires_at).total_seconds()
        if age <= misfire.grace_seconds and not _expired(age, start_deadline_seconds):
            return Plan([PlannedInstant(due)], [], following, due)  # nearly every claim ends here
    # The instants of a pause are a separate step: those since the resume follow the job's own rules.
    gap = gap_of(schedule, due, now, jitter, before=held.until if held is not None else None)
    if held is None:
        cuts = _cuts(gap, misfire, start_deadline_seconds, one_at_a_time=one_at_a_time)
    else:
        cuts = _cuts_of_pause(gap, misfire, start_deadline_seconds, held.choice)
    rows, summary, rest = _skip(gap, cuts, caps.rows)
    most = 1 if one_at_a_time else caps.runs if runs_left is None else max(1, min(caps.runs, runs_left))
    running = gap.instants(rest, gap.stop, most)
    catches_up = one_at_a_time and (held is not None or misfire.policy is MisfirePolicy.FIRE_ALL)
    # What a pause deferred is caught up however short the pause was: the user chose that it runs.
    on_time = gap.stop if held is not None else gap.fired_before(misfire.grace_seconds)
    rows += [PlannedInstant(at, patient=catches_up and at < on_time) for at in running]
    planned_to = running[-1] if len(running) == most else gap.stop - TICK
    return Plan(rows, summary, next_memo(schedule, planned_to), planned_to)


def plan_skips(
    schedule: Schedule, reason: SkipReason, *, due: datetime, now: datetime, caps: Caps = _CAPS
) -> Plan:
    """Skip the instants from `due` to `now` for one reason: those left of a cancelled or replaced job.

    As with `plan`, `next_at` in the past means that a further step is needed.
    """
    if due > now:
        return Plan([], [], due)
    gap = gap_of(schedule, due, now)
    rows, summary, _ = _skip(gap, [(gap.stop, reason)], caps.rows)
    planned_to = gap.stop - TICK
    return Plan(rows, summary, next_memo(schedule, planned_to), planned_to)


def _cuts(
    gap: Gap, misfire: Misfire, start_deadline_seconds: float | None, *, one_at_a_time: bool
) -> list[tuple[datetime, SkipReason]]:
    """Return, in order of precedence, the instant (excluded) up to which each reason to skip applies.

    An instant is skipped for the first reason whose cut is after it, and runs if there is none.
    """
    deadline = (gap.fired_before(start_deadline_seconds), SkipReason.START_DEADLINE)
    on_time = gap.fired_before(misfire.grace_seconds)
    too_old = (gap.fired_before(misfire.look_back_at(gap.schedule, gap.now)), SkipReason.LOOK_BACK)
    if misfire.policy is MisfirePolicy.SKIP:
        return [too_old, (on_time, SkipReason.MISFIRED), deadline]
    if misfire.policy is MisfirePolicy.FIRE_LATEST:
        # The missed instants become one run: the latest of them, or the first that is on time again. Where
        # only one can run now, those that are on time with it become part of it too.
        cut = gap.latest if one_at_a_time else min(on_time, gap.latest)
        return [too_old, (cut, SkipReason.COALESCED), deadline]
    return [too_old, deadline]


def _cuts_of_pause(
    gap: Gap, misfire: Misfire, start_deadline_seconds: float | None, choice: ResumeChoice
) -> list[tuple[datetime, SkipReason]]:
    """Return the cuts, as `_cuts` does, for instants that a pause deferred.

    The user who resumed the job chose what happens to them; only the job's own limits take precedence.
    """
    if choice is ResumeChoice.SKIP:
        return [(gap.stop, SkipReason.PAUSED)]
    too_old = (gap.fired_before(misfire.look_back_seconds), SkipReason.LOOK_BACK)
    deadline = (gap.fired_before(start_deadline_seconds), SkipReason.START_DEADLINE)
    if choice is ResumeChoice.LATEST:
        return [too_old, (gap.latest, SkipReason.COALESCED), deadline]
    return [too_old, deadline]


def _skip(
    gap: Gap, cuts: list[tuple[datetime, SkipReason]], ledger_cap: int
) -> tuple[list[PlannedInstant], list[SkippedRange], datetime]:
    """Return the skipped instants, as rows or as ranges, and where the instants that run begin."""
    spans: list[tuple[datetime, datetime, int, SkipReason]] = []
    low = gap.due
    for cut, reason in cuts:
        high = min(cut, gap.stop)
        if high > low and (count := gap.count(low, high)):
            spans.append((low, high, count, reason))
        low = max(low, high)
    if sum(count for _, _, count, _ in spans) > ledger_cap:
        return [], [_range_of(gap, *span) for span in spans], low
    rows = [
        PlannedInstant(at, reason)
        for begin, end, count, reason in spans
        for at in gap.instants(begin, end, count)
    ]
    return rows, [], low


def _range_of(gap: Gap, low: datetime, high: datetime, count: int, reason: SkipReason) -> SkippedRange:
    return SkippedRange(gap.instants(low, high, 1)[0], gap.last_before(high), count, reason)


def _expired(age_seconds: float, deadline_seconds: float | None) -> bool:
    return deadline_seconds is not None and age_seconds > deadline_seconds
