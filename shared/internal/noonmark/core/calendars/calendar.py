"""Calendars: named sets of days that a schedule excludes or is restricted to.

A calendar has dates only: no time of day and no zone. Contents are immutable and identified by their digest,
so that a cached result with its digest is never stale.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from noonmark.core.instants import shortened, type_name

FIRST_DAY: Final = date(1970, 1, 1)
LAST_DAY: Final = date(2199, 12, 31)
MAX_DATES: Final = 10_000
MAX_RANGES: Final = 1_000
MAX_MOVE_DAYS: Final = 366
"""A fire is moved by at most this number of days; if no open day is that near, it is skipped."""

WEEKDAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
NAME_RULE: Final = "1 to 63 of a-z, 0-9, '.', '-' and '_', the first a letter or digit"

_DAY: Final = timedelta(days=1)
_LONG_WEEKDAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WEEKDAY_OF: Final = {name: n for names in (WEEKDAYS, _LONG_WEEKDAYS) for n, name in enumerate(names)}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_YEARLY: Final = re.compile(r"([0-9]{2})-([0-9]{2})")
_Item = TypeVar("_Item")
_KEYS: Final = ("dates", "ranges", "weekdays", "yearly")


class OnHoliday(StrEnum):
    """What happens to a fire on a closed day."""

    SKIP = "skip"
    NEXT_BUSINESS_DAY = "next_business_day"
    PREVIOUS_BUSINESS_DAY = "previous_business_day"


class CalendarError(ValueError):
    """The calendar is refused.

    Attributes:
        pointer: JSON pointer to what is wrong: "" is the calendar itself, "/dates/3" an item of it.
        message: what is wrong, where, and what is allowed.
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message


class DayRange(NamedTuple):
    """Days from `first` to `last`, both included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True, eq=False)
class Calendar:
    """A set of days. Two of the same content are equal, however they were written.

    Attributes:
        dates: single days, sorted.
        ranges: ranges of days, sorted, with gaps between them.
        weekdays: days of every week, Monday = 0, sorted.
        yearly: (month, day) of every year, sorted; (2, 29) in leap years only.
    """

    dates: tuple[date, ...] = ()
    ranges: tuple[DayRange, ...] = ()
    weekdays: tuple[int, ...] = ()
    yearly: tuple[tuple[int, int], ...] = ()
    _days: frozenset[date] = field(init=False, repr=False)
    _starts: tuple[date, ...] = field(init=False, repr=False)
    _weekday_bits: int = field(init=False, repr=False)
    _yearly: frozenset[tuple[int, int]] = field(init=False, repr=False)
    _digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "dates", tuple(sorted(set(self.dates))))
        put(self, "ranges", _merged(self.ranges))
        put(self, "weekdays", tuple(sorted(set(self.weekdays))))
        put(self, "yearly", tuple(sorted(set(self.yearly))))
        put(self, "_days", frozenset(self.dates))
        put(self, "_starts", tuple(one.first for one in self.ranges))
        put(self, "_weekday_bits", sum(1 << day for day in self.weekdays))
        put(self, "_yearly", frozenset(self.yearly))
        text = json.dumps(self.body(), sort_keys=True, separators=(",", ":"))
        put(self, "_digest", hashlib.sha256(text.encode()).hexdigest()[:32])

    def __contains__(self, day: date) -> bool:
        """Whether the day, a plain date, is one of the calendar's."""
        if day in self._days or self._weekday_bits >> day.weekday() & 1:
            return True
        if self._yearly and (day.month, day.day) in self._yearly:
            return True
        place = bisect_right(self._starts, day) if self._starts else 0
        return place > 0 and day <= self.ranges[place - 1].last

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same days, written in the same ways."""
        return isinstance(other, Calendar) and self._digest == other._digest

    def __hash__(self) -> int:
        """Hash the digest: calendars are parts of cache keys."""
        return hash(self._digest)

    def digest(self) -> str:
        """Return the name of the content: 32 hexadecimal digits, equal for equal calendars."""
        return self._digest

    def body(self) -> dict[str, list[Any]]:
        """Return the JSON form, in normal order, that `parse` reads back to an equal calendar."""
        body: dict[str, list[Any]] = {
            "dates": [day.isoformat() for day in self.dates],
            "ranges": [{"first": one.first.isoformat(), "last": one.last.isoformat()} for one in self.ranges],
            "weekdays": [WEEKDAYS[day] for day in self.weekdays],
            "yearly": [f"{month:02}-{day:02}" for month, day in self.yearly],
        }
        return {key: items for key, items in body.items() if items} or {"dates": []}

    def days(self, first: date, last: date) -> Iterator[date]:
        """Return the calendar's days from `first` to `last`, both included, in order."""
        return (day for day in _each_day(first, last) if day in self)

    @classmethod
    def parse(cls, body: object) -> Calendar:
        """Read a calendar as users write it.

        Args:
            body: an object with at least one of `dates` (YYYY-MM-DD), `ranges` (objects with `first` and
                `last`, both included), `weekdays` (MON to SUN) and `yearly` (MM-DD). Dates may also be `date`
                objects, as YAML makes them.

        Raises:
            CalendarError: a field is unknown, of a wrong type or value, or holds too much.
        """
        if not isinstance(body, Mapping):
            raise CalendarError("", f"calendar is {type_name(body)}; expected an object with {_options()}")
        for key in body:
            if key not in _KEYS:
                pointer = "/" + str(key)[:80].replace("~", "~0").replace("/", "~1")
                raise CalendarError(
                    pointer, f"unknown field {shortened(str(key))}; expected {', '.join(_KEYS)}"
                )
        if not body:
            raise CalendarError("", f"calendar has no days; expected at least one of {_options()}")
        return cls(
            dates=tuple(_items(body, "dates", MAX_DATES, read_day)),
            ranges=tuple(_items(body, "ranges", MAX_RANGES, _read_range)),
            weekdays=tuple(_items(body, "weekdays", 1000, _read_weekday)),
            yearly=tuple(_items(body, "yearly", 1000, _read_yearly)),
        )


