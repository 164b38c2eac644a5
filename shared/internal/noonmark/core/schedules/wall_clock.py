"""Schedules on the wall clock: cron expressions and RFC 5545 recurrence sets, in a time zone.

The rules themselves know naive local time only; `noonmark.core.zones.local_times` maps it to UTC by
the job's rules for the hours that a change of the clocks leaves out or brings twice.
"""

# ruff: noqa: D102 - documented in Schedule
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol

from noonmark.core.calendars.calendar import OnHoliday
from noonmark.core.calendars.local_rule import LocalRule
from noonmark.core.calendars.selection import HolidayRule
from noonmark.core.cron.expression import CronError, CronRule, parse_cron
from noonmark.core.rrule.recurrence_set import RecurrenceSet, RRuleError, parse_rrule
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.cache import CachedPart
from noonmark.core.schedules.kinds import TICK, Recurring
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.local_times import GapRule, OverlapRule, Zoned, resolve_auto
from noonmark.core.zones.zones import UTC_ZONE, Zone


class _Mapped(Protocol):
    """A local rule as instants."""

    def next(self, after: datetime) -> datetime | None: ...

    def previous(self, at: datetime) -> datetime | None: ...

    def count(self, after: datetime, until: datetime) -> int: ...

    def note(self, at: datetime) -> str | None: ...

    def removed(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]: ...


@dataclass(frozen=True, slots=True)
class _InUtc:
    """A local rule read in UTC, where every time exists once."""

    rule: LocalRule

    def next(self, after: datetime) -> datetime | None:
        return _aware(self.rule.next(after.replace(tzinfo=None)))

    def previous(self, at: datetime) -> datetime | None:
        return _aware(self.rule.previous(at.replace(tzinfo=None)))

    def count(self, after: datetime, until: datetime) -> int:
        return self.rule.count(after.replace(tzinfo=None), until.replace(tzinfo=None))

    def note(self, _at: datetime) -> str | None:
        return None

    def removed(self, _after: datetime, _until: datetime, _limit: int) -> list[tuple[datetime, str]]:
        return []


