"""The time fields of crontabs: what cron allows in them, and their values.

Narrower than the grammar of noonmark's own schedules (`core.cron`), and parsed separately: imports are
checked with it, so it must share no code with what it checks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGE: Final = re.compile(r"(?P<low>\w+)(?:-(?P<high>\w+))?(?:/(?P<step>\w+))?", re.ASCII)
_RANDOM: Final = re.compile(r"(?P<low>\w{0,9})~(?P<high>\w{0,9})(?:/(?P<step>\d{1,3}))?", re.ASCII)
_MOST_CHARACTERS: Final = 1000


class CrontabError(ValueError):
    """A line, or a whole crontab, cannot be used; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day-of-month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day-of-week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class CronTimes:
    """The values of five fields.

    Attributes:
        weekdays: Sunday is 0.
        days_starred: day-of-month or day-of-week starts with `*`: then a day must match both fields.
        wild: minute or hour starts with `*`: when clocks change, the schedule then follows elapsed time.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    days_starred: bool
    wild: bool


def check_fields(fields: Sequence[str]) -> None:
    """Check that cron accepts these five fields.

    Raises:
        CrontabError: it does not, or its versions read one of them differently.
    """
    times_of(fields)


def times_of(fields: Sequence[str]) -> CronTimes:
    """Read five fields.

    Raises:
        CrontabError: cron does not accept them, or its versions read one of them differently; the message
            has the reason of each such field.
    """
    found: list[frozenset[int]] = []
    problems: list[str] = []
    for spec, text in zip(_FIELDS, fields, strict=True):
        try:
            found.append(_values(spec, text))
        except CrontabError as error:
            problems.append(error.message)
    if problems:
        raise CrontabError("; ".join(problems))
    minutes, hours, days, months, weekdays = found
    return CronTimes(
        minutes,
        hours,
        days,
        months,
        frozenset(day % 7 for day in weekdays),
        days_starred=fields[2].startswith("*") or fields[4].startswith("*"),
        wild=fields[0].startswith("*") or fields[1].startswith("*"),
    )


def _values(spec: _Field, text: str) -> frozenset[int]:
    if len(text) > _MOST_CHARACTERS:
        raise CrontabError(
            f"the {spec.name} field has {len(text)} characters; at most {_MOST_CHARACTERS} are allowed"
        )
    values: set[int] = set()
    for item in text.split(","):
        values.update(_item(spec, item))
    return frozenset(values)


def _item(spec: _Field, item: str) -> range:
    """Read one member of a field's list: `*`, a value, a range, with or without a step."""
    text = re.sub(r"\A\*", f"{spec.low}-{spec.high}", item)
    found = _RANGE.fullmatch(text)
    if found is None:
        if (random := _RANDOM.fullmatch(item)) is not None:
            raise _random(spec, item, random)
        raise CrontabError(f"{item[:24]!r} is not allowed in cron's {spec.name} field")
    low = _number(spec, found["low"])
    if found["high"] is None:
        if found["step"] is not None:
            raise CrontabError(
                f"versions of cron read {item[:24]!r} in the {spec.name} field differently: write"
                f" {low}-{spec.high}/{found['step'][:8]}, or {low}"
            )
        return range(low, low + 1)
    high = _number(spec, found["high"])
    if high < low:
        raise CrontabError(
            f"the range {item[:24]!r} in the {spec.name} field runs backwards, and cron refuses it"
        )
    step = 1
    if found["step"] is not None:
        step = _step(spec, item, found["step"])
    return range(low, high + 1, step)


def _step(spec: _Field, item: str, text: str) -> int:
    if not text.isdecimal() or not text.strip("0"):
        raise CrontabError(f"the step of {item[:24]!r} in the {spec.name} field is not a number from 1 up")
    most = spec.high - spec.low
    if len(text) > 3 or int(text) > most:
        first = item.partition("/")[0].partition("-")[0].replace("*", str(spec.low))
        raise CrontabError(
            f"the step of {item[:24]!r} in the {spec.name} field is longer than {most}: some versions of cron"
            f" run only the first value, some ignore the step, some refuse the line; write {first[:8]} for"
            " the first value only"
        )
    return int(text)


def _random(spec: _Field, item: str, found: re.Match[str]) -> CrontabError:
    """Return the error for a range that cron picks a random value from, with the same range of `H`."""
    low, high = found["low"] or str(spec.low), found["high"] or str(spec.high)
    whole = (low, high) == (str(spec.low), str(spec.high))
    choice = ("H" if whole else f"H({low}-{high})") + (f"/{found['step']}" if found["step"] else "")
    return CrontabError(
        f"cron picks a random value for {item[:24]!r} in the {spec.name} field each time that it reads the"
        f" crontab; write a fixed value, or create the job with {choice} in this field, which picks a value"
        " from the job's name"
    )


def _number(spec: _Field, text: str) -> int:
    if text.lower() in spec.names:
        return spec.names.index(text.lower()) + (1 if spec.name == "month" else 0)
    number = int(text) if text.isdecimal() and len(text) <= 4 else -1
    if not spec.low <= number <= spec.high:
        names = f" or {spec.names[0]} to {spec.names[-1]}" if spec.names else ""
        raise CrontabError(
            f"{text[:24]!r} is not a value of cron's {spec.name} field: use {spec.low} to {spec.high}{names}"
        )
    return number
