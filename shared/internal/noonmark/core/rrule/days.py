"""Which days of a year a recurrence rule allows, as bit sets.

A year's set depends only on its kind: its length, the weekday of its first day and, for week numbers, the
lengths of its neighbours. There are 20-odd kinds, so a search over centuries computes few sets.
"""

from __future__ import annotations

from calendar import isleap
from collections.abc import Iterator
from datetime import date
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from noonmark.core.rrule.parts import Freq, RuleParts

_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_STARTS: Final = tuple(
    tuple(accumulate((days + (leap and month == 1) for month, days in enumerate(_LENGTHS)), initial=0))
    for leap in (False, True)
)
_CACHED_YEARS: Final = 512


class YearDays(NamedTuple):
    """The allowed days of years of one kind: as bits (bit 0 is 1 January) and as ascending 0-based days."""

    bits: int
    days: tuple[int, ...]


class _Kind(NamedTuple):
    leap: bool
    first_weekday: int
    leap_before: bool
    leap_after: bool


def month_start(year: int, month: int) -> int:
    """Return the 0-based day of the year on which the month starts; month 13 is the year's end."""
    return _STARTS[isleap(year)][month - 1]


class DayFilter:
    """The day-level parts of a rule: BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY and BYDAY."""

    def __init__(self, parts: RuleParts) -> None:
        self._parts = parts
        self._by_kind: dict[_Kind, YearDays] = {}
        self._by_year: dict[int, YearDays] = {}

    def year(self, year: int) -> YearDays:
        """Return the days of the year that all parts allow."""
        found = self._by_year.get(year)
        if found is None:
            weekday = (date(year, 1, 1).toordinal() - 1) % 7
            kind = _Kind(isleap(year), weekday, isleap(year - 1), isleap(year + 1))
            found = self._by_kind.get(kind)
            if found is None:
                bits = _admitted(self._parts, kind)
                found = YearDays(bits, tuple(day for day in range(366) if bits >> day & 1))
                self._by_kind[kind] = found
            if len(self._by_year) >= _CACHED_YEARS:
                self._by_year.clear()
            self._by_year[year] = found
        return found


def _admitted(parts: RuleParts, kind: _Kind) -> int:
    starts = _STARTS[kind.leap]
    length = starts[12]
    bits = (1 << length) - 1
    if parts.bymonth:
        bits &= _bits(day for month in parts.bymonth for day in range(starts[month - 1], starts[month]))
    if parts.byweekno:
        bits &= _bits(_week_days(parts, kind, length))
    if parts.byyearday:
        bits &= _bits(day - 1 if day > 0 else length + day for day in parts.byyearday if abs(day) <= length)
    if parts.bymonthday:
        bits &= _bits(_month_days(parts, starts))
    if parts.byday:
        bits &= _bits(_weekdays(parts, kind, starts))
    return bits


def _bits(days: Iterator[int]) -> int:
    bits = 0
    for day in days:
        bits |= 1 << day
    return bits


def _month_days(parts: RuleParts, starts: tuple[int, ...]) -> Iterator[int]:
    for month in range(12):
        length = starts[month + 1] - starts[month]
        for day in parts.bymonthday:
            if abs(day) <= length:
                yield starts[month] + day - 1 if day > 0 else starts[month + 1] + day


def _weekdays(parts: RuleParts, kind: _Kind, starts: tuple[int, ...]) -> Iterator[int]:
    """Yield the days that BYDAY allows: a numbered weekday counts within its month, or within the year."""
    by_month = parts.freq is Freq.MONTHLY or bool(parts.bymonth)
    spans = [*pairwise(starts)] if by_month else [(0, starts[12])]
    for ordinal, weekday in parts.byday:
        for low, high in spans if ordinal else [(0, starts[12])]:
            days = range(low + (weekday - kind.first_weekday - low) % 7, high, 7)
            if ordinal == 0:
                yield from days
            elif abs(ordinal) <= len(days):
                yield days[ordinal - 1 if ordinal > 0 else ordinal]


def _week_days(parts: RuleParts, kind: _Kind, length: int) -> Iterator[int]:
    """Yield the days of this calendar year whose week has a requested number in the year that it belongs to.

    Week 1 is the first with four days in its year (ISO 8601, with WKST for Monday).
    """
    first = (kind.first_weekday - parts.wkst) % 7
    start_before = _week_one((first - 365 - kind.leap_before) % 7) - 365 - kind.leap_before
    start = _week_one(first)
    start_after = _week_one((first + length) % 7) + length
    end_after = _week_one((first + length + 365 + kind.leap_after) % 7) + length + 365 + kind.leap_after
    for low, high in ((start_before, start), (start, start_after), (start_after, end_after)):
        weeks = (high - low) // 7
        for number in parts.byweekno:
            week = number - 1 if number > 0 else weeks + number
            if 0 <= week < weeks:
                yield from range(max(0, low + week * 7), min(length, low + week * 7 + 7))


def _week_one(first: int) -> int:
    """Return the day on which week 1 starts, given how many days of its week lie before 1 January."""
    return -first if first <= 3 else 7 - first
