"""RFC 5545 recurrence sets in local time, before any time zone.

A set has the times of its rules and RDATEs, without its EXDATEs. Steps under a day are in local time. DTSTART
gives the phase and completes the rule; it is an instance only if the rule has it. COUNT counts from DTSTART
what BYSETPOS leaves, and EXDATEs are removed after that.

What is written in UTC (UNTIL, RDATE, EXDATE with a Z) cannot be applied in local time: it is passed on, as
`until_utc`, `instants` and `excluded_instants`, to the code that maps the set to instants.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Final

from noonmark.core.rrule.excluded_days import read_excluded_days, times_on
from noonmark.core.rrule.expansion import (
    DAY,
    LAST_CLOCK,
    SEARCH_STEPS,
    CountedEnd,
    Expansion,
    clock_of,
    moment_of,
)
from noonmark.core.rrule.parts import RuleParts, read_rule
from noonmark.core.rrule.text import (
    Piece,
    Property,
    RRuleError,
    format_date_time,
    quoted,
    read_date_time,
    read_properties,
)

__all__ = ["MAX_RULES", "DateList", "RRuleError", "Recurrence", "RecurrenceSet", "parse_rrule"]

MAX_RULES: Final = 20
"""The most RRULE lines in one set."""


@dataclass(frozen=True)
class Recurrence:
    """One RRULE as a `LocalRule`: naive datetimes of whole seconds.

    Attributes:
        excluded: EXDATEs on the wall clock, ascending; those that are not instances change nothing.
        search_steps: the search bound, see `noonmark.core.rrule.expansion.SEARCH_STEPS`.
    """

    parts: RuleParts
    dtstart: datetime
    excluded: tuple[datetime, ...] = ()
    search_steps: int = SEARCH_STEPS

    @property
    def until_utc(self) -> datetime | None:
        """The last instant (aware UTC, included) if UNTIL is written in UTC.

        The rule itself ends a day later in local time, so that no zone lacks instances.
        """
        return self.parts.until_utc

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after `after`; None if the rule has none within its search bound."""
        clock = clock_of(after)
        while (found := self._next(clock)) is not None and found in self._excluded:
            clock = found
        return None if found is None else moment_of(found)

    def previous(self, at: datetime) -> datetime | None:
        """Return the last time at or before `at`; None if the rule has none within its search bound."""
        clock = clock_of(at)
        while (found := self._previous(clock)) is not None and found in self._excluded:
            clock = found - 1
        return None if found is None else moment_of(found)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many times lie in (after, until], in one step per day that has any."""
        low, high = max(clock_of(after), self._start - 1), self._limit(clock_of(until))
        if high <= low:
            return 0
        gone = sum(1 for clock in self._excluded if low < clock <= high)
        return self._expansion.count(low, high) - gone

    def names(self, moment: datetime) -> bool:
        """Return whether the rule, without its EXDATEs, has the time as an instance."""
        return moment.microsecond == 0 and self._is_instance(clock_of(moment))

    @cached_property
    def _expansion(self) -> Expansion:
        return Expansion(self.parts, self.dtstart, self.search_steps)

    @cached_property
    def _start(self) -> int:
        return clock_of(self.dtstart)

    @cached_property
    def _counted_end(self) -> CountedEnd | None:
        return CountedEnd(self._expansion, self.parts.count, self._start) if self.parts.count else None

    def _limit(self, clock: int) -> int:
        """Return the clock, or the end of the rule by UNTIL or COUNT if that lies before it."""
        clock = min(clock, self._until)
        return clock if self._counted_end is None else self._counted_end.limit(clock)

    @cached_property
    def _until(self) -> int:
        if self.parts.until is not None:
            return clock_of(self.parts.until)
        if self.parts.until_utc is not None:
            return min(LAST_CLOCK, clock_of(self.parts.until_utc) + DAY)
        return LAST_CLOCK

    @cached_property
    def _excluded(self) -> frozenset[int]:
        return frozenset(clock for clock in map(clock_of, self.excluded) if self._is_instance(clock))

    def _is_instance(self, clock: int) -> bool:
        named = clock >= self._start and self._expansion.next(clock - 1, min(clock, self._until)) == clock
        return named and self._limit(clock) == clock

    def fires(self) -> bool:
        """Return whether the rule, without its EXDATEs, has any instance."""
        return self._expansion.next(self._start - 1, self._until) is not None

    def _next(self, clock: int) -> int | None:
        found = self._expansion.next(max(clock, self._start - 1), self._until)
        return found if found is None or self._limit(found) == found else None

    def _previous(self, clock: int) -> int | None:
        return self._expansion.previous(self._limit(clock), self._start)


@dataclass(frozen=True, slots=True)
class DateList:
    """Single dates as a `LocalRule`: naive datetimes, ascending, without repeats."""

    moments: tuple[datetime, ...] = ()

    def next(self, after: datetime) -> datetime | None:
        """Return the first date strictly after `after`, or None."""
        place = bisect_right(self.moments, after)
        return self.moments[place] if place < len(self.moments) else None

    def previous(self, at: datetime) -> datetime | None:
        """Return the last date at or before `at`, or None."""
        place = bisect_right(self.moments, at)
        return self.moments[place - 1] if place else None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many dates lie in (after, until]."""
        return max(0, bisect_right(self.moments, until) - bisect_right(self.moments, after))


