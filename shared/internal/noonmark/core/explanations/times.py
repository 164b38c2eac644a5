"""The time of day of a cron expression in plain English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from noonmark.core.cron.expression import CronRule, FieldText
from noonmark.core.explanations.english import Arc, arc, elided, every, joined, members, ordinal, plural

MOST_TIMES: Final = 4
"""The most times of day that are listed one by one instead of described by a rule."""


class TimeWords(NamedTuple):
    """The time of day in words.

    Attributes:
        text: "at 02:30", or "every 15 minutes from 09:00 to 17:45".
        fixed: it is a list of times, so the day comes first.
        all_day: it runs around the clock, so the days need no mention if every day is meant.
    """

    text: str
    fixed: bool
    all_day: bool


def time_words(rule: CronRule) -> TimeWords:
    """Say at which times of day a rule fires."""
    seconds, minutes, hours = members(rule.seconds), members(rule.minutes), members(rule.hours)
    if len(seconds) > 1:
        return _many_seconds(seconds, minutes, hours)
    second = seconds[0]
    if len(minutes) * len(hours) <= MOST_TIMES and len(hours) < 24:
        times = [_clock(hour, minute, second) for hour in hours for minute in minutes]
        return TimeWords(f"at {joined(times)}", fixed=True, all_day=False)
    if len(minutes) == 1 and len(hours) < 24:
        return _once_an_hour(minutes[0], hours, second)
    text = _within_hours(minutes, hours)
    tail = f", at second {second}" if second else ""
    return TimeWords(text + tail, fixed=False, all_day=len(hours) == 24)


def _clock(hour: int, minute: int, second: int = 0) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if second else f"{hour:02}:{minute:02}"


def _past(minute: int) -> str:
    return f":{minute:02}"


def _once_an_hour(minute: int, hours: Sequence[int], second: int) -> TimeWords:
    found = arc(hours, 24)
    if found is None:
        times = elided(hours, lambda hour: _clock(hour, minute, second), most=12)
        return TimeWords(f"at {times}", fixed=True, all_day=False)
    text = f"{every(found.step, 'hour')} from {_clock(found.start, minute, second)}"
    if not found.full:
        text += f" to {_clock(found.last, minute, second)}"
    return TimeWords(text, fixed=False, all_day=found.full)


def _within_hours(minutes: Sequence[int], hours: Sequence[int]) -> str:
    """Describe several minutes in an hour, or one minute of every hour."""
    steps = arc(minutes, 60) if len(minutes) > 1 else None
    run = _run_of(hours)
    if steps and steps.full:
        rhythm = every(steps.step, "minute")
        if len(hours) == 24:
            return rhythm + (f" from {_past(steps.start)}" if steps.start else "")
        if run:
            return f"{rhythm} from {_clock(run.start, steps.start)} to {_clock(run.last, steps.last)}"
    elif steps and len(hours) == 1 and steps.start <= steps.last:
        rhythm = every(steps.step, "minute")
        return f"{rhythm} from {_clock(hours[0], steps.start)} to {_clock(hours[0], steps.last)}"
    if len(minutes) == 1:  # of every hour
        return "every hour, on the hour" if minutes[0] == 0 else f"every hour at {_past(minutes[0])}"
    return f"{_minutes_of(minutes, steps)} of {_hours(hours)}"


def _run_of(hours: Sequence[int]) -> Arc | None:
    """Return the hours as one range without gaps, or None."""
    if len(hours) == 1:
        return Arc(hours[0], hours[0], 1, full=False)
    found = arc(hours, 24)
    if found and found.step == 1:
        return found
    if len(hours) == 2 and hours[1] - hours[0] in {1, 23}:
        start, last = hours if hours[1] - hours[0] == 1 else hours[::-1]
        return Arc(start, last, 1, full=False)
    return None


def _minutes_of(minutes: Sequence[int], steps: Arc | None) -> str:
    if steps is None:
        return f"at {elided(minutes, _past)}"
    rhythm = every(steps.step, "minute")
    if steps.full:
        return rhythm + (f" from {_past(steps.start)}" if steps.start else "")
    return f"{rhythm} from {_past(steps.start)} to {_past(steps.last)}"


def _hours(hours: Sequence[int]) -> str:
    if len(hours) == 24:
        return "every hour"
    run, steps = _run_of(hours), arc(hours, 24) if len(hours) > 1 else None
    if run and len(hours) > 2:
        return f"each hour from {run.start:02} to {run.last:02}"
    if steps and steps.full and len(hours) > MOST_TIMES:
        return f"every {ordinal(steps.step)} hour from {steps.start:02}"
    names = elided(hours, "{:02}".format, most=12)
    return f"the hour{'s' if len(hours) > 1 else ''} {names}"


def _many_seconds(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> TimeWords:
    steps = arc(seconds, 60)
    whole_hour, whole_day = len(minutes) == 60, len(hours) == 24
    word = "of"
    if steps and steps.full:
        word = "in" if steps.step > 1 else "of"
        rhythm = every(steps.step, "second") + (f" from second {steps.start}" if steps.start else "")
        if whole_hour and whole_day:
            return TimeWords(rhythm, fixed=False, all_day=True)
        run = _run_of(hours)
        if whole_hour and run:
            text = f"{every(steps.step, 'second')} from {run.start:02}:00:{steps.start:02}"
            return TimeWords(f"{text} to {run.last:02}:59:{steps.last:02}", fixed=False, all_day=False)
    elif steps:
        rhythm = f"{every(steps.step, 'second')} from second {steps.start} to {steps.last}"
    else:
        rhythm = f"at seconds {elided(seconds, str)}"
    return TimeWords(f"{rhythm} {word} {_which_minutes(minutes, hours)}", fixed=False, all_day=whole_day)


def _which_minutes(minutes: Sequence[int], hours: Sequence[int]) -> str:
    if len(minutes) * len(hours) <= MOST_TIMES and len(hours) < 24:
        times = [_clock(hour, minute) for hour in hours for minute in minutes]
        return f"the minute{'s' if len(times) > 1 else ''} {joined(times)}"
    steps = arc(minutes, 60) if len(minutes) > 1 else None
    if len(minutes) == 60:
        which = "every minute"
    elif steps and steps.full and len(minutes) > MOST_TIMES:
        which = f"every {ordinal(steps.step)} minute from {_past(steps.start)}"
    else:
        names = elided(minutes, _past)
        which = f"the minute{'s' if len(minutes) > 1 else ''} {names}"
    if len(minutes) == 60 and len(hours) == 24:
        return which
    return f"{which} of {_hours(hours)}"


def over_midnight(hours: Sequence[int]) -> str | None:
    """Say to which day the hours after midnight belong if a range of hours crosses it; else None."""
    run = _run_of(hours)
    if run is None or run.start <= run.last:
        return None
    return (
        f"The hours cross midnight, but a fire's own date must match: such a day has the hours 00 to"
        f" {run.last:02}, and then those from {run.start:02}."
    )


def restarts(field: FieldText) -> str | None:
    """Say that a step restarts with its field, after a shorter interval; None if it divides the field."""
    if field.name not in _CYCLES or not (found := _STEP.fullmatch(field.text)):
        return None
    values, step = members(field.mask), int(found[1])
    size, cycle, show = _CYCLES[field.name]
    first, last = values[0], values[-1]
    if size % step == 0 or len(values) < 2:
        return None
    return (
        f"{step} does not divide {size}, so the count starts again with each {cycle}:"
        f" {show.format(last)} and the next {show.format(first)} are"
        f" {plural(first + size - last, field.name)} apart."
    )


_STEP: Final = re.compile(r"(?:\*|\d+|[Hh])/(\d+)")
_CYCLES: Final = {
    "second": (60, "minute", "second {}"),
    "minute": (60, "hour", ":{:02}"),
    "hour": (24, "day", "{:02}:00"),
}
