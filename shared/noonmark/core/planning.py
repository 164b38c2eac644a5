"""What becomes of the due instants of a job: which run, which are skipped and why, and when to look again.

`plan` is pure: the trigger calls it inside its claim transaction and writes what it returns. However long
the gap, the work is bounded: counts are computed, rows are capped, and what is left over is planned in a next
step from `Plan.next_at`, which then still lies in the past. Over all steps each due instant gets one verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from noonmark.core.schedule import TICK, Once, Schedule, next_memo
from noonmark.core.words import SkipReason

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
        look_back_seconds: an instant older than this never runs. None is 1 h, the grace or one period of the
            schedule, whichever is longest: the latest instant of a recurring job is then always inside.
    """

    policy: MisfirePolicy = MisfirePolicy.FIRE_LATEST
    grace_seconds: float = 60.0
    look_back_seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", MisfirePolicy(self.policy))  # rows hold the plain word
        if not 0 <= self.grace_seconds < math.inf:
            raise ValueError(f"grace_seconds is {self.grace_seconds}; use a number from 0 on")
        look_back = self.look_back_seconds
        if look_back is not None and not self.grace_seconds <= look_back < math.inf:
            raise ValueError(
                f"look_back_seconds is {look_back}; use a number not below grace_seconds "
                f"({self.grace_seconds:g})"
            )

    def look_back_at(self, schedule: Schedule, now: datetime) -> float:
        """Return the look-back in seconds that holds for `schedule` at `now`."""
        if self.look_back_seconds is not None:
            return self.look_back_seconds
        return max(MIN_LOOK_BACK_SECONDS, self.grace_seconds, schedule.period_seconds(now))


@dataclass(frozen=True, slots=True)
class PlannedInstant:
    """One due instant and its verdict: the reason it is skipped, or None if it runs."""

    scheduled_for: datetime
    skipped: SkipReason | None = None


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
        runs: instants that get a ledger row of their own, oldest first, skipped ones included.
        summary: ranges of skipped instants, oldest first; they overlap neither each other nor `runs`.
        next_at: where the timer goes: the first instant that is not planned yet. In the past: plan again,
            soon. None: the job has no further instant.
    """

    runs: list[PlannedInstant]
    summary: list[SkippedRange] = field(default_factory=list)
    next_at: datetime | None = None


def plan(
    schedule: Schedule,
    misfire: Misfire,
    *,
    due: datetime,
    now: datetime,
    paused: bool = False,
    start_deadline_seconds: float | None = None,
    catch_up_cap: int = CATCH_UP_CAP,
    ledger_cap: int = LEDGER_CAP,
) -> Plan:
    """Give every instant from `due` to `now` its verdict, as far as the caps allow in one step.

    Args:
        schedule: the schedule of the job version that the timer belongs to.
        misfire: the job's misfire rule.
        due: the timer's nominal instant: it gets a verdict even if the schedule no longer names it.
        now: the database's time. If it is before `due`, nothing is planned and the timer stays.
        paused: the job is paused; every instant is skipped for that. A paused one-time job is held by the
            caller: a `Once` is planned as if it were not paused.
        start_deadline_seconds: an instant older than this at `now` does not run.
        catch_up_cap: at most so many instants run in one step; 1 or more.
        ledger_cap: up to so many skipped instants of this step get a row each.

    Raises:
        ValueError: `catch_up_cap` is below 1: nothing would ever run.
    """
    if catch_up_cap < 1:
        raise ValueError(f"catch_up_cap is {catch_up_cap}; use 1 or more")
    if due > now:
        return Plan([], [], due)
    following = next_memo(schedule, due)
    alone = following is None or following > now
    age = (now - due).total_seconds()
    if alone and age <= misfire.grace_seconds and not paused and not _expired(age, start_deadline_seconds):
        return Plan([PlannedInstant(due)], [], following)  # nearly every claim ends here
    gap = _Gap(schedule, due, now)
    cuts = _cuts(gap, misfire, start_deadline_seconds, paused=paused and not isinstance(schedule, Once))
    rows, summary, rest = _skip(gap, cuts, ledger_cap)
    running = gap.instants(rest, gap.stop, catch_up_cap)
    rows += [PlannedInstant(at) for at in running]
    planned_to = running[-1] if len(running) == catch_up_cap else now
    return Plan(rows, summary, next_memo(schedule, planned_to))


@dataclass(frozen=True, slots=True)
class _Gap:
    """The instants from `due` to `now`: `due` itself, then those of the schedule. Ranges are [low, high)."""

    schedule: Schedule
    due: datetime
    now: datetime

    @property
    def stop(self) -> datetime:
        return self.now + TICK

    @property
    def latest(self) -> datetime:
        return self._last_before(self.stop)

    def count(self, low: datetime, high: datetime) -> int:
        return (low <= self.due < high) + self.schedule.count(max(low - TICK, self.due), high - TICK)

    def instants(self, low: datetime, high: datetime, limit: int) -> list[datetime]:
        if low <= self.due < high:
            return [self.due, *self.schedule.between(self.due, high - TICK, limit - 1)][:limit]
        return self.schedule.between(max(low - TICK, self.due), high - TICK, limit)

    def range_of(self, low: datetime, high: datetime, count: int, reason: SkipReason) -> SkippedRange:
        first = self.instants(low, high, 1)[0]
        return SkippedRange(first, self._last_before(high), count, reason)

    def _last_before(self, high: datetime) -> datetime:
        last = self.schedule.previous(high - TICK)
        return self.due if last is None or last < self.due else last


def _cuts(
    gap: _Gap, misfire: Misfire, start_deadline_seconds: float | None, *, paused: bool
) -> list[tuple[datetime, SkipReason]]:
    """Return, in order of precedence, up to which instant (excluded) each reason to skip holds.

    An instant is skipped for the first reason whose cut lies after it, and runs if there is none.
    """
    if paused:
        return [(gap.stop, SkipReason.PAUSED)]
    deadline = (_before(gap.now, start_deadline_seconds, gap.due), SkipReason.START_DEADLINE)
    on_time = _before(gap.now, misfire.grace_seconds, gap.due)
    recurring = not isinstance(gap.schedule, Once)
    look_back = misfire.look_back_at(gap.schedule, gap.now) if recurring else None
    too_old = (_before(gap.now, look_back, gap.due), SkipReason.LOOK_BACK)
    if misfire.policy is MisfirePolicy.SKIP:
        return [too_old, (on_time, SkipReason.MISFIRED), deadline]
    if misfire.policy is MisfirePolicy.FIRE_LATEST:
        # The missed instants become one run: the latest of them, or the first that is on time again.
        return [too_old, (min(on_time, gap.latest), SkipReason.COALESCED), deadline]
    return [too_old, deadline]


def _skip(
    gap: _Gap, cuts: list[tuple[datetime, SkipReason]], ledger_cap: int
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
        return [], [gap.range_of(*span) for span in spans], low
    rows = [
        PlannedInstant(at, reason)
        for begin, end, count, reason in spans
        for at in gap.instants(begin, end, count)
    ]
    return rows, [], low


def _expired(age_seconds: float, deadline_seconds: float | None) -> bool:
    return deadline_seconds is not None and age_seconds > deadline_seconds


def _before(now: datetime, seconds: float | None, floor: datetime) -> datetime:
    """Return `now` - `seconds`, or `floor` where that is later or where no number of seconds is set."""
    if seconds is None:
        return floor
    # Compared in seconds first: a limit of a million years is legal and has no datetime.
    return floor if seconds >= (now - floor).total_seconds() else now - timedelta(seconds=seconds)
