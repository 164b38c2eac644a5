"""Cron expressions of five fields: a strict grammar, and a matcher on bit sets.

Grammar: `minute hour day-of-month month day-of-week`, each a list of `*`, values, ranges and steps. Names
(`jan`, `SUN`) in any case; ranges may wrap (`FRI-MON`, `22-2`); `N/S` reads N-max/S; 0 and 7 are Sunday;
`@hourly` and its kind stand for their five fields. What other dialects add is refused by name.

Day rule (Vixie): if the day-of-month or the day-of-week field starts with `*`, a day must match both;
otherwise it matches either. The rule looks at the text, not at the set: `1-31` is not `*`.

Every search is bounded: months are tested at most over `SEARCH_YEARS`, and an expression that can never
fire is refused when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

MAX_LENGTH: Final = 1000
"""Characters of the longest expression that is read: all values of all fields written out need 360."""

SEARCH_YEARS: Final = 41
"""The rarest instants, 29 February on one weekday, lie at most 40 years apart (over a year such as 2100)."""


class CronError(ValueError):
    """The expression is refused.

    Attributes:
        position: 1-based character of the expression where the trouble is, or None.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    top: int  # the largest number that may be written: 7 for Sunday, else `high`
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        numbers = f"{self.low} to {self.top}"
        return f"{numbers} or {self.names[0]} to {self.names[-1]}" if self.names else numbers


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS: Final = (
    _Field("minute", 0, 59, 59),
    _Field("hour", 0, 23, 23),
    _Field("day-of-month", 1, 31, 31),
    _Field("month", 1, 12, 12, _MONTHS),
    _Field("day-of-week", 0, 6, 7, _WEEKDAYS),
)
_NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_OTHER_DIALECTS: Final = re.compile(r"\?|LW?|\d{1,2}[WL]|[A-Z]{3}L|H(?:\(.*)?|.*[#~].*")
_LONGEST_MONTH: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_COMMON_MONTH: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _up_to(bit: int) -> int:
    """Return the mask of the bits 0 to `bit`, both included."""
    return (1 << bit + 1) - 1


def _days_mask(year: int, month: int) -> int:
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _up_to(29 if leap else _COMMON_MONTH[month]) - 1


def _weekday_days(weekdays: int) -> tuple[int, ...]:
    """Return, by the weekday of the 1st (Sunday = 0), the mask of the days that fall on `weekdays`."""
    return tuple(
        sum(1 << day for day in range(1, 32) if weekdays >> (first + day - 1) % 7 & 1) for first in range(7)
    )


