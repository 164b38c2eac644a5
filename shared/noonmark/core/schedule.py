"""When a job is due: once, at a fixed interval, or by a cron expression.

A schedule answers with aware UTC datetimes and never steps through time to find them: intervals are computed,
cron searches sets (`noonmark.core.cron`). `start` and `end` bound the instants, both included.

`parse_schedule` reads what users write; `load_schedule` reads what `Schedule.spec` made for storage.
"""

# ruff: noqa: D102, ARG002 - the methods of the three kinds are documented, and their arguments fixed, in Schedule
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar, Final

from noonmark.core.cron import CronError, CronRule, parse_cron
from noonmark.core.instants import as_utc, format_instant, parse_duration, parse_instant, shortened, type_name

TICK: Final = timedelta(microseconds=1)
MIN_EVERY: Final = timedelta(seconds=1)
MAX_EVERY: Final = timedelta(days=36_525)

_ALLOWED: Final = ("cron", "every", "timezone", "start", "end")
_NOT_YET: Final = frozenset(
    {
        "rrule",
        "dst_gap",
        "dst_overlap",
        "jitter_seconds",
        "max_runs",
        "calendar",
        "calendars",
        "exclude_calendars",
        "seconds_field",
        "dialect",
    }
)


class ScheduleError(ValueError):
    """The schedule is refused.

    Attributes:
        pointer: JSON pointer relative to the schedule: "" is the schedule itself, "/every" a field of it.
        message: what is wrong, where, and what is allowed.
        position: 1-based character of the text at `pointer` where the trouble is, or None.
    """

    def __init__(self, pointer: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.position = position


class Schedule(ABC):
    """The due instants of a job, in order. Values are immutable and hashable; every datetime is aware."""

    __slots__ = ()
    kind: ClassVar[str]

    @abstractmethod
    def next(self, after: datetime) -> datetime | None:
        """Return the first instant strictly after `after`, or None if there is none ever again."""

    @abstractmethod
    def previous(self, at: datetime) -> datetime | None:
        """Return the last instant at or before `at`, or None if there is none."""

    @abstractmethod
    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until], without walking them."""

    @abstractmethod
    def period_seconds(self, at: datetime) -> float:
        """Return the length in seconds of the period about `at`; 0 where nothing recurs."""

    @abstractmethod
    def spec(self) -> dict[str, object]:
        """Return the JSON form that `load_schedule` reads back to an equal schedule."""

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """Return the instants in (after, until], oldest first, at most `limit` of them."""
        found: list[datetime] = []
        at = self.next(after)
        while at is not None and at <= until and len(found) < limit:
            found.append(at)
            at = self.next(at)
        return found

    def first(self, created_at: datetime) -> datetime | None:
        """Return the first due instant of a job made at `created_at`.

        Nothing recurring is due before its job exists: a `start` that has passed only sets the rhythm.
        """
        return self.next(created_at)


@dataclass(frozen=True, slots=True)
class Once(Schedule):
    """One instant. A `run_at` before the job's creation is due all the same: late, under its misfire rule."""

    kind: ClassVar[str] = "once"
    run_at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "run_at", as_utc(self.run_at))

    def next(self, after: datetime) -> datetime | None:
        return self.run_at if as_utc(after) < self.run_at else None

    def previous(self, at: datetime) -> datetime | None:
        return self.run_at if self.run_at <= as_utc(at) else None

    def count(self, after: datetime, until: datetime) -> int:
        return int(as_utc(after) < self.run_at <= as_utc(until))

    def period_seconds(self, at: datetime) -> float:
        return 0.0

    def spec(self) -> dict[str, object]:
        return {"run_at": format_instant(self.run_at)}

    def first(self, created_at: datetime) -> datetime | None:
        return self.run_at