@dataclass(frozen=True, slots=True)
class RecurrenceSet:
    """Rules and dates. Equal sets have the same text and DTSTART.

    Attributes:
        text: the properties in normal form, one a line; `parse_rrule` reads it to an equal set.
        dtstart: naive, whole seconds.
        rules: one LocalRule per RRULE, without the local EXDATEs; to be cut at its `until_utc`.
        dates: RDATEs on the wall clock, without the EXDATEs.
        instants: RDATEs in UTC, aware, ascending.
        excluded_instants: EXDATEs in UTC, aware: removed from everything above.
        tzids: every zone that a property names ("UTC" for a DTSTART with Z): the schedule's own, or an error.
        warnings: sentences about what is allowed but perhaps not intended.
    """

    text: str
    dtstart: datetime
    rules: tuple[Recurrence, ...] = field(compare=False)
    dates: DateList = field(compare=False)
    instants: tuple[datetime, ...] = field(compare=False)
    excluded_instants: frozenset[datetime] = field(compare=False)
    tzids: frozenset[str] = field(compare=False)
    warnings: tuple[str, ...] = field(compare=False)


@lru_cache(maxsize=2048)
def parse_rrule(text: str, *, dtstart: datetime | None = None) -> RecurrenceSet:
    """Read RRULE, RDATE, EXDATE and DTSTART lines; one line may be a bare `FREQ=...`.

    Args:
        text: the lines, separated by line ends (or a written backslash-n); folded lines are joined.
        dtstart: where the recurrence starts in local time (naive, whole seconds). Instead, or also with
                the same value, the text may have a DTSTART line.

    Raises:
        RRuleError: a line cannot be read or has no meaning, or the set never fires.
    """
    properties = read_properties(text)
    start, tzids = _read_start(properties, dtstart)
    tzids |= {each.tzid for each in properties if each.tzid is not None}
    dates, excluded = _read_dates(properties, "RDATE"), _read_dates(properties, "EXDATE")
    days = read_excluded_days(properties)
    if days:
        excluded |= times_on(days, _read_rules(properties, start, ()), dates)
    gone = tuple(sorted(moment for moment in excluded if moment.tzinfo is None))
    rules = _read_rules(properties, start, gone)
    if not rules and not dates:
        raise RRuleError("rrule text names no times: it has neither an RRULE nor an RDATE")
    local = {moment for moment in dates if moment.tzinfo is None}
    found = RecurrenceSet(
        text="\n".join(_normal(each) for each in properties),
        dtstart=start,
        rules=rules,
        dates=DateList(tuple(sorted(local.difference(gone)))),
        instants=tuple(sorted(dates - local)),
        excluded_instants=frozenset(moment for moment in excluded if moment.tzinfo is not None),
        tzids=tzids,
        warnings=tuple(_warnings(start, rules, local, gone)),
    )
    if gone and not (found.dates.moments or found.instants or any(rule.next(datetime.min) for rule in rules)):  # noqa: DTZ901
        at = next(each.at for each in properties if each.name == "EXDATE")
        raise RRuleError(
            f"rrule never fires: the EXDATEs (the first at character {at}) exclude all of its times",
            at,
            "EXDATE",
        )
    return found


def _normal(line: Property) -> str:
    value = line.value
    if line.name == "RRULE":
        parts = (part.text.partition("=") for part in value.split(";"))
        text = ";".join(f"{name.strip()}={''.join(rest.split())}" for name, _, rest in parts)
    else:
        text = ",".join(part.text for part in value.split(","))
    return f"{line.head}:{text.upper()}"


