"""Cron: the rule behind an expression, as bit sets with a bounded search, and the reading of an expression.

Day rule (Vixie): if the day-of-month or the day-of-week field starts with `*`, or is `?`, a day must match
both; otherwise it matches either. The text decides, not the set: `1-31` is not `*`. Quartz has
no rule for two restricted day fields: there one of them must be `?` or `*`.

The grammar is in `noonmark.core.cron.grammar`. Every search is bounded: months are tested at most over
`SEARCH_YEARS`, or over the years that are written. An expression that can never fire is refused when read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from noonmark.core.cron.days import (
    COMMON_LENGTHS,
    DayTerm,
    days_by_shape,
    days_by_year,
    lowest,
    shape,
    shapes_of,
    up_to,
    year_shape,
)
from noonmark.core.cron.fields import FIRST_YEAR, LAST_YEAR, CronError, FieldText
from noonmark.core.cron.grammar import MAX_LENGTH, Written, read_expression

__all__ = [
    "MAX_LENGTH",
    "SEARCH_YEARS",
    "CronError",
    "CronRule",
    "DayTerm",
    "FieldText",
    "is_hashed",
    "parse_cron",
]

SEARCH_YEARS: Final = 41
"""The rarest instants, 29 February on one weekday, lie at most 40 years apart (over a year such as 2100)."""

_LAST_CALENDAR_YEAR: Final = 9999
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class CronRule:
    """The value sets of an expression, as a `LocalRule`; bit n of a mask is the value n.

    All datetimes are naive local times in whole seconds; an argument may have
        microseconds. Two spellings of one set are equal rules.

    Attributes:
        minutes: mask of the values 0 to 59.
        hours: mask of the values 0 to 23.
        days: mask of the days 1 to 31, in addition to `day_terms`.
        months: mask of the values 1 to 12.
        weekdays: mask of the weekdays, Sunday = 0 in every dialect, in addition to `weekday_terms`.
        either: whether a day matches by its date or by its weekday, or must match by both.
        seconds: mask of the values 0 to 59; only 0 if the expression has no seconds field.
        day_terms: days of the day-of-month field that depend on the month (`L`, `15W`).
        weekday_terms: days of the day-of-week field that depend on the month (`MON#2`, `FRIL`).
        years: mask of the years, or None for every year.
        wild: the minute or the hour field starts with `*`: the rule is a rhythm, not a fixed time.
        fields: the fields as written, in the order they were written in, for explaining them.
        seconds_field: "first" or "last", where the seconds field was read; None if there is none.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    either: bool
    seconds: int = 1
    day_terms: tuple[DayTerm, ...] = ()
    weekday_terms: tuple[DayTerm, ...] = ()
    years: int | None = None
    wild: bool = False
    fields: tuple[FieldText, ...] = field(default=(), compare=False, repr=False)
    seconds_field: str | None = field(default=None, compare=False)
    _by_shape: tuple[int, ...] = field(init=False, compare=False, repr=False)
    _first_clock: tuple[int, int, int] = field(init=False, compare=False, repr=False)
    _last_clock: tuple[int, int, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        table = days_by_shape(self.days, self.day_terms, self.weekdays, self.weekday_terms, self.either)
        clock = (self.hours, self.minutes, self.seconds)
        object.__setattr__(self, "_by_shape", table)
        object.__setattr__(self, "_first_clock", tuple(lowest(bits) for bits in clock))
        object.__setattr__(self, "_last_clock", tuple(bits.bit_length() - 1 for bits in clock))

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after `after`, or None after the last year of the rule."""
        year, month, day, hour, minute = after.year, after.month, after.day, after.hour, after.minute
        days = self._matching_days(year, month)
        if days >> day & 1:
            if self.hours >> hour & 1:
                if self.minutes >> minute & 1 and (later := self.seconds >> after.second + 1):
                    second = after.second + 1 + lowest(later)
                    return self._first_of(year, month, day, hour, minute, second)
                if later := self.minutes >> minute + 1:
                    return self._first_of(year, month, day, hour, minute + 1 + lowest(later))
            if later := self.hours >> hour + 1:
                return self._first_of(year, month, day, hour + 1 + lowest(later))
        if later := days >> day + 1:
            return self._first_of(year, month, day + 1 + lowest(later))
        for at_year, at_month in self._months_after(year, month):
            if days := self._matching_days(at_year, at_month):
                return self._first_of(at_year, at_month, lowest(days))
        return None

    def previous(self, at: datetime) -> datetime | None:
        """Return the last time at or before `at`, or None before the first year of the rule."""
        year, month, day, hour, minute = at.year, at.month, at.day, at.hour, at.minute
        days = self._matching_days(year, month)
        if days >> day & 1:
            if self.hours >> hour & 1:
                if self.minutes >> minute & 1 and (sooner := self.seconds & up_to(at.second)):
                    return self._last_of(year, month, day, hour, minute, sooner.bit_length() - 1)
                if sooner := self.minutes & up_to(minute - 1):
                    return self._last_of(year, month, day, hour, sooner.bit_length() - 1)
            if sooner := self.hours & up_to(hour - 1):
                return self._last_of(year, month, day, sooner.bit_length() - 1)
        if sooner := days & up_to(day - 1):
            return self._last_of(year, month, sooner.bit_length() - 1)
        for at_year, at_month in self._months_before(year, month):
            if days := self._matching_days(at_year, at_month):
                return self._last_of(at_year, at_month, days.bit_length() - 1)
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Return the number of times in (after, until], in one step per year."""
        if until <= after:
            return 0
        found = self._rank_in_year(until) - self._rank_in_year(after)
        totals = days_by_year(self._by_shape, self.months)
        days = sum(totals[year_shape(year)] for year in self._years(after.year, until.year - 1))
        return found + days * self._times_a_day()

    def fires(self) -> bool:
        """Return whether any time matches at all, in the 400 years after which the calendar repeats."""
        months = [month for month in range(1, 13) if self.months >> month & 1]
        if self.years is None:
            return any(self._by_shape[at] for month in months for at in shapes_of(month))
        return any(self._matching_days(y, month) for y in self._years(1, LAST_YEAR) for month in months)

    def _times_a_day(self) -> int:
        return self.hours.bit_count() * self.minutes.bit_count() * self.seconds.bit_count()

    def _matching_days(self, year: int, month: int) -> int:
        if not self.months >> month & 1 or (self.years is not None and not self.years >> year & 1):
            return 0
        return self._by_shape[shape(year, month)]

    def _rank_in_year(self, at: datetime) -> int:
        """Return how many times of `at`'s year lie at or before `at`."""
        whole = sum(self._matching_days(at.year, month).bit_count() for month in range(1, at.month))
        days = self._matching_days(at.year, at.month)
        whole += (days & up_to(at.day - 1)).bit_count()
        rank = whole * self._times_a_day()
        if days >> at.day & 1:
            a_minute = self.seconds.bit_count()
            an_hour = self.minutes.bit_count() * a_minute
            rank += (self.hours & up_to(at.hour - 1)).bit_count() * an_hour
            if self.hours >> at.hour & 1:
                rank += (self.minutes & up_to(at.minute - 1)).bit_count() * a_minute
                if self.minutes >> at.minute & 1:
                    rank += (self.seconds & up_to(at.second)).bit_count()
        return rank

    def _years(self, first: int, last: int) -> Iterable[int]:
        """Return the years of the rule from `first` to `last`, both included."""
        if self.years is None:
            return range(first, last + 1)
        years = self.years
        return [year for year in range(max(first, FIRST_YEAR), min(last, LAST_YEAR) + 1) if years >> year & 1]

    def _months_after(self, year: int, month: int) -> Iterator[tuple[int, int]]:
        # Years in the expression are searched to their end: they may be further apart than calendar rules
        # are.
        bound = min(year + SEARCH_YEARS, _LAST_CALENDAR_YEAR) if self.years is None else LAST_YEAR
        for at_year in self._years(year, bound):
            left = self.months >> month + 1 << month + 1 if at_year == year else self.months
            while left:
                yield at_year, lowest(left)
                left &= left - 1

    def _months_before(self, year: int, month: int) -> Iterator[tuple[int, int]]:
        bound = max(year - SEARCH_YEARS, 1) if self.years is None else FIRST_YEAR
        for at_year in reversed(list(self._years(bound, year))):
            left = self.months & up_to(month - 1) if at_year == year else self.months
            while left:
                highest = left.bit_length() - 1
                yield at_year, highest
                left ^= 1 << highest

    def _first_of(self, year: int, month: int, day: int, *clock: int) -> datetime:
        """Return the first time of the day (of the hour, of the minute) that `clock` names so far."""
        hour, minute, second = (*clock, *self._first_clock[len(clock) :])
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - the clock on the wall

    def _last_of(self, year: int, month: int, day: int, *clock: int) -> datetime:
        hour, minute, second = (*clock, *self._last_clock[len(clock) :])
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - the clock on the wall


# An `H` that is not part of a name such as THU.
_HASHED: Final = re.compile(r"(?<![A-Za-z])[Hh](?![A-Za-z])")


def is_hashed(expression: str) -> bool:
    """Return whether the expression has an `H`, so that its times depend on the seed."""
    return _HASHED.search(expression) is not None


def parse_cron(
    expression: str,
    *,
    dialect: str = "unix",
    seconds_field: str | None = None,
    seed: str = "",
    stored: bool = False,
) -> CronRule:
    """Parse an expression or a nickname such as `@daily`; results are cached.

    Args:
        expression: 5 or 6 fields (dialect "unix"), 6 or 7 fields (dialect "quartz"), or a nickname.
        dialect: "unix" or "quartz".
        seconds_field: "first" or "last": where six fields of dialect "unix" have the seconds; None: first.
        seed: the job's name, from which `H` picks its values; the same seed always gives the same values.
        stored: the expression was accepted by an earlier release: read what it accepted, too.

    Raises:
        CronError: the grammar is broken, or the expression never fires. The message names the field, the
            character and what is allowed there.
    """
    seed = seed if seed and is_hashed(expression) else ""
    return _parse(expression, dialect, seconds_field, seed, stored)


@lru_cache(maxsize=8192)
def _parse(
    expression: str,
    dialect: str,
    seconds_field: str | None,
    seed: str,
    stored: bool,
) -> CronRule:
    written = read_expression(
        expression, dialect=dialect, seconds_field=seconds_field, seed=seed, stored=stored
    )
    by_name = {each.name: each for each in written.fields}
    days, weekdays = by_name["day-of-month"], by_name["day-of-week"]
    starred = days.starred or weekdays.starred
    year = by_name.get("year")
    rule = CronRule(
        minutes=by_name["minute"].mask,
        hours=by_name["hour"].mask,
        days=days.mask,
        months=by_name["month"].mask,
        weekdays=weekdays.mask,
        either=not starred and written.dialect == "unix",
        seconds=by_name["second"].mask if "second" in by_name else 1,
        day_terms=days.terms,
        weekday_terms=weekdays.terms,
        years=None if year is None or year.any else year.mask,
        wild=by_name["minute"].starred or by_name["hour"].starred,
        fields=written.fields,
        seconds_field=written.seconds_field,
    )
    if not rule.fires():
        raise _never(rule, by_name, written)
    return rule


def _never(rule: CronRule, by_name: dict[str, FieldText], written: Written) -> CronError:
    """Return the error that explains why no day matches."""
    days, weekdays, months = by_name["day-of-month"], by_name["day-of-week"], by_name["month"]
    any_year = replace(rule, years=None)
    asked = [month for month in range(1, 13) if rule.months >> month & 1]
    blamed = days
    if any_year.fires():
        blamed = by_name["year"]
        reason = f"no year of {blamed.place} has a day that the other fields ask for"
    elif replace(any_year, weekdays=up_to(6), weekday_terms=(), either=False).fires():
        reason = f"no day of {days.place} can be one of {weekdays.place} (a day must match both fields here)"
    else:
        names = [_MONTHS[month - 1] for month in asked]
        longest = max(COMMON_LENGTHS[month] + (month == 2) for month in asked)
        subject = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        verb = "has" if len(names) == 1 else "have"
        reason = f"{subject} {verb} no {_missing_day(rule, longest)} ({days.place}, {months.place})"
    return CronError(f"cron expression never fires: {reason}{written.note}", blamed.position, blamed.name)


def _missing_day(rule: CronRule, longest: int) -> str:
    """Return the words for the days that no month of at most `longest` days has."""
    numbers = [term.number for term in rule.day_terms if term.kind == "weekday_near"]
    numbers += [day for day in range(longest + 1, 32) if rule.days >> day & 1]
    from_last = [term.number for term in rule.day_terms if term.kind in {"from_last", "weekday_near_last"}]
    words = [f"day {day}" for day in sorted(set(numbers))]
    words += [f"day that lies {number} days before its last" for number in sorted(set(from_last))]
    return " or ".join(words)
