"""The instants between the last planned one and now: counted by arithmetic where a schedule allows it.

Ranges are [low, high). Time of day is nominal throughout; only `fired_before` includes jitter.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.planning.jitter import Jitter
from noonmark.core.schedules.kinds import TICK, Schedule

WALK_CAP: Final = 2_000
"""The most instants of one step if a schedule can only be walked: the next step handles the rest."""

WALK_SECONDS: Final = 0.2
"""The longest time of such a step. It may end at any instant without changing what is decided."""


_STRIDE: Final = 50


@dataclass(frozen=True, slots=True)
class Gap(ABC):
    """The instants from `due` to `now`: `due` itself, then those of the schedule.

    Attributes:
        stop: the end of one step, excluded: just after the last instant that may fire.
        latest: the last instant that may fire, even if it is after `stop`.
    """

    schedule: Schedule
    due: datetime
    now: datetime
    jitter: Jitter | None
    stop: datetime
    latest: datetime

    @abstractmethod
    def count(self, low: datetime, high: datetime) -> int:
        """Return how many instants lie in [low, high)."""

    @abstractmethod
    def instants(self, low: datetime, high: datetime, limit: int) -> list[datetime]:
        """Return the first `limit` instants in [low, high)."""

    @abstractmethod
    def last_before(self, high: datetime) -> datetime:
        """Return the last instant before `high`; `due` if there is none."""

    def fired_before(self, seconds: float | None) -> datetime:
        """Return the end, excluded, of the instants that fired more than `seconds` before now.

        If `seconds` is None, it is `due`, which makes an empty range.
        """
        # Compared in seconds first: a limit of a million years is legal and has no datetime.
        if seconds is None or seconds >= (self.now - self.due).total_seconds():
            return self.due
        limit = self.now - timedelta(seconds=seconds)
        if self.jitter is None:
            return limit
        # Jitter keeps the order, so what fired before `limit` ends at one instant.
        high = limit
        while high > self.due:
            last = self.last_before(high)
            if self.jitter.fire_at(last) < limit:
                return high
            high = last
        return self.due


@dataclass(frozen=True, slots=True)
class _CountedGap(Gap):
    """Asks a schedule that can count without walking."""

    def count(self, low: datetime, high: datetime) -> int:
        return (low <= self.due < high) + self.schedule.count(max(low - TICK, self.due), high - TICK)

    def instants(self, low: datetime, high: datetime, limit: int) -> list[datetime]:
        if low <= self.due < high:
            return [self.due, *self.schedule.between(self.due, high - TICK, limit - 1)][:limit]
        return self.schedule.between(max(low - TICK, self.due), high - TICK, limit)

    def last_before(self, high: datetime) -> datetime:
        return _last(self.schedule, self.due, high)


@dataclass(frozen=True, slots=True)
class _WalkedGap(Gap):
    """Holds the instants of one step."""

    listed: tuple[datetime, ...]

    def count(self, low: datetime, high: datetime) -> int:
        return max(0, bisect_left(self.listed, high) - bisect_left(self.listed, low))

    def instants(self, low: datetime, high: datetime, limit: int) -> list[datetime]:
        begin = bisect_left(self.listed, low)
        return list(self.listed[begin : min(begin + limit, bisect_left(self.listed, high))])

    def last_before(self, high: datetime) -> datetime:
        return self.listed[max(0, bisect_left(self.listed, high) - 1)]


def gap_of(
    schedule: Schedule,
    due: datetime,
    now: datetime,
    jitter: Jitter | None = None,
    *,
    before: datetime | None = None,
) -> Gap:
    """Return the gap between `due`, which may fire at `now`, and `now`.

    Args:
        schedule: whose instants.
        due: the first of them.
        now: what fires later is not in the gap.
        jitter: of the job.
        before: what fires at this moment or later is not in the gap either; `due` fires before it.
    """
    end = now + TICK if before is None else min(now + TICK, before)
    latest = _last(schedule, due, end)
    while jitter is not None and latest > due and jitter.fire_at(latest) >= end:
        latest = _last(schedule, due, latest)
    stop = end if jitter is None else latest + TICK
    if not schedule.walks:
        return _CountedGap(schedule, due, now, jitter, stop, latest)
    listed = _walk(schedule, due, stop)
    if len(listed) == WALK_CAP or ((following := schedule.next(listed[-1])) is not None and following < stop):
        stop = listed[-1] + TICK
    return _WalkedGap(schedule, due, now, jitter, stop, latest, listed)


def _walk(schedule: Schedule, due: datetime, stop: datetime) -> tuple[datetime, ...]:
    """Return `due` and the instants before `stop` that follow it, as far as one step goes."""
    listed = [due]
    ends_at = time.monotonic() + WALK_SECONDS
    while len(listed) < WALK_CAP and time.monotonic() < ends_at:
        found = schedule.between(listed[-1], stop - TICK, min(_STRIDE, WALK_CAP - len(listed)))
        listed += found
        if len(found) < _STRIDE:
            break
    return tuple(listed)


def _last(schedule: Schedule, due: datetime, high: datetime) -> datetime:
    last = schedule.previous(high - TICK)
    return due if last is None or last < due else last
