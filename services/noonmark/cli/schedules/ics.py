"""Read the days of an iCalendar file, such as a published list of holidays.

Only the days of events matter, as each event writes them: an event at a time of day counts for the dates in
its own time zone. Recurring events are expanded for some years, except yearly ones on a fixed day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any, Final, NamedTuple

from noonmark.core.calendars.calendar import FIRST_DAY, LAST_DAY, MAX_DATES, MAX_RANGES, Calendar, DayRange

MAX_BYTES: Final = 5_000_000
MAX_EVENTS: Final = 10_000
MAX_OCCURRENCES: Final = 200_000
"""Maximum number of days of all recurring events in a file."""

MAX_EVENT_DAYS: Final = 3_660
_READ: Final = (
    "DTSTART",
    "DTEND",
    "DURATION",
    "RRULE",
    "RDATE",
    "EXDATE",
    "EXRULE",
    "RECURRENCE-ID",
    "STATUS",
)
_KINDS: Final = {"DTSTART": date, "DTEND": date, "RECURRENCE-ID": date, "DURATION": timedelta}
_RUN: Final = 3
"""Number of consecutive days that become a range."""

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_UNTIL_DAY: Final = re.compile(r"(UNTIL=[0-9]{8})(?![0-9T])")
_DAY: Final = timedelta(days=1)
_END_OF_DAY: Final = time(23, 59, 59)


class IcsError(ValueError):
    """The file is rejected: what is wrong, at which event or line, and what to do."""


class IcsDays(NamedTuple):
    """Contents of a file.

    Attributes:
        calendar: the days.
        events: number of events.
        cancelled: number of cancelled events, which are ignored.
        written_out_to: last day of the expansion of recurring events; None if nothing was expanded.
    """

    calendar: Calendar
    events: int
    cancelled: int
    written_out_to: date | None


@dataclass(slots=True)
class _Event:
    """An event with its position in the file, its start and its time zone."""

    body: Any
    number: int
    line: int
    start: date = field(default=date.min)

    def refuse(self, problem: str) -> IcsError:
        summary = str(self.body.get("SUMMARY", ""))[:40]
        shown = f", {summary!r}" if summary else ""
        return IcsError(f"event {self.number} (line {self.line}{shown}) {problem}")

    @property
    def all_day(self) -> bool:
        return not isinstance(self.start, datetime)

    def local(self, value: date) -> date:
        """Return a time in the time zone of the event, or a day for an all-day event."""
        if not isinstance(value, datetime):
            return value
        if self.all_day:
            return value.date()
        assert isinstance(self.start, datetime)
        if value.tzinfo is not None and self.start.tzinfo is not None:
            value = value.astimezone(self.start.tzinfo)
        return value.replace(tzinfo=None)

    def naive_start(self) -> datetime:
        start = self.local(self.start)
        return start if isinstance(start, datetime) else datetime.combine(start, time.min)


def read_ics(data: bytes, *, today: date, years: int) -> IcsDays:
    """Read the days of an iCalendar file.

    Args:
        data: the file in UTF-8.
        today: recurring events are expanded from the start of last year.
        years: and to the end of the year this number of years ahead.

    Raises:
        IcsError: it is another kind of file, too large, or has an invalid event.
    """
    events = _parse(data)
    reader = _Reader(
        date(today.year - 1, 1, 1), date(min(today.year + years, LAST_DAY.year), 12, 31), today.year
    )
    for event in events:
        _check(event)
    cancelled = reader.take_in(events)
    return IcsDays(reader.calendar(cancelled), len(events), cancelled, reader.written_out_to)


def _parse(data: bytes) -> list[_Event]:
    if len(data) > MAX_BYTES:
        raise IcsError(f"has {len(data):,} bytes, more than {MAX_BYTES:,}; export fewer years")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise IcsError(f"is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    lines = [line.strip().upper() for line in _BREAK.split(text)]
    if "BEGIN:VCALENDAR" not in lines:
        raise IcsError("is not an iCalendar file (no line BEGIN:VCALENDAR); download the .ics file itself")
    places = [number for number, line in enumerate(lines, start=1) if line == "BEGIN:VEVENT"]
    if len(places) > MAX_EVENTS:
        raise IcsError(f"contains {len(places):,} events, more than {MAX_EVENTS:,}; export fewer years")
    import icalendar  # noqa: PLC0415 - for this command only

    try:
        parsed = icalendar.Calendar.from_ical(text, multiple=True)
        found = [event for calendar in parsed for event in calendar.walk("VEVENT")]
    except Exception as error:
        # The library does not document what it raises for a damaged file; more than ValueError was seen.
        raise IcsError(f"cannot be read: {error}; download it again, or correct that line") from error
    if len(found) != len(places):
        raise IcsError(
            f"has {len(places)} lines BEGIN:VEVENT and {len(found)} complete events; part of it is missing;"
            " download it again"
        )
    return [_Event(body, n, line) for n, (body, line) in enumerate(zip(found, places, strict=True), start=1)]


def _check(event: _Event) -> None:
    """Return the event with its start; reject invalid properties."""
    body = event.body
    for name, problem in body.errors:
        if name in _READ:
            raise event.refuse(f"has an invalid {name} ({problem}); correct it, or remove the event")
    for name, kind in _KINDS.items():
        value = body.get(name)
        if isinstance(value, list):
            raise event.refuse(f"has {name} more than once; keep one")
        if value is not None and not isinstance(value.dt, kind):
            raise event.refuse(f"has a {name} of the wrong kind ({value.dt}); correct it")
    for name in ("RDATE", "EXDATE"):
        if not all(isinstance(at, date) for at in _times(body.get(name))):
            raise event.refuse(f"has an {name} that is neither a date nor a time; correct it")
    _check_form(event)
    event.start = body["DTSTART"].dt


def _check_form(event: _Event) -> None:
    """Reject an event without a start, and unsupported properties."""
    body = event.body
    if body.get("DTSTART") is None:
        raise event.refuse("has no DTSTART; add one, or remove the event")
    if "EXRULE" in body:
        raise event.refuse("has an EXRULE, which is no longer part of iCalendar; write EXDATEs instead")
    if "RECURRENCE-ID" in body and "RANGE" in body["RECURRENCE-ID"].params:
        raise event.refuse(
            "changes its series from one time on (RANGE=THISANDFUTURE), which is not supported; end the"
            " series there and start another one"
        )


class _Reader:
    """Collects the days of events."""

    def __init__(self, first: date, last: date, this_year: int) -> None:
        self._first = first
        self._last = last
        self._this_year = this_year
        self._days: set[int] = set()
        self._yearly: set[tuple[int, int]] = set()
        self._occurrences = 0
        self.written_out_to: date | None = None

    def take_in(self, events: Iterable[_Event]) -> int:
        """Add all events of a file; return how many are cancelled."""
        series: list[_Event] = []
        replaced: dict[str, list[_Event]] = {}
        cancelled = 0
        for event in events:
            is_cancelled = str(event.body.get("STATUS", "")).upper() == "CANCELLED"
            cancelled += is_cancelled
            if "RECURRENCE-ID" in event.body:
                # It replaces one time of a series, even if that time is cancelled.
                replaced.setdefault(str(event.body.get("UID", "")), []).append(event)
                if not is_cancelled:
                    self._add(event, event.start)
            elif not is_cancelled:
                series.append(event)
        for event in series:
            self._take_series(event, replaced.get(str(event.body.get("UID", "")), []))
        return cancelled

    def calendar(self, cancelled: int) -> Calendar:
        """Return all days.

        Raises:
            IcsError: there are too many, or none.
        """
        dates: list[date] = []
        ranges: list[DayRange] = []
        for _, group in groupby(enumerate(sorted(self._days)), key=lambda pair: pair[1] - pair[0]):
            run = [date.fromordinal(day) for _, day in group]
            if len(run) >= _RUN:
                ranges.append(DayRange(run[0], run[-1]))
            else:
                dates += run
        if not dates and not ranges and not self._yearly:
            why = f" ({cancelled} are cancelled)" if cancelled else ""
            raise IcsError(f"has no day from {FIRST_DAY} to {LAST_DAY}{why}; check that it is the right file")
        if len(dates) > MAX_DATES or len(ranges) > MAX_RANGES:
            raise IcsError(
                f"has {len(dates):,} single days and {len(ranges):,} ranges; a calendar can have"
                f" {MAX_DATES:,} and {MAX_RANGES:,}; use fewer --years, or a smaller file"
            )
        return Calendar(dates=tuple(dates), ranges=tuple(ranges), yearly=tuple(self._yearly))

    def _take_series(self, event: _Event, replaced: list[_Event]) -> None:
        body = event.body
        rules = _listed(body.get("RRULE"))
        gone = {event.local(each.body["RECURRENCE-ID"].dt) for each in replaced}
        gone |= {event.local(at) for at in _times(body.get("EXDATE"))}
        more = [event.local(at) for at in _times(body.get("RDATE"))]
        if len(rules) == 1 and not gone and not more and self._take_yearly(event, rules[0]):
            return
        start = event.local(event.start)
        for at in [start, *more]:
            if not _is_gone(at, gone):
                self._add(event, at)
        for rule in rules:
            self._write_out(event, rule, gone)

    def _take_yearly(self, event: _Event, rule: Any) -> bool:
        """Add a rule that is the same day of every year from now on; return False for other rules."""
        start = event.start
        plain = (
            rule.keys() <= {"FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "WKST"}
            and _value(rule, "FREQ") == "YEARLY"
            and _value(rule, "INTERVAL") in {None, "1"}
            and _value(rule, "BYMONTH") in {None, str(start.month)}
            and _value(rule, "BYMONTHDAY") in {None, str(start.day)}
            # A day of the month alone means that day of every month.
            and ("BYMONTH" in rule or "BYMONTHDAY" not in rule)
        )
        # A later start does not apply yet. An event across the end of February differs by year.
        if not plain or start.year > self._this_year:
            return False
        days = _length(event)
        covered = [date(2000, start.month, start.day) + n * _DAY for n in range(min(days, 32))]
        if days > 1 and (days > 31 or any((day.month, day.day) in {(2, 28), (2, 29)} for day in covered)):
            return False
        self._yearly |= {(day.month, day.day) for day in covered}
        return True

    def _write_out(self, event: _Event, rule: Any, gone: set[date]) -> None:
        from noonmark.core.rrule.recurrence_set import RRuleError, parse_rrule  # noqa: PLC0415

        start = event.naive_start()
        try:
            # An UNTIL that is a day means the whole day; rules are parsed with times only.
            text = "RRULE:" + _UNTIL_DAY.sub(r"\1T235959", rule.to_ical().decode())
            (recurrence,) = parse_rrule(text, dtstart=start).rules
        except TypeError:
            # The library accepts an UNTIL with only hours and minutes, but cannot serialize it.
            raise event.refuse(
                f"has an invalid RRULE ({dict(rule)}); correct it, or remove the event"
            ) from None
        except RRuleError as error:
            raise event.refuse(f"has an invalid RRULE: {error.message}") from error
        last = datetime.combine(self._last, _END_OF_DAY)
        at = recurrence.next(max(start, datetime.combine(self._first, time.min)) - timedelta(seconds=1))
        while at is not None and at <= last and not _ended(event, at, recurrence.until_utc):
            self._occurrences += 1
            if self._occurrences > MAX_OCCURRENCES:
                raise IcsError(
                    f"has recurring events on more than {MAX_OCCURRENCES:,} days in total;"
                    " use fewer --years, or a smaller file"
                )
            if _is_gone(at, gone):
                at = recurrence.next(at)
                continue
            self._add(event, at)
            at = recurrence.next(datetime.combine(at.date(), _END_OF_DAY))
        if at is not None and at > last:
            self.written_out_to = self._last

    def _add(self, event: _Event, at: date) -> None:
        first = (at.date() if isinstance(at, datetime) else at).toordinal()
        begin, end = max(first, FIRST_DAY.toordinal()), min(first + _length(event) - 1, LAST_DAY.toordinal())
        self._days.update(range(begin, end + 1))


def _length(event: _Event) -> int:
    """Return the number of days of an event, at least one.

    Raises:
        IcsError: it ends before it begins, or is too long.
    """
    body, start = event.body, event.local(event.start)
    end = start
    if body.get("DTEND") is not None:
        end = event.local(body["DTEND"].dt)
    elif body.get("DURATION") is not None:
        try:
            end = start + body["DURATION"].dt
        except OverflowError:
            raise event.refuse("lasts beyond the year 9999; correct its DURATION") from None
    if isinstance(start, datetime):
        finish = end if isinstance(end, datetime) else datetime.combine(end, time.min)
        if finish < start:
            raise event.refuse(f"ends at {finish}, before it begins at {start}; correct its DTEND")
        last = (finish - timedelta(seconds=1)).date() if finish > start else start.date()
        days = (last - start.date()).days + 1
    else:
        if end < start:
            raise event.refuse(f"ends on {end}, before it begins on {start}; correct its DTEND")
        days = max(1, (end - start).days)
    if days > MAX_EVENT_DAYS:
        raise event.refuse(f"lasts {days:,} days, more than {MAX_EVENT_DAYS:,}; correct its DTEND")
    return days


def _ended(event: _Event, at: datetime, until_utc: datetime | None) -> bool:
    if until_utc is None:
        return False
    zone = event.start.tzinfo if isinstance(event.start, datetime) else None
    return at.replace(tzinfo=zone or until_utc.tzinfo) > until_utc


def _is_gone(at: date, gone: set[date]) -> bool:
    return at in gone or (isinstance(at, datetime) and at.date() in gone)


def _times(value: Any) -> Iterator[date]:
    """Return the times of RDATE or EXDATE lines; for a period, its start."""
    for line in _listed(value):
        for each in line.dts:
            yield each.dt[0] if isinstance(each.dt, tuple) else each.dt


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _value(rule: Any, key: str) -> str | None:
    """Return the value of a rule part with one value; for several, an object that equals nothing."""
    values = _listed(rule.get(key))
    return ",".join(map(str, values)) if values else None