@dataclass(frozen=True, slots=True)
class CronRule:
    """The sets behind an expression; bit n of a mask stands for the value n. Instants are whole UTC minutes.

    `either` is true where a day matches by its date or by its weekday, false where it must match by both.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    either: bool
    _by_first: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_first", _weekday_days(self.weekdays))

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant strictly after `after` (UTC), or None past the year 9999."""
        year, month, day, hour = after.year, after.month, after.day, after.hour
        if self.months >> month & 1:
            days = self._matching_days(year, month)
            if days >> day & 1:
                if self.hours >> hour & 1 and (later := self.minutes >> after.minute + 1):
                    minute = after.minute + 1 + _lowest(later)
                    return datetime(year, month, day, hour, minute, tzinfo=UTC)
                if later := self.hours >> hour + 1:
                    return self._first_of(year, month, day, hour + 1 + _lowest(later))
            if later := days >> day + 1:
                return self._first_of(year, month, day + 1 + _lowest(later), _lowest(self.hours))
        for at_year, at_month in self._months_after(year, month):
            if days := self._matching_days(at_year, at_month):
                return self._first_of(at_year, at_month, _lowest(days), _lowest(self.hours))
        return None

    def previous(self, at: datetime) -> datetime | None:
        """Return the last instant at or before `at` (UTC), or None before the year 1."""
        year, month, day, hour = at.year, at.month, at.day, at.hour
        if self.months >> month & 1:
            days = self._matching_days(year, month)
            if days >> day & 1:
                if self.hours >> hour & 1 and (sooner := self.minutes & _up_to(at.minute)):
                    return datetime(year, month, day, hour, sooner.bit_length() - 1, tzinfo=UTC)
                if sooner := self.hours & _up_to(hour - 1):
                    return self._last_of(year, month, day, sooner.bit_length() - 1)
            if sooner := days & _up_to(day - 1):
                return self._last_of(year, month, sooner.bit_length() - 1, self.hours.bit_length() - 1)
        for at_year, at_month in self._months_before(year, month):
            if days := self._matching_days(at_year, at_month):
                return self._last_of(at_year, at_month, days.bit_length() - 1, self.hours.bit_length() - 1)
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]; one step per month between them."""
        if until <= after:
            return 0
        found = self._rank_in_month(until) - self._rank_in_month(after)
        a_day = self.hours.bit_count() * self.minutes.bit_count()
        year, month = after.year, after.month
        while (year, month) < (until.year, until.month):
            if self.months >> month & 1:
                found += self._matching_days(year, month).bit_count() * a_day
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        return found

    def _matching_days(self, year: int, month: int) -> int:
        # Day 1 of the proleptic calendar is a Monday, so the ordinal modulo 7 is 0 on Sundays.
        by_weekday = self._by_first[date(year, month, 1).toordinal() % 7]
        days = self.days | by_weekday if self.either else self.days & by_weekday
        return days & _days_mask(year, month)

    def _rank_in_month(self, at: datetime) -> int:
        """Return how many instants of `at`'s month lie at or before `at`."""
        if not self.months >> at.month & 1:
            return 0
        days = self._matching_days(at.year, at.month)
        an_hour = self.minutes.bit_count()
        rank = (days & _up_to(at.day - 1)).bit_count() * self.hours.bit_count() * an_hour
        if days >> at.day & 1:
            rank += (self.hours & _up_to(at.hour - 1)).bit_count() * an_hour
            if self.hours >> at.hour & 1:
                rank += (self.minutes & _up_to(at.minute)).bit_count()
        return rank

    def _months_after(self, year: int, month: int) -> Iterator[tuple[int, int]]:
        last_year = min(year + SEARCH_YEARS, 9999)
        while True:
            if later := self.months >> month + 1:
                month += 1 + _lowest(later)
            else:
                year, month = year + 1, _lowest(self.months)
            if year > last_year:
                return
            yield year, month

    def _months_before(self, year: int, month: int) -> Iterator[tuple[int, int]]:
        first_year = max(year - SEARCH_YEARS, 1)
        while True:
            if sooner := self.months & _up_to(month - 1):
                month = sooner.bit_length() - 1
            else:
                year, month = year - 1, self.months.bit_length() - 1
            if year < first_year:
                return
            yield year, month

    def _first_of(self, year: int, month: int, day: int, hour: int) -> datetime:
        return datetime(year, month, day, hour, _lowest(self.minutes), tzinfo=UTC)

    def _last_of(self, year: int, month: int, day: int, hour: int) -> datetime:
        return datetime(year, month, day, hour, self.minutes.bit_length() - 1, tzinfo=UTC)


@lru_cache(maxsize=8192)
def parse_cron(expression: str) -> CronRule:
    """Read a five-field expression or a nickname such as `@daily`.

    Raises:
        CronError: the grammar is broken, the form belongs to a dialect that is not available, or the
            expression never fires. The message names the field, the character and what is allowed.
    """
    if len(expression) > MAX_LENGTH:
        raise CronError(f"cron expression has {len(expression)} characters; at most {MAX_LENGTH} are read")
    text = expression.strip(" \t")
    if text.startswith("@"):
        text = _nickname(text, expression.index("@") + 1)
        return parse_cron(text)
    found = [(match.group(), match.start() + 1) for match in re.finditer(r"[^ \t]+", expression)]
    _check_field_count(found)
    minutes, hours, days, months, weekdays = (
        _parse_field(spec, token, at) for spec, (token, at) in zip(_FIELDS, found, strict=True)
    )
    either = not (found[2][0].startswith("*") or found[4][0].startswith("*"))
    if not either:
        _check_fires(days, months, found)
    return CronRule(minutes, hours, days, months, weekdays, either)