NamedCalendar: TypeAlias = tuple[str, Calendar]
"""The name of a calendar in its namespace, and the calendar."""


@dataclass(frozen=True, slots=True)
class OpenDays:
    """The days on which a schedule may fire: in any `include` calendar, if any, and in no `exclude`."""

    exclude: tuple[NamedCalendar, ...] = ()
    include: tuple[NamedCalendar, ...] = ()

    def is_open(self, day: date) -> bool:
        """Whether a schedule may fire on this day."""
        for _, calendar in self.exclude:
            if day in calendar:
                return False
        return not self.include or any(day in calendar for _, calendar in self.include)

    def closed_by(self, day: date) -> str | None:
        """Return why a day is closed, such as "2026-12-25 is in calendar us-holidays"; None if it is open."""
        for name, calendar in self.exclude:
            if day in calendar:
                return f"{day} is in calendar {name}"
        if not self.include or any(day in calendar for _, calendar in self.include):
            return None
        names = ", ".join(name for name, _ in self.include)
        return (
            f"{day} is {'not in calendar' if len(self.include) == 1 else 'in none of the calendars'} {names}"
        )

    def next_open(self, day: date, *, within_days: int = MAX_MOVE_DAYS) -> date | None:
        """Return the first open day after `day`; None if there is none within this number of days."""
        last = min(day.toordinal() + within_days, date.max.toordinal())
        return next(filter(self.is_open, map(date.fromordinal, range(day.toordinal() + 1, last + 1))), None)

    def previous_open(self, day: date, *, within_days: int = MAX_MOVE_DAYS) -> date | None:
        """Return the last open day before `day`; None if there is none within this number of days."""
        first = max(day.toordinal() - within_days, 1)
        return next(
            filter(self.is_open, map(date.fromordinal, range(day.toordinal() - 1, first - 1, -1))), None
        )

    def open_stretches(self, first: date, last: date) -> Iterator[DayRange]:
        """Return the stretches of open days from `first` to `last`, both included, in order.

        A stretch is cut at the turn of a year.
        """
        for year in range(first.year, last.year + 1):
            for stretch in _open_in_year(self, year):
                begin, end = max(stretch.first, first), min(stretch.last, last)
                if begin <= end:
                    yield DayRange(begin, end)


