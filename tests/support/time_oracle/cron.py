"""What a cron expression says about one wall-clock time: small, slow and obvious.

Written from crontab(5), cronie's rule for the two day fields, and the Quartz manual for `L`, `W` and `#`. It does not
judge expressions: a wrong one gives nonsense or an exception here.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, timedelta

MONTHS = dict(
    zip(
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
        range(1, 13),
        strict=True,
    )
)
WEEKDAYS = dict(zip(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"], range(7), strict=True))
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True)
class OracleCron:
    """The sets of an expression; the day fields stay text, since what they say depends on the month."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    years: frozenset[int] | None
    day_of_month: str
    day_of_week: str
    quartz: bool
    wild: bool

    def minutes_of_day(self) -> list[int]:
        """Return the matching minutes of a matching day, 0 to 1439."""
        return [hour * 60 + minute for hour in self.hours for minute in self.minutes]

    def day_matches(self, day: date) -> bool:
        """Tell whether the year, month and day fields admit this date."""
        if self.years is not None and day.year not in self.years:
            return False
        if day.month not in self.months:
            return False
        by_month = any(_day_of_month_matches(part, day) for part in self.day_of_month.split(","))
        by_week = any(
            _day_of_week_matches(part, day, quartz=self.quartz) for part in self.day_of_week.split(",")
        )
        if self.day_of_month[0] in "*?" or self.day_of_week[0] in "*?":
            return by_month and by_week
        return by_month or by_week


def read_cron(expression: str, *, quartz: bool = False, seconds_field: str | None = None) -> OracleCron:
    """Read an expression of 5 fields, of 6 with the seconds `first` or `last`, or of Quartz's 6 or 7."""
    words = NICKNAMES.get(expression.strip().lower(), expression).upper().split()
    second, year = "0", "*"
    if quartz:
        if len(words) == 7:
            year = words.pop()
        second = words.pop(0)
    elif seconds_field == "first":
        second = words.pop(0)
    elif seconds_field == "last":
        second = words.pop()
    minute, hour, day_of_month, month, day_of_week = words
    return OracleCron(
        seconds=tuple(sorted(_numbers(second, 0, 59))),
        minutes=tuple(sorted(_numbers(minute, 0, 59))),
        hours=tuple(sorted(_numbers(hour, 0, 23))),
        months=frozenset(_numbers(month, 1, 12, MONTHS)),
        years=None if year == "*" else frozenset(_numbers(year, 1970, 2199)),
        day_of_month=day_of_month,
        day_of_week=day_of_week,
        quartz=quartz,
        wild=minute.startswith("*") or hour.startswith("*"),
    )


def _numbers(field: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        elif "-" in span:
            first, last = (_number(word, names) for word in span.split("-"))
        else:
            first = _number(span, names)
            last = high if step else first
        found.update(_ring(first, last, low, high)[:: int(step or 1)])
    return found


def _number(word: str, names: dict[str, int] | None) -> int:
    return names[word] if names and word in names else int(word)


def _ring(first: int, last: int, low: int, high: int) -> list[int]:
    """Count from `first` to `last`, going on at `low` after `high`."""
    values = [first]
    while values[-1] != last:
        values.append(low if values[-1] == high else values[-1] + 1)
    return values


def _days_in_month(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _day_of_month_matches(part: str, day: date) -> bool:
    if part == "L":
        return day.day == _days_in_month(day)
    if part == "LW":
        return day == _nearest_weekday(day.replace(day=_days_in_month(day)))
    if part.startswith("L-"):
        return day.day == _days_in_month(day) - int(part[2:])
    if part.endswith("W"):
        wanted = int(part[:-1])
        return wanted <= _days_in_month(day) and day == _nearest_weekday(day.replace(day=wanted))
    return day.day in _numbers(part, 1, 31)


def _nearest_weekday(day: date) -> date:
    """Return the Monday to Friday of the same month that lies nearest."""
    candidates = [day + timedelta(days=n) for n in (0, -1, 1, -2, 2)]
    return next(c for c in candidates if c.month == day.month and c.isoweekday() <= 5)


def _day_of_week_matches(part: str, day: date, *, quartz: bool) -> bool:
    weekday = day.isoweekday() % 7  # Sunday is 0
    if "#" in part:
        name, _, nth = part.partition("#")
        return weekday == _weekday(name, quartz=quartz) and (day.day - 1) // 7 + 1 == int(nth)
    if part.endswith("L"):
        return weekday == _weekday(part[:-1], quartz=quartz) and day.day + 7 > _days_in_month(day)
    span, _, step = part.partition("/")
    if span in ("*", "?"):
        return weekday in range(0, 7, int(step or 1))
    if "-" in span:
        first, last = span.split("-")
        if last == "7" and not quartz:  # Monday to "7" is Monday to Sunday, "0-7" is every day
            days = [n % 7 for n in range(int(_number(first, WEEKDAYS)), 8)]
        else:
            days = _ring(_weekday(first, quartz=quartz), _weekday(last, quartz=quartz), 0, 6)
    else:
        first_day = _weekday(span, quartz=quartz)
        days = list(range(first_day, 7)) if step else [first_day]
    return weekday in days[:: int(step or 1)]


def _weekday(word: str, *, quartz: bool) -> int:
    if word in WEEKDAYS:
        return WEEKDAYS[word]
    return int(word) - 1 if quartz else int(word) % 7
