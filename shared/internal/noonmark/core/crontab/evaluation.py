"""A second evaluation of crontab lines, to check imported schedules with.

It checks for each minute whether cron would start the line then, as cronie's man page describes it. It shares
no code with noonmark's planning; if both agree, the import is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from noonmark.core.crontab.fields import CronTimes, times_of

OffsetAt = Callable[[datetime], timedelta]
"""Local time minus UTC, at an aware instant."""

CLOCK_CHANGE: Final = timedelta(hours=3)
"""A larger change of the clock is a correction, for which cron does not catch up."""

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_ZERO: Final = timedelta(0)
_LAST_YEAR: Final = 9000


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first difference between planned instants and cron's; None: one side has no further instant."""

    number: int
    planned: datetime | None
    expected: datetime | None


def compare(
    planned: Sequence[datetime], schedule: str, offset_at: OffsetAt, after: datetime, count: int
) -> FirstDifference | None:
    """Compare planned instants with those of cron; None: they are the same.

    Args:
        planned: the first `count` instants after `after`, aware.
        schedule: five fields of a crontab.
        offset_at: of the zone that cron runs in.
        after: aware.
        count: the number of instants to compare.
    """
    expected = list(islice(cron_instants(schedule, offset_at, after), count))
    for number in range(1, max(len(planned), len(expected)) + 1):
        mine = planned[number - 1] if number <= len(planned) else None
        theirs = expected[number - 1] if number <= len(expected) else None
        if mine != theirs:
            return FirstDifference(number, mine, theirs)
    return None


def cron_instants(schedule: str, offset_at: OffsetAt, after: datetime) -> Iterator[datetime]:
    """Yield the minutes at which cron starts a line, strictly after an instant, oldest first.

    Several starts in one minute, such as those after a gap, count once.
    """
    times = times_of(schedule.split())
    day = after.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    while day.year < _LAST_YEAR:
        # A minute's local date is that of the UTC day, or of the day before or after it.
        if any(_matches_day(times, day + shift) for shift in (-_DAY, _ZERO, _DAY)):
            yield from (at for at in _of_day(times, offset_at, day) if at > after)
        day += _DAY


def _matches_day(times: CronTimes, local: datetime) -> bool:
    if local.month not in times.months:
        return False
    by_date, by_weekday = local.day in times.days, local.isoweekday() % 7 in times.weekdays
    return (by_date and by_weekday) if times.days_starred else (by_date or by_weekday)


def _matches(times: CronTimes, local: datetime) -> bool:
    return local.minute in times.minutes and local.hour in times.hours and _matches_day(times, local)


def _of_day(times: CronTimes, offset_at: OffsetAt, day: datetime) -> Iterator[datetime]:
    """Yield the starts within a UTC day."""
    begin, offset = day - CLOCK_CHANGE - _HOUR, offset_at(day)
    hours = (begin + _HOUR * number for number in range(29))
    if all(offset_at(at) == offset for at in hours):
        yield from _steady(times, day, offset)
        return
    # A clock change is near: go minute by minute, starting before everything that it may affect.
    yield from (at for at in _walk(times, offset_at, begin, day + _DAY) if at >= day)


def _steady(times: CronTimes, day: datetime, offset: timedelta) -> Iterator[datetime]:
    first = (day + offset).replace(hour=0, minute=0)
    for local_day in (first, first + _DAY):
        if not _matches_day(times, local_day):
            continue
        for hour in sorted(times.hours):
            for minute in sorted(times.minutes):
                at = local_day.replace(hour=hour, minute=minute) - offset
                if day <= at < day + _DAY:
                    yield at


def _walk(times: CronTimes, offset_at: OffsetAt, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the starts in [begin, end), checking each minute as cron does."""
    at, before = begin, begin - _MINUTE + offset_at(begin - _MINUTE)
    # The latest local time that was handled: times at or before it occur for the second time.
    served = before
    while at < end:
        local = at + offset_at(at)
        jump = local - before - _MINUTE
        if jump < -CLOCK_CHANGE:
            served = local - _MINUTE
        if times.wild:
            starts = _matches(times, local)
        else:
            missed = jump if _ZERO < jump <= CLOCK_CHANGE else _ZERO
            starts = local > served and any(
                _matches(times, local - _MINUTE * number) for number in range(missed // _MINUTE + 1)
            )
        if starts:
            yield at
        before, served = local, max(served, local)
        at += _MINUTE
