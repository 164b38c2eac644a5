"""When a job is due: what all kinds of schedules share, and once, at an interval, or at any of several.

A schedule answers with aware UTC datetimes. `start` and `end` bound the instants, both included.
Import from `noonmark.core.schedules.schedule`.
"""

# ruff: noqa: D102, ARG002 - the methods of the kinds are documented, and their arguments fixed, in Schedule
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final

from noonmark.core.calendars.selection import HolidayRule
from noonmark.core.instants import as_utc, format_instant
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.cache import CachedPart, united
from noonmark.core.zones.zones import Zone, plus

TICK: Final = timedelta(microseconds=1)
MIN_EVERY: Final = timedelta(seconds=1)
MAX_EVERY: Final = timedelta(days=36_525)
MAX_CLOSED_DAYS: Final = 3660
"""The most consecutive closed days before the search for an interval's next instant gives up."""


class Schedule(ABC):
    """The due instants of a job, in order. Values are immutable and hashable; every datetime is aware.

    Attributes:
        kind: its name.
        start: no instant is before it; None: no bound. In the same way, none is after `end`.
        jitter_seconds: how much later than their instant runs may start (`noonmark.core.planning.jitter`).
        max_runs: the job is complete after this number of runs.
        walks: counting means walking through the instants, so callers count in bounded steps.
    """

    __slots__ = ()
    kind: ClassVar[str]
    walks: ClassVar[bool] = False
    if TYPE_CHECKING:  # fields of the kinds that recur, constants of the other

        @property
        def start(self) -> datetime | None: ...
        @property
        def end(self) -> datetime | None: ...
        @property
        def jitter_seconds(self) -> float: ...
        @property
        def max_runs(self) -> int | None: ...

    @abstractmethod
    def next(self, after: datetime) -> datetime | None:
        """Return the first instant strictly after `after`, or None if there is none."""

    @abstractmethod
    def previous(self, at: datetime) -> datetime | None:
        """Return the last instant at or before `at`, or None if there is none."""

    @abstractmethod
    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""

    @abstractmethod
    def period_seconds(self, at: datetime) -> float:
        """Return the length in seconds of the period around `at`; 0 if nothing recurs."""

    @abstractmethod
    def spec(self) -> dict[str, object]:
        """Return the JSON form that `load_schedule` reads back to an equal schedule."""

    @property
    def zone(self) -> Zone | None:
        """The zone whose data the instants depend on; None if they need no zone data."""
        return None

    @property
    def calendars(self) -> HolidayRule | None:
        """The calendars that skip or move instants."""
        return None

    def note(self, at: datetime) -> str | None:
        """Return how a clock change or a calendar affected the fire at `at`; None: not at all."""
        return None

    def removed(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]:
        """Return the naive local times in (after, until] that do not fire, each with the reason."""
        return []

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """Return the instants in (after, until], oldest first, at most `limit` of them."""
        found: list[datetime] = []
        at = self.next(after)
        while at is not None and at <= until and len(found) < limit:
            found.append(at)
            at = self.next(at)
        return found

    def first(self, created_at: datetime) -> datetime | None:
        """Return the first due instant of a job created at `created_at`.

        Nothing recurring is due before its job exists: a `start` that has passed only sets the rhythm.
        """
        return self.next(created_at)