def _aware(local: datetime | None) -> datetime | None:
    return None if local is None else local.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WallClock(Recurring):
    """What cron and rrule share: the zone, its rules for gaps and overlaps, and calendars."""

    timezone: Zone = UTC_ZONE
    dst_gap: DstGap = DstGap.AUTO
    dst_overlap: DstOverlap = DstOverlap.AUTO
    holidays: HolidayRule | None = None

    @property
    def zone(self) -> Zone | None:
        return None if self.timezone.is_utc else self.timezone

    @property
    def calendars(self) -> HolidayRule | None:
        return self.holidays

    @property
    def _moves(self) -> bool:
        """Whether calendars move fires: then counting means walking."""
        return self.holidays is not None and self.holidays.on_holiday is not OnHoliday.SKIP

    @property
    def clock_rules(self) -> tuple[GapRule, OverlapRule]:
        """What the schedule does when the clocks change, `auto` resolved."""
        raise NotImplementedError

    @property
    def local_rules(self) -> list[LocalRule]:
        """The schedule's local times with calendars applied, before any time zone."""
        raise NotImplementedError

    def _under_calendars(self, rule: LocalRule) -> LocalRule:
        return rule if self.holidays is None else self.holidays.over(rule)

    def _map(self, rule: LocalRule) -> _Mapped:
        """Return one of `local_rules` as instants."""
        return _InUtc(rule) if self.timezone.is_utc else Zoned(rule, self.timezone, *self.clock_rules)

    def _calendar_note(self, at: datetime, rules: Iterable[LocalRule]) -> str | None:
        if self.holidays is None:
            return None
        local = self.timezone.local(at)
        notes = (self.holidays.over(rule).note_of(local) for rule in rules)
        return next((note for note in notes if note is not None), None)

    def _window(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        low = after if self.start is None or after >= self.start else self.start
        return low, until if self.end is None or until <= self.end else self.end

    def _closed(
        self, rule: LocalRule, low: datetime, high: datetime, limit: int
    ) -> list[tuple[datetime, str]]:
        """Return the times of a rule that calendars exclude."""
        if self.holidays is None or high <= low:
            return []
        zone = self.timezone
        return self.holidays.over(rule).skipped(zone.local(low), zone.local(high), limit)

    def shape(self) -> dict[str, object]:
        # Not `super()`: the decorator of a class with slots creates a second class, and `super()` uses the
        # first.
        shape: dict[str, object] = {"timezone": self.timezone.name, **Recurring.shape(self)}
        if self.dst_gap is not DstGap.AUTO:
            shape["dst_gap"] = self.dst_gap.value
        if self.dst_overlap is not DstOverlap.AUTO:
            shape["dst_overlap"] = self.dst_overlap.value
        if self.holidays is not None:
            shape["calendars"] = self.holidays.spec()
        return shape


@dataclass(frozen=True, slots=True)
class Cron(WallClock):
    """A cron expression. `noonmark.core.cron.grammar` has its grammar.

    Attributes:
        expression: as the user wrote it.
        dialect: "unix" or "quartz".
        seconds_field: where a unix expression with six fields has its seconds; None: first.
        seed: what `H` is hashed from; "" if the expression has no `H`.
        stored: read from the store, so also an expression that only earlier releases accepted.

    Raises:
        ScheduleError: on construction, if the expression is refused.
    """

    kind: ClassVar[str] = "cron"
    expression: str
    dialect: str = "unix"
    seconds_field: str | None = None
    seed: str = ""
    stored: bool = field(default=False, compare=False, repr=False)
    rule: CronRule = field(init=False, compare=False, repr=False)
    _mapped: Any = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            rule = parse_cron(
                self.expression,
                dialect=self.dialect,
                seconds_field=self.seconds_field,
                seed=self.seed,
                stored=self.stored,
            )
        except CronError as error:
            raise ScheduleError("/cron", error.message, error.position, error.field) from None
        object.__setattr__(self, "rule", rule)
        (local,) = self.local_rules
        object.__setattr__(self, "_mapped", self._map(local))
        self._bound()
        object.__setattr__(self, "_hash", hash((self.expression, self.timezone.name, self.start, self.seed)))

    def __hash__(self) -> int:
        # Computed once: every claim looks up the next instant by its schedule.
        return self._hash

    @property
    def walks(self) -> bool:  # type: ignore[override]
        return self._moves

    @property
    def clock_rules(self) -> tuple[GapRule, OverlapRule]:
        return resolve_auto(self.dst_gap, self.dst_overlap, kind="cron", wild=self.rule.wild)

    @property
    def local_rules(self) -> list[LocalRule]:
        return [self._under_calendars(self.rule)]

    def _next(self, after: datetime) -> datetime | None:
        found: datetime | None = self._mapped.next(after)
        return found

    def _previous(self, at: datetime) -> datetime | None:
        found: datetime | None = self._mapped.previous(at)
        return found

    def _count(self, after: datetime, until: datetime) -> int:
        count: int = self._mapped.count(after, until)
        return count

    def note(self, at: datetime) -> str | None:
        note: str | None = self._mapped.note(at)
        return note or self._calendar_note(at, [self.rule])

    def removed(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]:
        low, high = self._window(after, until)
        found = {*self._mapped.removed(low, high, limit), *self._closed(self.rule, low, high, limit)}
        return sorted(found)[:limit]

    def spec(self) -> dict[str, object]:
        spec: dict[str, object] = {"cron": self.expression, **self.shape()}
        if self.dialect != "unix":
            spec["dialect"] = self.dialect
        if self.seconds_field is not None:
            spec["seconds_field"] = self.seconds_field
        if self.seed:
            spec["seed"] = self.seed
        return spec


@dataclass(frozen=True, slots=True)
class RRule(WallClock):
    """A recurrence set of RFC 5545, 3.8.5. `dtstart` is naive, in the schedule's zone.

    Raises:
        ScheduleError: on construction, if the text is refused or names another zone.
    """

    kind: ClassVar[str] = "rrule"
    text: str
    dtstart: datetime | None = None
    recurrence: RecurrenceSet = field(init=False, compare=False, repr=False)
    _parts: Any = field(init=False, compare=False, repr=False)
    _mapped: Any = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            recurrence = parse_rrule(self.text, dtstart=self.dtstart)
        except RRuleError as error:
            pointer = "/dtstart" if error.field == "DTSTART" and self.dtstart is not None else "/rrule"
            raise ScheduleError(pointer, error.message, error.position, error.field) from None
        others = recurrence.tzids - {self.timezone.name}
        if others:
            raise ScheduleError(
                "/rrule",
                f"rrule has TZID={min(others)}, but the schedule's timezone is {self.timezone.name}; "
                "give that zone in 'timezone'",
            )
        object.__setattr__(self, "recurrence", recurrence)
        object.__setattr__(self, "text", recurrence.text)
        object.__setattr__(self, "dtstart", recurrence.dtstart)
        mapped = tuple(self._map(rule) for rule in self.local_rules)
        # Single dates, which follow the rules, have no UNTIL.
        untils = [*(rule.until_utc for rule in recurrence.rules), None]
        parts = tuple((CachedPart(part), until) for part, until in zip(mapped, untils, strict=False))
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_mapped", mapped)
        self._bound()

    @property
    def walks(self) -> bool:  # type: ignore[override]
        alone = len(self._parts) == 1 and not self.recurrence.instants
        return not alone or self._moves or bool(self.recurrence.excluded_instants)

    @property
    def clock_rules(self) -> tuple[GapRule, OverlapRule]:
        return resolve_auto(self.dst_gap, self.dst_overlap, kind="rrule", wild=False)

    @property
    def local_rules(self) -> list[LocalRule]:
        dates = self.recurrence.dates
        rules: list[LocalRule] = [*self.recurrence.rules, *([dates] if dates.moments else [])]
        return [self._under_calendars(rule) for rule in rules]

    def _next(self, after: datetime) -> datetime | None:
        while True:
            found = [at for part, until in self._parts if (at := _until(part.next(after), until)) is not None]
            found += [at for at in self.recurrence.instants if at > after]
            first = min(found, default=None)
            if first is None or first not in self.recurrence.excluded_instants:
                return first
            after = first  # at most as often as there are exclusions

    def _previous(self, at: datetime) -> datetime | None:
        while True:
            ends = [(part, at if until is None or at <= until else until) for part, until in self._parts]
            found = [last for part, end in ends if (last := part.previous(end)) is not None]
            found += [instant for instant in self.recurrence.instants if instant <= at]
            last = max(found, default=None)
            if last is None or last not in self.recurrence.excluded_instants:
                return last
            at = last - TICK

    def _count(self, after: datetime, until: datetime) -> int:
        if not self.walks:
            end = self._parts[0][1]
            stop = until if end is None or until <= end else end
            count: int = self._mapped[0].count(after, stop) if stop > after else 0
            return count
        found, at = 0, self._next(after)
        while at is not None and at <= until:
            found, at = found + 1, self._next(at)
        return found

    def note(self, at: datetime) -> str | None:
        notes = [part.note(at) for part in self._mapped if part.previous(at) == at]
        if not notes or None in notes:
            return self._calendar_note(at, self.recurrence.rules)
        return str(notes[0])

    def removed(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]:
        low, high = self._window(after, until)
        found = {item for part in self._mapped for item in part.removed(low, high, limit)}
        for rule in self.recurrence.rules:
            found.update(self._closed(rule, low, high, limit))
        return sorted(found)[:limit]

    def spec(self) -> dict[str, object]:
        spec: dict[str, object] = {"rrule": self.text, **self.shape()}
        if self.dtstart is not None:
            spec["dtstart"] = self.dtstart.isoformat()
        return spec


def _until(at: datetime | None, until: datetime | None) -> datetime | None:
    return at if at is None or until is None or at <= until else None
