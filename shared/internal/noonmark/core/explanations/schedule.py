"""A schedule in plain English: one sentence, what the clocks will do to it, and what may surprise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.calendars.calendar import OnHoliday
from noonmark.core.calendars.selection import HolidayRule
from noonmark.core.explanations.clock_changes import change_words, rule_words
from noonmark.core.explanations.cron import describe_cron
from noonmark.core.explanations.english import capital, day, joined, plural, span, uncapital
from noonmark.core.schedules.preview import in_zone, shortest_gap
from noonmark.core.schedules.schedule import AnyOf, Interval, Once, Schedule
from noonmark.core.schedules.wall_clock import Cron, RRule, WallClock
from noonmark.core.zones.zones import UTC_ZONE, Zone, plus

LOOK_AHEAD: Final = timedelta(days=400)
"""How far changes of the clocks are looked for: a year's, and some of the next."""

_RARE: Final = timedelta(days=366)
_OFTEN: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A schedule in words.

    Attributes:
        sentence: "Every day at 02:30, New York time."
        details: further sentences: how it was read, bounds, what the clocks will do to it.
        warnings: sentences on what is probably not meant.
    """

    sentence: str
    details: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def explain(schedule: Schedule, after: datetime, *, zone: Zone | None = None) -> Explanation:
    """Say in plain English when a schedule fires.

    Args:
        schedule: any schedule.
        after: changes of the clocks and the next fire are looked for from here on.
        zone: whose clock instants are told in; the schedule's own where it has one, or UTC.
    """
    shown = zone or schedule.zone or UTC_ZONE
    rules = schedule.members if isinstance(schedule, AnyOf) else (schedule,)
    phrases = [_when(rule, shown) for rule in rules]
    details = [
        f"Rule {number}: {line}" if len(rules) > 1 else line
        for number, rule in enumerate(rules, start=1)
        for line in _own_details(rule, after, shown)
    ]
    # Rules of one schedule share what holds when the clocks change, unless that is `auto`.
    told = dict.fromkeys(line for rule in rules if isinstance(rule, WallClock) for line in rule_words(rule))
    details += [*told, *_shape(schedule, shown)]
    text = phrases[0] if len(rules) == 1 else f"Any of: {'; '.join(map(uncapital, phrases))}"
    sentence = f"{text}{',' if len(rules) == 1 else ';'} {zone_words(shown)}."
    return Explanation(sentence, details, list(_warnings(schedule, after, shown)))


def zone_words(zone: Zone) -> str:
    """Return what a zone's time is called: "New York time"."""
    if zone.is_utc:
        return "UTC"
    area, _, place = zone.name.rpartition("/")
    return f"{zone.name if area == 'Etc' else place.replace('_', ' ')} time"


def instant_words(at: datetime, zone: Zone) -> str:
    """Return an instant on the zone's clock: "8 March 2026 at 03:00"."""
    local = in_zone(at, zone)
    clock = f"{local:%H:%M:%S}" if local.second or local.microsecond else f"{local:%H:%M}"
    return f"{day(local)} at {clock}"


def _when(schedule: Schedule, zone: Zone) -> str:
    """Return when one rule fires, without its zone."""
    if isinstance(schedule, Once):
        return f"Once, on {instant_words(schedule.run_at, zone)}"
    if isinstance(schedule, Interval):
        start = instant_words(schedule.anchor, zone)
        return f"Every {_length(schedule.every)} of elapsed time, counted from {start}"
    if isinstance(schedule, Cron):
        return describe_cron(schedule.rule, dialect=schedule.dialect).when
    if isinstance(schedule, RRule):
        return _recurrence(schedule)
    return capital(schedule.kind)


def _length(every: timedelta) -> str:
    return span(every).removeprefix("1 ")


def _recurrence(schedule: RRule) -> str:
    from noonmark.core.explanations.recurrence import describe  # noqa: PLC0415 - for this kind only

    return capital(describe(schedule.recurrence).rstrip("."))


def _own_details(schedule: Schedule, after: datetime, zone: Zone) -> list[str]:
    """Return what is to be said of one rule, apart from what it shares with others."""
    details: list[str] = []
    if isinstance(schedule, Cron):
        details += describe_cron(schedule.rule, dialect=schedule.dialect).details
    if isinstance(schedule, Interval) and not zone.is_utc:
        details.append(
            "Elapsed time does not look at the clock: a change of the clocks moves its time of day."
        )
    if isinstance(schedule, WallClock):
        details += change_words(schedule, after, plus(after, LOOK_AHEAD))
    return details


def _shape(schedule: Schedule, zone: Zone) -> Iterator[str]:
    if schedule.start is not None and not (
        isinstance(schedule, Interval) and schedule.anchor == schedule.start
    ):
        yield f"Not before {instant_words(schedule.start, zone)}."
    if schedule.end is not None:
        yield f"Not after {instant_words(schedule.end, zone)}."
    if schedule.max_runs is not None:
        yield f"Complete after {plural(schedule.max_runs, 'run')}."
    if schedule.jitter_seconds:
        spread = span(timedelta(seconds=schedule.jitter_seconds))
        yield f"Each run starts up to {spread} after its instant (jitter), always by the same."
    if schedule.calendars is not None:
        yield from _calendars(schedule.calendars)


def _calendars(rule: HolidayRule) -> Iterator[str]:
    parts = []
    if rule.days.include:
        parts.append(f"only on days of {_names([name for name, _ in rule.days.include], 'or')}")
    if rule.days.exclude:
        parts.append(f"not on days of {_names([name for name, _ in rule.days.exclude], 'or')}")
    closed = "another day" if rule.days.include else "such a day"
    moved = {
        OnHoliday.SKIP: "is left out",
        OnHoliday.NEXT_BUSINESS_DAY: "moves to the next open day",
        OnHoliday.PREVIOUS_BUSINESS_DAY: "moves to the open day before",
    }
    yield f"{capital(joined(parts))}; what falls on {closed} {moved[rule.on_holiday]}."


def _names(names: list[str], word: str) -> str:
    return f"calendar{'s' if len(names) > 1 else ''} {joined(names, word)}"


def _warnings(schedule: Schedule, after: datetime, zone: Zone) -> Iterator[str]:
    first = schedule.next(after)
    if first is None:
        yield "No fire comes any more."
    elif first - after > _RARE:
        yield f"The next fire is more than a year away: {instant_words(first, zone)}."
    gap = shortest_gap(schedule, after)
    if gap is not None and gap < _OFTEN:
        yield f"Fires more often than once a minute: every {_length(gap)} at its fastest."
    for rule in schedule.members if isinstance(schedule, AnyOf) else (schedule,):
        if isinstance(rule, RRule):
            yield from rule.recurrence.warnings
