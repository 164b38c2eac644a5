"""Which days of a month a cron rule matches: fixed days, weekdays, and days counted from the month's end.

A month is fully described by its shape, the weekday of its first day and its length: 28 shapes in all. The
days of a rule are computed once per shape, so that a search costs one table lookup per month.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final, Literal

COMMON_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Days of the months 1 to 12 in a common year."""

DayKind = Literal["from_last", "weekday_near", "weekday_near_last", "nth", "last"]


def lowest(bits: int) -> int:
    """Return the number of the lowest bit that is set; `bits` is not 0."""
    return (bits & -bits).bit_length() - 1


def up_to(bit: int) -> int:
    """Return the mask of the bits 0 to `bit`, both included; 0 for -1."""
    return (1 << bit + 1) - 1


@dataclass(frozen=True, slots=True)
class DayTerm:
    """One day of a month that depends on the month.

    Attributes:
        kind: `from_last` (`L`, `L-3`): `number` days before the last day; `weekday_near` (`15W`): the day
            from Monday to Friday nearest to day `number`, inside the month; `weekday_near_last` (`LW`,
            `L-3W`): the same for `number` days before the last day; `nth` (`MON#2`): the `number`th
            `weekday`; `last` (`FRIL`): the last `weekday`.
        number: days, or which one, as `kind` says; a day that the month does not have matches nothing.
        weekday: 0 (Sunday) to 6, for `nth` and `last`.
    """

    kind: DayKind
    number: int = 0
    weekday: int = 0

    def day(self, first: int, length: int) -> int | None:
        """Return the day in a month of `length` days that begins on weekday `first`, if it has one."""
        if self.kind == "nth":
            found = 1 + (self.weekday - first) % 7 + 7 * (self.number - 1)
        elif self.kind == "last":
            found = length - (first + length - 1 - self.weekday) % 7
        else:
            found = self.number if self.kind == "weekday_near" else length - self.number
        if not 1 <= found <= length:
            return None
        return found if self.kind in {"from_last", "nth", "last"} else _near(found, first, length)


def _near(day: int, first: int, length: int) -> int:
    """Return the day from Monday to Friday nearest to `day`, never outside the month."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else 3
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


# [weekday of the 1st][weekday] -> mask of the days 1 to 31.
_DAYS_OF: Final = tuple(
    tuple(sum(1 << day for day in range(1, 32) if (first + day - 1) % 7 == weekday) for weekday in range(7))
    for first in range(7)
)


def is_leap(year: int) -> bool:
    """Return whether `year` has a 29 February (proleptic Gregorian calendar)."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def shape(year: int, month: int) -> int:
    """Return the index of the month's shape in a table of 28."""
    length = 29 if month == 2 and is_leap(year) else COMMON_LENGTHS[month]
    # Day 1 of the proleptic calendar is a Monday, so the ordinal modulo 7 is 0 on Sundays.
    return (length - 28) * 7 + date(year, month, 1).toordinal() % 7


def shapes_of(month: int) -> range:
    """Return the indices of all shapes that `month` has within 400 years: every one of its lengths."""
    shortest = COMMON_LENGTHS[month] - 28
    return range(shortest * 7, (shortest + (2 if month == 2 else 1)) * 7)


@lru_cache(maxsize=1024)
def days_by_shape(
    days: int, day_terms: tuple[DayTerm, ...], weekdays: int, weekday_terms: tuple[DayTerm, ...], either: bool
) -> tuple[int, ...]:
    """Return the mask of the matching days for each of the 28 shapes.

    Args:
        days: mask of the days 1 to 31. The day-of-month side matches these and `day_terms`.
        day_terms: the days of the day-of-month side that depend on the month.
        weekdays: mask of the weekdays, Sunday = 0. The other side matches these and `weekday_terms`.
        weekday_terms: the days of the day-of-week side that depend on the month.
        either: whether a day that one side matches is enough, or both must match it.
    """
    table = []
    by_first = [sum(_DAYS_OF[first][at] for at in range(7) if weekdays >> at & 1) for first in range(7)]
    for length in range(28, 32):
        inside = up_to(length) - 1
        for first in range(7):
            by_date = days | _mask(day_terms, first, length)
            by_weekday = by_first[first] | _mask(weekday_terms, first, length)
            table.append((by_date | by_weekday if either else by_date & by_weekday) & inside)
    return tuple(table)


def _mask(terms: tuple[DayTerm, ...], first: int, length: int) -> int:
    bits = 0
    for term in terms:
        if (day := term.day(first, length)) is not None:
            bits |= 1 << day
    return bits


@lru_cache(maxsize=1024)
def days_by_year(by_shape: tuple[int, ...], months: int) -> tuple[int, ...]:
    """Return the number of matching days in a year: for the 7 weekdays of 1 January, common years first.

    Args:
        by_shape: the table of `days_by_shape`.
        months: mask of the months 1 to 12 that count.
    """
    totals = []
    for leap in (False, True):
        for january in range(7):
            first, total = january, 0
            for month in range(1, 13):
                length = 29 if leap and month == 2 else COMMON_LENGTHS[month]
                if months >> month & 1:
                    total += by_shape[(length - 28) * 7 + first].bit_count()
                first = (first + length) % 7
            totals.append(total)
    return tuple(totals)


def year_shape(year: int) -> int:
    """Return the index of the year in the table of `days_by_year`."""
    return (7 if is_leap(year) else 0) + date(year, 1, 1).toordinal() % 7