@dataclass(frozen=True, slots=True)
class Interval(Schedule):
    """Elapsed time: the n-th instant is `anchor` + n * `every`, n = 0, 1, 2 …, exact to the microsecond."""

    kind: ClassVar[str] = "interval"
    every: timedelta
    anchor: datetime
    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        if not MIN_EVERY <= self.every <= MAX_EVERY:
            raise ScheduleError(
                "/every", f"every is {self.every.total_seconds():g} s; allowed: 1 s to {MAX_EVERY.days} days"
            )
        object.__setattr__(self, "anchor", as_utc(self.anchor))
        _set_bounds(self, self.start, self.end)

    def next(self, after: datetime) -> datetime | None:
        index = (_from_start(as_utc(after), self.start) - self.anchor) // self.every + 1
        try:
            found = self.anchor + max(index, 0) * self.every
        except OverflowError:  # past the year 9999
            return None
        return found if self.end is None or found <= self.end else None

    def previous(self, at: datetime) -> datetime | None:
        index = (_to_end(as_utc(at), self.end) - self.anchor) // self.every
        if index < 0:
            return None
        found = self.anchor + index * self.every
        return found if self.start is None or found >= self.start else None

    def count(self, after: datetime, until: datetime) -> int:
        below = (_from_start(as_utc(after), self.start) - self.anchor) // self.every
        upto = (_to_end(as_utc(until), self.end) - self.anchor) // self.every
        return max(0, upto - max(below, -1))

    def period_seconds(self, at: datetime) -> float:
        return self.every.total_seconds()

    def spec(self) -> dict[str, object]:
        seconds = self.every.total_seconds()
        return {
            "every": int(seconds) if seconds.is_integer() else seconds,
            "anchor": format_instant(self.anchor),
            **_bounds_spec(self.start, self.end),
        }


@dataclass(frozen=True, slots=True)
class Cron(Schedule):
    """A cron expression of five fields, read in UTC.

    Raises:
        ScheduleError: on construction, as `noonmark.core.cron.parse_cron` refuses the expression.
    """

    kind: ClassVar[str] = "cron"
    expression: str
    start: datetime | None = None
    end: datetime | None = None
    _rule: CronRule = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "_rule", parse_cron(self.expression))
        except CronError as error:
            raise ScheduleError("/cron", error.message, error.position) from None
        _set_bounds(self, self.start, self.end)

    def next(self, after: datetime) -> datetime | None:
        return self._until_end(self._rule.next(_from_start(as_utc(after), self.start)))

    def previous(self, at: datetime) -> datetime | None:
        found = self._rule.previous(_to_end(as_utc(at), self.end))
        return found if found is None or self.start is None or found >= self.start else None

    def count(self, after: datetime, until: datetime) -> int:
        return self._rule.count(_from_start(as_utc(after), self.start), _to_end(as_utc(until), self.end))

    def period_seconds(self, at: datetime) -> float:
        # The rule's own rhythm: `start` and `end` cut instants off, they do not make a period longer.
        at = as_utc(at)
        before, after = self._rule.previous(at), self._rule.next(at)
        return (after - before).total_seconds() if before and after else 0.0

    def spec(self) -> dict[str, object]:
        return {"cron": self.expression, "timezone": "UTC", **_bounds_spec(self.start, self.end)}

    def _until_end(self, found: datetime | None) -> datetime | None:
        return found if found is None or self.end is None or found <= self.end else None


def next_memo(schedule: Schedule, after: datetime) -> datetime | None:
    """Return `schedule.next(after)`, remembered where evaluation costs more than looking it up.

    Cron instants are whole minutes, so all instants of one minute have the same next one: a thousand jobs
    with one expression cost one evaluation.
    """
    if isinstance(schedule, Cron):
        return _next_after_minute(schedule, after.replace(second=0, microsecond=0))
    return schedule.next(after)


@lru_cache(maxsize=65_536)
def _next_after_minute(schedule: Cron, minute: datetime) -> datetime | None:
    return schedule.next(minute)


def parse_schedule(value: object, *, created_at: datetime) -> Schedule:
    """Read a schedule as users write it.

    Args:
        value: a cron string, or an object with exactly one of `cron` and `every` (seconds, or an ISO 8601
            duration), and optionally `timezone` ("UTC"), `start` and `end` (RFC 3339).
        created_at: when the job was made: the anchor of an interval without `start`.

    Raises:
        ScheduleError: a field is unknown, of a wrong type or value, or nothing will ever be due.
    """
    created_at = as_utc(created_at)
    if isinstance(value, str):
        schedule: Schedule = _cron_at("", value)
    elif isinstance(value, Mapping):
        schedule = _from_object(value, created_at)
    else:
        raise ScheduleError(
            "",
            f"schedule is {type_name(value)}; allowed: a cron string, or an object with 'cron' or 'every'",
        )
    if schedule.first(created_at) is None:
        has_end = isinstance(value, Mapping) and "end" in value
        raise ScheduleError(
            "/end" if has_end else "",
            "schedule has no instant after the job's creation"
            + (" up to its end; move 'end' to a later instant" if has_end else ""),
        )
    return schedule