def _read_start(properties: list[Property], given: datetime | None) -> tuple[datetime, frozenset[str]]:
    """Return DTSTART (naive) and the zones that it names."""
    if given is not None and (given.tzinfo is not None or given.microsecond):
        raise ValueError("dtstart must be a naive datetime of whole seconds")
    lines = [each for each in properties if each.name == "DTSTART"]
    if len(lines) > 1:
        raise RRuleError(
            f"rrule text: a second DTSTART at character {lines[1].at}; only one is allowed",
            lines[1].at,
            "DTSTART",
        )
    if not lines:
        if given is None:
            raise RRuleError(
                "rrule text has no DTSTART, and no dtstart is given: it says where the recurrence starts "
                "and fills in what the rule leaves out; write a line such as DTSTART:20260105T090000",
                None,
                "DTSTART",
            )
        return given, frozenset()
    value = lines[0].value
    moment = _read_moment(lines[0], value)
    start = moment.replace(tzinfo=None)
    if given is not None and start != given:
        raise RRuleError(
            f"rrule DTSTART: {quoted(value.text)} at character {value.at} differs from the field "
            f"dtstart, {given.isoformat()}; give only one of the two",
            value.at,
            "DTSTART",
        )
    return start, frozenset({"UTC"} if moment.tzinfo is not None else ())


def _read_moment(line: Property, piece: Piece) -> datetime:
    moment = read_date_time(piece, line.name)
    if moment.tzinfo is not None and line.tzid is not None:
        raise RRuleError(
            f"rrule {line.name}: {quoted(piece.text)} at character {piece.at} is in UTC, but the line names "
            f"the zone {quoted(line.tzid)}; leave out the Z or the TZID",
            piece.at,
            line.name,
        )
    return moment


def _read_dates(properties: list[Property], name: str) -> set[datetime]:
    return {
        _read_moment(line, piece)
        for line in properties
        if line.name == name and not line.whole_days
        for piece in line.value.split(",")
    }


def _read_rules(
    properties: list[Property], dtstart: datetime, excluded: tuple[datetime, ...]
) -> tuple[Recurrence, ...]:
    lines = [each for each in properties if each.name == "RRULE"]
    if len(lines) > MAX_RULES:
        at = lines[MAX_RULES].at
        raise RRuleError(
            f"rrule text: one RRULE too many at character {at}; at most {MAX_RULES} are allowed", at, "RRULE"
        )
    return tuple(_read_recurrence(line, dtstart, excluded) for line in lines)


def _read_recurrence(line: Property, dtstart: datetime, excluded: tuple[datetime, ...]) -> Recurrence:
    parts = read_rule(line.value)
    whole = Recurrence(parts, dtstart)
    if not whole.fires():
        why, part = _why_never(whole)
        raise RRuleError(f"rrule at character {line.value.at} never fires: {why}", line.value.at, part)
    return replace(whole, excluded=excluded) if excluded else whole


def _why_never(rule: Recurrence) -> tuple[str, str]:
    """Return the reason and the part that causes it: the first without which the rule would fire."""
    parts, start = rule.parts, rule.dtstart.isoformat()
    endless = replace(parts, until=None, until_utc=None)
    if endless != parts and replace(rule, parts=endless).fires():
        return f"UNTIL is before its first time from DTSTART {start}", "UNTIL"
    if parts.bysetpos and replace(rule, parts=replace(endless, bysetpos=())).fires():
        positions = ",".join(map(str, parts.bysetpos))
        return f"BYSETPOS={positions} asks for more times than one period of the rule has", "BYSETPOS"
    if parts.interval > 1 and replace(rule, parts=replace(endless, interval=1, bysetpos=())).fires():
        return (
            f"steps of INTERVAL={parts.interval} from DTSTART {start} never reach a time that its BY parts"
            " allow"
        ), "INTERVAL"
    part = next(
        (
            name
            for name in ("byweekno", "byyearday", "bymonthday", "byday", "bymonth")
            if getattr(parts, name)
        ),
        None,
    )
    if part is None:
        return f"no time follows DTSTART {start}", "DTSTART"
    return "no day of any year matches all of its BY parts", part.upper()


def _warnings(
    dtstart: datetime, rules: tuple[Recurrence, ...], dates: set[datetime], excluded: tuple[datetime, ...]
) -> Iterable[str]:
    if dtstart not in dates and not any(rule.names(dtstart) for rule in rules):
        yield (
            f"DTSTART {dtstart.isoformat()} is not one of the rule's times, so nothing runs then: "
            "it only says where the recurrence starts."
        )
    idle = [
        moment for moment in excluded if moment not in dates and not any(rule.names(moment) for rule in rules)
    ]
    if idle:
        more = f" and {len(idle) - 1} more EXDATEs exclude" if len(idle) > 1 else " excludes"
        yield f"EXDATE {format_date_time(idle[0])}{more} nothing: no rule or RDATE has that time."