@dataclass(frozen=True, slots=True)
class Once(Schedule):
    """One instant. A `run_at` before the job's creation is also due: late, under its misfire rule."""

    kind: ClassVar[str] = "once"
    start: ClassVar[datetime | None] = None
    end: ClassVar[datetime | None] = None
    jitter_seconds: ClassVar[float] = 0.0
    max_runs: ClassVar[int | None] = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring(Schedule):
    """What all schedules with several instants share: bounds, jitter and the number of runs.

    A kind says where its instants lie without bounds: `_next`, `_previous` and `_count`.
    """

    start: datetime | None = None
    end: datetime | None = None
    jitter_seconds: float = 0.0
    max_runs: int | None = None

    def _bound(self) -> None:
        for name in ("start", "end"):
            at = getattr(self, name)
            if at is not None:
                object.__setattr__(self, name, as_utc(at))
        if self.start is not None and self.end is not None and self.end < self.start:
            raise ScheduleError(
                "/end", f"end {format_instant(self.end)} is before start {format_instant(self.start)}"
            )

    @abstractmethod
    def _next(self, after: datetime) -> datetime | None: ...

    @abstractmethod
    def _previous(self, at: datetime) -> datetime | None: ...

    @abstractmethod
    def _count(self, after: datetime, until: datetime) -> int: ...

    def next(self, after: datetime) -> datetime | None:
        after = as_utc(after)
        if self.start is not None and after < self.start:
            after = self.start - TICK  # searches exclude their lower end
        found = self._next(after)
        return found if found is None or self.end is None or found <= self.end else None

    def previous(self, at: datetime) -> datetime | None:
        at = as_utc(at)
        found = self._previous(at if self.end is None or at <= self.end else self.end)
        return found if found is None or self.start is None or found >= self.start else None

    def count(self, after: datetime, until: datetime) -> int:
        after, until = as_utc(after), as_utc(until)
        if self.start is not None and after < self.start:
            after = self.start - TICK
        if self.end is not None and until > self.end:
            until = self.end
        return self._count(after, until) if until > after else 0

    def period_seconds(self, at: datetime) -> float:
        # The rule's own rhythm: `start` and `end` cut instants off, they do not make a period longer.
        at = as_utc(at)
        before, after = self._previous(at), self._next(at)
        return (after - before).total_seconds() if before and after else 0.0

    def shape(self) -> dict[str, object]:
        """Return the part of `spec` that all kinds share."""
        shape: dict[str, object] = {
            key: format_instant(at) for key, at in (("start", self.start), ("end", self.end)) if at
        }
        if self.jitter_seconds:
            shape["jitter_seconds"] = plain_number(self.jitter_seconds)
        if self.max_runs is not None:
            shape["max_runs"] = self.max_runs
        return shape