def read_day(value: object, pointer: str) -> date:
    """Read a date such as 2026-12-25.

    Raises:
        CalendarError: no date, or outside 1970 to 2199.
    """
    expected = f"expected a date such as 2026-12-25, from {FIRST_DAY} to {LAST_DAY}"
    where = _where(pointer)
    if isinstance(value, date) and not isinstance(value, datetime):
        day = value
    elif not isinstance(value, str):
        raise CalendarError(pointer, f"{where} is {type_name(value)}; {expected}")
    elif not _DATE.fullmatch(value):
        raise CalendarError(pointer, f"{where} is {shortened(value)}, which is not a date; {expected}")
    else:
        try:
            day = date.fromisoformat(value)
        except ValueError as error:
            raise CalendarError(pointer, f"{where} is {value}: {error}; {expected}") from None
    if not FIRST_DAY <= day <= LAST_DAY:
        raise CalendarError(pointer, f"{where} is {day}; {expected}")
    return day


def _read_range(value: object, pointer: str) -> DayRange:
    where = _where(pointer)
    if not isinstance(value, Mapping) or set(value) != {"first", "last"}:
        shown = (
            "has other fields than 'first' and 'last'"
            if isinstance(value, Mapping)
            else f"is {type_name(value)}"
        )
        raise CalendarError(pointer, f"{where} {shown}; expected an object with the dates 'first' and 'last'")
    found = DayRange(read_day(value["first"], f"{pointer}/first"), read_day(value["last"], f"{pointer}/last"))
    if found.last < found.first:
        raise CalendarError(
            f"{pointer}/last",
            f"{where} ends on {found.last}, before it begins on {found.first};"
            f" expected {found.first} or a later day",
        )
    return found


def _read_weekday(value: object, pointer: str) -> int:
    number = _WEEKDAY_OF.get(value.upper()) if isinstance(value, str) else None
    if number is None:
        shown = shortened(value) if isinstance(value, str) else type_name(value)
        raise CalendarError(pointer, f"{_where(pointer)} is {shown}; expected {', '.join(WEEKDAYS)}")
    return number


def _read_yearly(value: object, pointer: str) -> tuple[int, int]:
    expected = "expected month and day such as 12-25"
    found = _YEARLY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        shown = shortened(value) if isinstance(value, str) else type_name(value)
        raise CalendarError(pointer, f"{_where(pointer)} is {shown}; {expected}")
    try:
        day = date(2000, int(found[1]), int(found[2]))  # a leap year, so that 02-29 is one of its days
    except ValueError as error:
        raise CalendarError(pointer, f"{_where(pointer)} is {found[0]}: {error}; {expected}") from None
    return day.month, day.day


def _items(
    body: Mapping[str, Any], key: str, limit: int, read: Callable[[object, str], _Item]
) -> Iterator[_Item]:
    items = body.get(key, [])
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise CalendarError(f"/{key}", f"{key} is {type_name(items)}; expected a list")
    if len(items) > limit:
        raise CalendarError(
            f"/{key}", f"{key} holds {len(items):,} items; expected at most {limit:,} (join days into ranges)"
        )
    return (read(item, f"/{key}/{place}") for place, item in enumerate(items))


def _where(pointer: str) -> str:
    """Format a pointer for people: `/dates/3` is dates[3]."""
    key, *rest = pointer.removeprefix("/").split("/")
    return key + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in rest)


def _options() -> str:
    return "'dates', 'ranges', 'weekdays' and 'yearly'"


def _merged(ranges: Iterable[DayRange]) -> tuple[DayRange, ...]:
    """Join ranges that overlap or follow each other without a gap."""
    joined: list[DayRange] = []
    for one in sorted(ranges):
        if joined and one.first <= joined[-1].last + _DAY:
            joined[-1] = DayRange(joined[-1].first, max(joined[-1].last, one.last))
        else:
            joined.append(DayRange(*one))
    return tuple(joined)


def _each_day(first: date, last: date) -> Iterator[date]:
    return map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))


@lru_cache(maxsize=4096)
def _open_in_year(days: OpenDays, year: int) -> tuple[DayRange, ...]:
    """Return the ranges of open days of a year; cached, because counting over years needs them repeatedly."""
    stretches: list[DayRange] = []
    begin: date | None = None
    last = date(year, 12, 31)
    for day in _each_day(date(year, 1, 1), last):
        if days.is_open(day):
            begin = begin or day
        elif begin is not None:
            stretches.append(DayRange(begin, day - _DAY))
            begin = None
    if begin is not None:
        stretches.append(DayRange(begin, last))
    return tuple(stretches)