def load_schedule(spec: Mapping[str, Any]) -> Schedule:
    """Read back what `Schedule.spec` made.

    Raises:
        ScheduleError: the stored form is damaged.
    """
    start, end = _instant(spec, "start"), _instant(spec, "end")
    run_at, anchor = _instant(spec, "run_at"), _instant(spec, "anchor")
    if run_at is not None:
        return Once(run_at)
    if "cron" in spec:
        return _cron_at("/cron", spec["cron"], start, end)
    if "every" in spec and anchor is not None:
        return Interval(_parse_every(spec["every"]), anchor, start, end)
    raise ScheduleError("", "stored schedule holds none of 'run_at', 'cron', and 'every' with 'anchor'")


def _from_start(after: datetime, start: datetime | None) -> datetime:
    """Return the later of `after` and the moment before `start`: searches exclude their lower end."""
    return after if start is None or after >= start else start - TICK


def _to_end(until: datetime, end: datetime | None) -> datetime:
    return until if end is None or until <= end else end


def _set_bounds(schedule: Interval | Cron, start: datetime | None, end: datetime | None) -> None:
    if start is not None:
        object.__setattr__(schedule, "start", as_utc(start))
    if end is not None:
        object.__setattr__(schedule, "end", as_utc(end))
    if start is not None and end is not None and end < start:
        raise ScheduleError("/end", f"end {format_instant(end)} is before start {format_instant(start)}")


def _bounds_spec(start: datetime | None, end: datetime | None) -> dict[str, object]:
    return {key: format_instant(at) for key, at in (("start", start), ("end", end)) if at is not None}


def _cron_at(
    pointer: str, expression: object, start: datetime | None = None, end: datetime | None = None
) -> Cron:
    if not isinstance(expression, str):
        raise ScheduleError(
            pointer, f"cron is {type_name(expression)}; allowed: a string of 5 fields such as '0 9 * * 1'"
        )
    try:
        return Cron(expression, start, end)
    except ScheduleError as error:
        at = pointer if error.pointer == "/cron" else error.pointer
        raise ScheduleError(at, error.message, error.position) from None


def _from_object(value: Mapping[str, Any], created_at: datetime) -> Schedule:
    _check_keys(value)
    zone = value.get("timezone", "UTC")
    if zone != "UTC":
        shown = shortened(zone) if isinstance(zone, str) else type_name(zone)
        raise ScheduleError(
            "/timezone", f"timezone is {shown}; other zones than 'UTC' are not available in this version"
        )
    start, end = _instant(value, "start"), _instant(value, "end")
    if end is not None and end <= created_at:
        raise ScheduleError("/end", f"end {format_instant(end)} is in the past; move it to a later instant")
    if "cron" in value:
        return _cron_at("/cron", value["cron"], start, end)
    return Interval(_parse_every(value["every"]), start or created_at, start, end)


def _check_keys(value: Mapping[str, Any]) -> None:
    for key in value:
        if key in _ALLOWED:
            continue
        pointer = "/" + str(key)[:80].replace("~", "~0").replace("/", "~1")
        if key in _NOT_YET:
            raise ScheduleError(pointer, f"{key} is not available in this version; leave the field out")
        raise ScheduleError(pointer, f"unknown field {shortened(str(key))}; allowed: {', '.join(_ALLOWED)}")
    if ("cron" in value) == ("every" in value):
        problem = "both 'cron' and 'every'" if "cron" in value else "neither 'cron' nor 'every'"
        raise ScheduleError("", f"schedule has {problem}; give exactly one of them")


def _parse_every(value: object) -> timedelta:
    allowed = (
        f"allowed: a number of seconds from 1 on, or an ISO 8601 duration such as PT15M or P1D, at most "
        f"{MAX_EVERY.days} days"
    )
    if isinstance(value, str):
        try:
            every = parse_duration(value)
        except ValueError as error:
            raise ScheduleError("/every", f"every {error}; {allowed}") from None
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ScheduleError("/every", f"every is {type_name(value)}; {allowed}")
    elif not 0 < value <= MAX_EVERY.total_seconds():  # so neither NaN nor infinite
        raise ScheduleError("/every", f"every is out of range; {allowed}")
    else:
        every = timedelta(seconds=value)
    if not MIN_EVERY <= every <= MAX_EVERY:
        raise ScheduleError("/every", f"every is out of range; {allowed}")
    return every


def _instant(document: Mapping[str, Any], key: str) -> datetime | None:
    """Return the document's instant under `key`, or None where it has none."""
    if key not in document:
        return None
    try:
        return parse_instant(document[key])
    except ValueError as error:
        raise ScheduleError(f"/{key}", f"{key} {error}") from None