@dataclass(frozen=True, slots=True)
class Interval(Recurring):
    """Elapsed time: the n-th instant is `anchor` + n * `every`, n = 0, 1, 2 …, exact to the microsecond.

    With calendars, instants on closed days of `calendar_zone` are left out.
    """

    kind: ClassVar[str] = "interval"
    every: timedelta
    anchor: datetime
    holidays: HolidayRule | None = None
    calendar_zone: Zone | None = None

    def __post_init__(self) -> None:
        if not MIN_EVERY <= self.every <= MAX_EVERY:
            raise ScheduleError(
                "/every", f"every is {self.every.total_seconds():g} s; expected 1 s to {MAX_EVERY.days} days"
            )
        object.__setattr__(self, "anchor", as_utc(self.anchor))
        self._bound()

    @property
    def zone(self) -> Zone | None:
        zone = self.calendar_zone
        return None if zone is None or zone.is_utc else zone

    @property
    def calendars(self) -> HolidayRule | None:
        return self.holidays

    @property
    def walks(self) -> bool:  # type: ignore[override]
        return self.holidays is not None

    def _next(self, after: datetime) -> datetime | None:
        found = self._step_after(after)
        if self.holidays is None:
            return found
        for _ in range(MAX_CLOSED_DAYS):
            if found is None or self._is_open(found):
                return found
                # The whole day is closed: continue from its last moment in local time.
            found = self._step_after(self._day_edge(found, timedelta(days=1)) - TICK)
        return None

    def _previous(self, at: datetime) -> datetime | None:
        found = self._step_before(at)
        if self.holidays is None:
            return found
        for _ in range(MAX_CLOSED_DAYS):
            if found is None or self._is_open(found):
                return found
            found = self._step_before(self._day_edge(found, timedelta(0)) - TICK)
        return None

    def _count(self, after: datetime, until: datetime) -> int:
        if self.holidays is not None:
            return len(self.between(after, until, 1_000_000))
        below = (after - self.anchor) // self.every
        return max(0, (until - self.anchor) // self.every - max(below, -1))

    def period_seconds(self, at: datetime) -> float:
        return self.every.total_seconds()

    def spec(self) -> dict[str, object]:
        spec: dict[str, object] = {
            "every": plain_number(self.every.total_seconds()),
            "anchor": format_instant(self.anchor),
            **self.shape(),
        }
        if self.holidays is not None and self.calendar_zone is not None:
            spec["timezone"] = self.calendar_zone.name
            spec["calendars"] = self.holidays.spec()
        return spec

    def _step_after(self, after: datetime) -> datetime | None:
        index = (after - self.anchor) // self.every + 1
        try:
            return self.anchor + max(index, 0) * self.every
        except OverflowError:  # past the year 9999
            return None

    def _step_before(self, at: datetime) -> datetime | None:
        index = (at - self.anchor) // self.every
        return None if index < 0 else self.anchor + index * self.every

    def _is_open(self, at: datetime) -> bool:
        assert self.holidays is not None
        assert self.calendar_zone is not None
        return self.holidays.days.is_open(self.calendar_zone.local(at).date())

    def _day_edge(self, at: datetime, ahead: timedelta) -> datetime:
        """Return the first moment of the local day of `at`, or of a day `ahead` of it."""
        assert self.calendar_zone is not None
        local = plus(self.calendar_zone.local(at).replace(hour=0, minute=0, second=0, microsecond=0), ahead)
        images = self.calendar_zone.images(local)
        if images:
            return images[0]
        return plus(local, -self.calendar_zone.offset(at)).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AnyOf(Recurring):
    """The union of several schedules: an instant that more than one of them names is due once."""

    kind: ClassVar[str] = "any"
    walks: ClassVar[bool] = True
    members: tuple[Recurring | Once, ...]
    _parts: tuple[CachedPart, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", tuple(CachedPart(member) for member in self.members))
        self._bound()

    @property
    def zone(self) -> Zone | None:
        # All members share one zone, or need none.
        return next((member.zone for member in self.members if member.zone is not None), None)

    @property
    def calendars(self) -> HolidayRule | None:
        return next((m.calendars for m in self.members if m.calendars is not None), None)

    def _next(self, after: datetime) -> datetime | None:
        return min((at for part in self._parts if (at := part.next(after)) is not None), default=None)

    def _previous(self, at: datetime) -> datetime | None:
        return max((found for part in self._parts if (found := part.previous(at)) is not None), default=None)

    def _count(self, after: datetime, until: datetime) -> int:
        return sum(1 for _ in united(self._parts, after, until))

    def between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        after, until = as_utc(after), as_utc(until)
        if self.start is not None and after < self.start:
            after = self.start - TICK
        if self.end is not None and until > self.end:
            until = self.end
        return list(islice(united(self._parts, after, until), limit))

    def note(self, at: datetime) -> str | None:
        notes = {note: None for m in self.members if m.previous(at) == at and (note := m.note(at))}
        plain = any(m.previous(at) == at and m.note(at) is None for m in self.members)
        return None if plain else "; ".join(notes) or None

    def removed(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]:
        found = {item for m in self.members for item in m.removed(after, until, limit)}
        return sorted(found)[:limit]

    def spec(self) -> dict[str, object]:
        return {"any": [member.spec() for member in self.members], **self.shape()}


def members_of(members: Iterable[Schedule]) -> tuple[Recurring | Once, ...]:
    """Return the members of a union; nested unions are flattened."""
    return tuple(member for member in members if isinstance(member, Recurring | Once))


def plain_number(value: float) -> float:
    """Return the number as documents show it: an int if it has no fraction."""
    return int(value) if float(value).is_integer() else value


_COMPUTED: Final = (Once, Interval)
"""Schedules whose next instant costs no more than a look-up."""


def next_memo(schedule: Schedule, after: datetime) -> datetime | None:
    """Return `schedule.next(after)`, cached if evaluation costs more than a lookup.

    Nearly all rules of the wall clock fire on whole minutes, so all instants of one minute have the same
    next one: a thousand jobs with one expression cost one evaluation.
    """
    if type(schedule) in _COMPUTED:
        return schedule.next(after)
    found = _next_after_minute(schedule, after.replace(second=0, microsecond=0))
    # One within the minute: the rule has seconds, or the offset does.
    return found if found is None or found > after else schedule.next(after)


@lru_cache(maxsize=65_536)
def _next_after_minute(schedule: Schedule, minute: datetime) -> datetime | None:
    return schedule.next(minute)
