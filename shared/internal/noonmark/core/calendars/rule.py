"""A rule on the wall clock under calendars: a fire on a closed day is left out, or moved to an open one.

Moving keeps the time of day. The fires of an open day are then those of a group of days: the day itself and
the adjacent closed days whose fires move to it. Several fires at one time are one fire.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from noonmark.core.calendars.calendar import MAX_MOVE_DAYS, DayRange, OnHoliday, OpenDays
from noonmark.core.calendars.local_rule import LocalRule
from noonmark.core.cron.expression import CronRule

SEARCH_DAYS: Final = 41 * 366
"""How far a search continues past the rule's next or last fire: as far as cron's own search."""

MAX_STEPS: Final = 3_000
"""Closed days with fires that a search visits: one a week for longer than `SEARCH_DAYS`."""

_LAST_SECOND: Final = time(23, 59, 59)
_FIRST_MOMENT: Final = datetime.combine(date.min, time.min)


@dataclass(frozen=True, slots=True)
class CalendarRule:
    """A `LocalRule` under calendars.

    Attributes:
        rule: what would fire if every day were open.
        days: which days are open.
        on_holiday: what happens to a fire on a closed day. It is moved by at most `MAX_MOVE_DAYS`.
    """

    rule: LocalRule
    days: OpenDays
    on_holiday: OnHoliday = OnHoliday.SKIP

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire strictly after `after`; None if none is found within the search's bounds."""
        return self._next_kept(after) if self.on_holiday is OnHoliday.SKIP else self._next_moved(after)

    def previous(self, at: datetime) -> datetime | None:
        """Return the last fire at or before `at`; None if none is found within the search's bounds."""
        return self._previous_kept(at) if self.on_holiday is OnHoliday.SKIP else self._previous_moved(at)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many fires lie in (after, until]; whole stretches of open days are counted at once."""
        if until <= after:
            return 0
        total = 0
        for first, last in self.days.open_stretches(after.date(), until.date()):
            begin, end = first, last
            if self.on_holiday is OnHoliday.NEXT_BUSINESS_DAY and self._gathers(first, -1):
                total += self._count_group(first, after, until)
                begin = _shifted(first, 1)
            elif self.on_holiday is OnHoliday.PREVIOUS_BUSINESS_DAY and self._gathers(last, 1):
                total += self._count_group(last, after, until)
                end = _shifted(last, -1)
            if begin <= end:
                total += self.rule.count(max(after, _eve(begin)), min(until, _end(end)))
        return total

    def note_of(self, local: datetime) -> str | None:
        """Say that the fire at `local` was moved, and why the day it comes from is closed; else None."""
        day = local.date()
        if self.on_holiday is OnHoliday.SKIP or self._fires_at(local) or not self.days.is_open(day):
            return None
        for source in self._firing_days(self._group(day)):
            if self._fires_at(datetime.combine(source, local.time())):
                return f"moved: {self.days.closed_by(source)}"
        return None

    def skipped(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]:
        """Return the fires in (after, until] that calendars removed, each with the reason, oldest first.

        Args:
            after: exclusive.
            until: inclusive; at most `SEARCH_DAYS` after `after` are searched.
            limit: the most fires that are returned.
        """
        found: list[tuple[datetime, str]] = []
        last = min(until.date(), _shifted(after.date(), SEARCH_DAYS))
        at = self.rule.next(after)
        while at is not None and at <= until and at.date() <= last and len(found) < limit:
            reason = self.days.closed_by(at.date())
            if reason is None:
                closed = self._next_closed(at.date(), last)
                at = self.rule.next(_eve(closed)) if closed else None
            elif self.on_holiday is OnHoliday.SKIP:
                found.append((at, f"skipped: {reason}"))
                at = self.rule.next(at)
            elif self._target(at.date()) is None:
                way = "after" if self.on_holiday is OnHoliday.NEXT_BUSINESS_DAY else "before"
                found.append((at, f"skipped: {reason}, and no day in the {MAX_MOVE_DAYS} {way} it is open"))
                at = self.rule.next(at)
            else:
                at = self.rule.next(_end(at.date()))
        return found

    # fires on closed days are left out

    def _next_kept(self, after: datetime) -> datetime | None:
        at = self.rule.next(after)
        last = _shifted((at or after).date(), SEARCH_DAYS)
        for _ in range(MAX_STEPS):
            if at is None or at.date() > last:
                return None
            if self.days.is_open(at.date()):
                return at
            day = self.days.next_open(at.date(), within_days=(last - at.date()).days)
            at = self.rule.next(_eve(day)) if day else None
        return None

    def _previous_kept(self, at: datetime) -> datetime | None:
        found = self.rule.previous(at)
        first = _shifted((found or at).date(), -SEARCH_DAYS)
        for _ in range(MAX_STEPS):
            if found is None or found.date() < first:
                return None
            if self.days.is_open(found.date()):
                return found
            day = self.days.previous_open(found.date(), within_days=(found.date() - first).days)
            found = self.rule.previous(_end(day)) if day else None
        return None

    # fires on closed days are moved

    def _next_moved(self, after: datetime) -> datetime | None:
        at = self.rule.next(_eve(self._first_source(after.date())))
        last = _shifted((at or after).date(), SEARCH_DAYS)
        for _ in range(MAX_STEPS):
            if at is None or at.date() > last:
                return None
            target = self._target(at.date())
            if target is None:
                at = self._beyond_gap(at.date(), last)
                continue
            group = self._group(target)
            if (found := self._first_in_group(group, target, after)) is not None:
                return found
            at = self.rule.next(_end(group.last))
        return None

    def _previous_moved(self, until: datetime) -> datetime | None:
        at = self.rule.previous(_end(self._last_source(until.date())))
        first = _shifted((at or until).date(), -SEARCH_DAYS)
        for _ in range(MAX_STEPS):
            if at is None or at.date() < first:
                return None
            target = self._target(at.date())
            if target is None:
                at = self._before_gap(at.date(), first)
                continue
            group = self._group(target)
            if (found := self._last_in_group(group, target, until)) is not None:
                return found
            at = self.rule.previous(_end(_shifted(group.first, -1))) if group.first > date.min else None
        return None

    def _target(self, day: date) -> date | None:
        """Return the open day that fires of `day` belong to."""
        if self.days.is_open(day):
            return day
        if self.on_holiday is OnHoliday.NEXT_BUSINESS_DAY:
            return self.days.next_open(day)
        return self.days.previous_open(day)

    def _group(self, target: date) -> DayRange:
        """Return the days whose fires belong to the open day `target`."""
        if self.on_holiday is OnHoliday.NEXT_BUSINESS_DAY:
            before = self.days.previous_open(target)
            return DayRange(_shifted(before, 1) if before else _shifted(target, -MAX_MOVE_DAYS), target)
        after = self.days.next_open(target)
        return DayRange(target, _shifted(after, -1) if after else _shifted(target, MAX_MOVE_DAYS))

    def _first_source(self, day: date) -> date:
        """Return the first day whose fires may belong to `day` or to a later one."""
        if self.on_holiday is OnHoliday.NEXT_BUSINESS_DAY:
            before = self.days.previous_open(day)
            return _shifted(before, 1) if before else _shifted(day, -MAX_MOVE_DAYS)
        if self.days.is_open(day):
            return day
        return self.days.next_open(day) or _shifted(day, MAX_MOVE_DAYS)

    def _last_source(self, day: date) -> date:
        """Return the last day whose fires may belong to `day` or to an earlier one."""
        if self.on_holiday is OnHoliday.PREVIOUS_BUSINESS_DAY:
            after = self.days.next_open(day)
            return _shifted(after, -1) if after else _shifted(day, MAX_MOVE_DAYS)
        if self.days.is_open(day):
            return day
        return self.days.previous_open(day) or _shifted(day, -MAX_MOVE_DAYS)

    def _beyond_gap(self, day: date, last: date) -> datetime | None:
        """Return the first fire after `day` that may have an open day to go to."""
        far = self.days.next_open(day, within_days=(last - day).days)
        if far is None:
            return None
        if self.on_holiday is OnHoliday.NEXT_BUSINESS_DAY:
            far = _shifted(far, -MAX_MOVE_DAYS)
        return self.rule.next(_eve(far))

    def _before_gap(self, day: date, first: date) -> datetime | None:
        """Return the last fire before `day` that may have an open day to go to."""
        far = self.days.previous_open(day, within_days=(day - first).days)
        if far is None:
            return None
        if self.on_holiday is OnHoliday.PREVIOUS_BUSINESS_DAY:
            far = _shifted(far, MAX_MOVE_DAYS)
        return self.rule.previous(_end(far))

    def _first_in_group(self, group: DayRange, target: date, after: datetime) -> datetime | None:
        """Return the first time on `target` that comes from a day of its group and lies after `after`."""
        times = []
        for day in self._firing_days(group):
            lower = datetime.combine(day, after.time()) if target == after.date() else _eve(day)
            at = self.rule.next(lower)
            if at is not None and at.date() == day:
                times.append(at.time())
        return datetime.combine(target, min(times)) if times else None

    def _last_in_group(self, group: DayRange, target: date, until: datetime) -> datetime | None:
        """Return the last time on `target` that comes from a day of its group, at or before `until`."""
        times = []
        for day in self._firing_days(group):
            upper = datetime.combine(day, until.time()) if target == until.date() else _end(day)
            at = self.rule.previous(upper)
            if at is not None and at.date() == day:
                times.append(at.time())
        return datetime.combine(target, max(times)) if times else None

    def _count_group(self, target: date, after: datetime, until: datetime) -> int:
        """Return how many times on the open day `target`, with what is moved to it, lie in (after, until]."""
        lower = after.time() if target == after.date() else None
        upper = until.time() if target == until.date() else _LAST_SECOND
        windows = [
            (datetime.combine(day, lower) if lower is not None else _eve(day), datetime.combine(day, upper))
            for day in self._firing_days(self._group(target))
        ]
        if not windows:
            return 0
        if len(windows) == 1 or isinstance(self.rule, CronRule):
            # Every day on which a cron expression fires has the same times.
            return self.rule.count(*windows[0])
        return len({at.time() for window in windows for at in self._walk(*window)})

    def _walk(self, after: datetime, until: datetime) -> Iterator[datetime]:
        at = self.rule.next(after)
        while at is not None and at <= until:
            yield at
            at = self.rule.next(at)

    def _firing_days(self, group: DayRange) -> Iterator[date]:
        """Return the days of a group on which the rule fires, in order."""
        at = self.rule.next(_eve(group.first))
        while at is not None and at.date() <= group.last:
            yield at.date()
            at = self.rule.next(_end(at.date()))

    def _gathers(self, day: date, way: int) -> bool:
        """Whether the neighbour of an open day is closed, so that fires of other days may come to it."""
        neighbour = _shifted(day, way)
        return neighbour != day and not self.days.is_open(neighbour)

    def _fires_at(self, local: datetime) -> bool:
        return self.rule.previous(local) == local

    def _next_closed(self, day: date, last: date) -> date | None:
        later = map(date.fromordinal, range(day.toordinal() + 1, last.toordinal() + 1))
        return next((one for one in later if not self.days.is_open(one)), None)


def _shifted(day: date, by: int) -> date:
    """Return the day `by` days later, or the last (or first) possible date."""
    return date.fromordinal(min(max(day.toordinal() + by, 1), date.max.toordinal()))


def _eve(day: date) -> datetime:
    """Return the moment before the day begins: searches exclude their lower end."""
    return datetime.combine(day, time.min) - timedelta(microseconds=1) if day > date.min else _FIRST_MOMENT


def _end(day: date) -> datetime:
    return datetime.combine(day, _LAST_SECOND)