def _check_fires(days: int, months: int, found: list[tuple[str, int]]) -> None:
    """Refuse dates that no year has; any other falls on every weekday within `SEARCH_YEARS`."""
    longest = max(_LONGEST_MONTH[month] for month in range(1, 13) if months >> month & 1)
    if _lowest(days) > longest:
        (day_text, at), (month_text, _) = found[2:4]
        raise CronError(
            f"cron expression never fires: day-of-month field {_quoted(day_text)} at character {at} asks for "
            f"day {_lowest(days)} or later, but no month of month field {_quoted(month_text)} has more than "
            f"{longest} days",
            at,
        )


def _quoted(token: str) -> str:
    """Return the token for a message: short, and with nothing in it that a terminal would obey."""
    return repr(token if len(token) <= 24 else token[:21] + "...")


def _nickname(text: str, at: int) -> str:
    fields = _NICKNAMES.get(text.lower())
    if fields is None:
        hint = "; for a fixed period use the field 'every'" if text.lower().startswith("@every") else ""
        raise CronError(
            f"cron nickname {_quoted(text)} at character {at} is not known; allowed: "
            f"{', '.join(_NICKNAMES)}{hint}",
            at,
        )
    return fields


def _check_field_count(found: list[tuple[str, int]]) -> None:
    order = " ".join(spec.name for spec in _FIELDS)
    if found and re.match(r"(?:CRON_)?TZ=", found[0][0]):
        raise CronError(
            f"cron expression starts with {_quoted(found[0][0])} at character {found[0][1]}: a time zone "
            "goes into the field 'timezone', not into the expression",
            found[0][1],
        )
    if len(found) in {6, 7}:
        raise CronError(
            f"cron expression has {len(found)} fields, from character {found[5][1]} on one too many: seconds "
            "and years are not available in this version, and the order of six fields is ambiguous (seconds "
            f"come first in some systems, last in others); write 5 fields: {order}",
            found[5][1],
        )
    if len(found) != 5:
        at = found[5][1] if len(found) > 5 else None
        raise CronError(f"cron expression has {len(found)} fields; 5 are needed: {order}", at)


def _parse_field(spec: _Field, token: str, at: int) -> int:
    bits = 0
    for item in token.split(","):
        bits |= _parse_item(spec, item, at)
        at += len(item) + 1
    return bits


def _parse_item(spec: _Field, item: str, at: int) -> int:
    base, slash, step_text = item.partition("/")
    left, dash, right = base.partition("-")
    if base == "*":
        low, high = spec.low, spec.high
    else:
        low = _value(spec, left, at)
        high = low
        if dash:
            high = _value(spec, right, at + len(left) + 1)
            low, high = _range(spec, low, high)
        else:
            low = low % 7 if spec.top == 7 else low
            high = spec.high if slash else low
    step = _step(spec, step_text, at + len(base) + 1) if slash else 1
    size = spec.high - spec.low + 1
    bits = 0
    for value in range(low, high + 1, step):
        bits |= 1 << (value - spec.low) % size + spec.low
    return bits


def _range(spec: _Field, low: int, high: int) -> tuple[int, int]:
    """Return the range's ends on a line: the end of one that wraps lies beyond the field's highest value."""
    if low == 7 and spec.top == 7:
        low, high = 0, high % 7
    return (low, high) if low <= high else (low, high + spec.high - spec.low + 1)


def _step(spec: _Field, text: str, at: int) -> int:
    step = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    if not 1 <= step <= spec.top:
        raise CronError(
            f"cron {spec.name} field: step {_quoted(text)} at character {at} is not allowed; "
            f"use 1 to {spec.top}",
            at,
        )
    return step


def _value(spec: _Field, text: str, at: int) -> int:
    upper = text.upper()
    if upper in spec.names:
        return spec.names.index(upper) + spec.low
    if text.isascii() and text.isdigit():
        number = int(text) if len(text) <= 4 else -1
        if spec.low <= number <= spec.top:
            return number
        problem = f"value {_quoted(text)} at character {at} is out of range"
    elif _OTHER_DIALECTS.fullmatch(upper):
        problem = (
            f"{_quoted(text)} at character {at} is of another dialect; "
            "L, W, #, ?, ~ and H are not available in this version"
        )
    elif not text:
        problem = f"a value is missing at character {at}"
    else:
        problem = f"{_quoted(text)} at character {at} is not a value"
    allowed = f"{spec.allowed}, ranges a-b, lists a,b, * and steps */n"
    raise CronError(f"cron {spec.name} field: {problem}; allowed: {allowed}", at)
