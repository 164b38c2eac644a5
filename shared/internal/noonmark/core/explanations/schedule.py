"""A schedule in plain English: one sentence, what clock changes do to it, and what may surprise you."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.calendars.calendar import OnHoliday
from noonmark.core.calendars.selection import HolidayRule
from noonmark.core.explanations.clock_changes import clock_words
from noonmark.core.explanations.cron import describe_cron
from noonmark.core.explanations.english import capital, day, joined, plural, span, uncapital
from noonmark.core.schedules.preview import in_zone, shortest_gap
from noonmark.core.schedules.schedule import AnyOf, Interval, Once, Schedule
from noonmark.core.schedules.wall_clock import Cron, RRule, WallClock
from noonmark.core.zones.zones import UTC_ZONE, Zone, plus

LOOK_AHEAD: Final = timedelta(days=400)
"""How far ahead clock changes are searched: a year and a bit more."""

_RARE: Final = timedelta(days=366)
_OFTEN: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A schedule in words.

    Attributes:
        sentence: "Every day at 02:30, New York time."
        details: further sentences: how it was read, bounds, what clock changes do to it.
        warnings: sentences about what is probably not intended.
    """

    sentence: str
    details: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def explain(schedule: Schedule, after: datetime, *, zone: Zone | None = None) -> Explanation:
    """Say in plain English when a schedule fires.

    Args:
        schedule: any schedule.
        after: clock changes and the next fire are searched from here on.
        zone: the zone that instants are shown in; by default the schedule's own, or UTC if it has none.
    """
    shown = zone or schedule.zone or UTC_ZONE
    rules = schedule.members if isinstance(schedule, AnyOf) else (schedule,)
    phrases = [_when(rule, shown) for rule in rules]
    details: list[str] = []
    # The rules of one schedule share their behaviour on clock changes, unless it is `auto`.
    shared: dict[str, None] = {}
    for number, rule in enumerate(rules, start=1):
        lines = _own_details(rule, shown)
        if isinstance(rule, WallClock):
            clocks = clock_words(rule, after, plus(after, LOOK_AHEAD))
            lines += clocks.changes
            shared |= {clocks.rule: None} if clocks.rule else {}
        details += [f"Rule {number}: {line}" for line in lines] if len(rules) > 1 else lines
    details += [*shared, *_shape(schedule, shown)]
    text = phrases[0] if len(rules) == 1 else f"Any of: {'; '.join(map(uncapital, phrases))}"
    sentence = f"{text}{',' if len(rules) == 1 else ';'} {zone_words(shown)}."
    return Explanation(sentence, details, list(_warnings(schedule, after, shown)))


def zone_words(zone: Zone) -> str:
    """Return the name of a zone's time: "New York time"."""
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


def _own_details(schedule: Schedule, zone: Zone) -> list[str]:
    """Return the details of one rule, without what clock changes do to it."""
    details: list[str] = []
    if isinstance(schedule, Cron):
        details += describe_cron(schedule.rule, dialect=schedule.dialect).details
    if isinstance(schedule, RRule):
        from noonmark.core.explanations.recurrence import missing_days, taken_from_start  # noqa: PLC0415 - for this kind only

        found = schedule.recurrence
        others = len(found.rules) > 1 or bool(found.dates.moments or found.instants)
        lines = [
            line
            for rule in found.rules
            for line in (taken_from_start(rule), *missing_days(rule, others=others))
            if line is not None
        ]
        details += dict.fromkeys(lines)
    if isinstance(schedule, Interval) and not zone.is_utc:
        details.append("Elapsed time ignores the clock: when the clocks change, its time of day moves.")
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
        yield f"Each run starts up to {spread} after its instant (jitter), always by the same amount."
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
        OnHoliday.SKIP: "is skipped",
        OnHoliday.NEXT_BUSINESS_DAY: "moves to the next open day",
        OnHoliday.PREVIOUS_BUSINESS_DAY: "moves to the previous open day",
    }
    yield f"{capital(joined(parts))}; what falls on {closed} {moved[rule.on_holiday]}."


def _names(names: list[str], word: str) -> str:
    return f"calendar{'s' if len(names) > 1 else ''} {joined(names, word)}"


def _warnings(schedule: Schedule, after: datetime, zone: Zone) -> Iterator[str]:
    first = schedule.next(after)
    if first is None:
        yield "No more fires."
    elif first - after > _RARE:
        yield f"The next fire is more than a year away: {instant_words(first, zone)}."
    gap = shortest_gap(schedule, after)
    if gap is not None and gap < _OFTEN:
        yield f"Fires more often than once a minute: every {_length(gap)} at its fastest."
    for rule in schedule.members if isinstance(schedule, AnyOf) else (schedule,):
        if isinstance(rule, RRule):
            yield from rule.recurrence.warnings
