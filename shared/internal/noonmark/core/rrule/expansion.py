"""The times of a recurrence rule, found by arithmetic on days and on sets of times of day.

A clock is an int: the seconds of wall-clock time since the day before 1 January of year 1. A search jumps to
the period around a clock; it never walks there from DTSTART. It checks only candidate days, and gives up
after `SEARCH_STEPS` of them in a row without a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import islice
from math import gcd
from typing import Final

from noonmark.core.rrule.days import DayFilter, month_start
from noonmark.core.rrule.parts import Freq, RuleParts

SEARCH_STEPS: Final = 146_097
"""Days in a row without a time after which a search gives up: those of 400 years, after which the calendar
repeats.

A year, month or week counts with all its days; in shorter periods only days count that the rule's day parts
admit (of a daily rule: and its INTERVAL). At the latest a search ends with year 9999.
"""

DAY: Final = 86_400
LAST_CLOCK: Final = (date.max.toordinal() + 1) * DAY - 1
_LAST_DAY: Final = date.max.toordinal()
_UNITS: Final = {Freq.HOURLY: 3600, Freq.MINUTELY: 60, Freq.SECONDLY: 1}
_WEIGHTS: Final = {Freq.YEARLY: 365, Freq.MONTHLY: 30, Freq.WEEKLY: 7}
_DAYS_OF_BITS: Final = tuple(tuple(day for day in range(7) if bits >> day & 1) for bits in range(128))
_CACHED_DAYS: Final = 2048


def clock_of(moment: datetime) -> int:
    """Return the clock of a naive datetime; fractions of a second are cut off."""
    return moment.toordinal() * DAY + moment.hour * 3600 + moment.minute * 60 + moment.second


def moment_of(clock: int) -> datetime:
    """Return the naive datetime of a clock."""
    day, second = divmod(clock, DAY)
    return datetime.fromordinal(day) + timedelta(seconds=second)


class DayTimes:
    """The times of one day in seconds from midnight: every flagged unit (day, hour, ...) with `inner`.

    Flag i stands for unit `start + i * step`. `inner` are ascending seconds within a unit.
    """

    __slots__ = ("_flags", "_inner", "_start", "_step", "_unit", "size")

    def __init__(
        self, inner: Sequence[int], flags: bytes = b"\x01", *, start: int = 0, step: int = 1, unit: int = DAY
    ) -> None:
        self._inner = inner
        self._flags = flags
        self._start = start
        self._step = step
        self._unit = unit
        self.size = flags.count(1) * len(inner)

    def _place(self, second: int) -> tuple[int, int]:
        """Return (flags before the second's unit, the second within it or -1 if the unit has no times)."""
        unit, within = divmod(second, self._unit)
        index, rest = divmod(unit - self._start, self._step)
        if rest:
            return max(0, index + 1), -1
        if 0 <= index < len(self._flags) and self._flags[index]:
            return index, within
        return max(0, index), -1

    def after(self, second: int) -> int | None:
        """Return the first time strictly after the second."""
        index, within = self._place(second)
        if within >= 0:
            if within < self._inner[-1]:
                return second - within + self._inner[bisect_right(self._inner, within)]
            index += 1
        found = self._flags.find(1, index)
        return None if found < 0 else self._begin(found) + self._inner[0]

    def last(self, second: int) -> int | None:
        """Return the last time at or before the second."""
        index, within = self._place(second)
        if within >= self._inner[0]:
            return second - within + self._inner[bisect_right(self._inner, within) - 1]
        found = self._flags.rfind(1, 0, index)
        return None if found < 0 else self._begin(found) + self._inner[-1]

    def upto(self, second: int) -> int:
        """Return how many times lie at or before the second."""
        index, within = self._place(second)
        return self._flags.count(1, 0, index) * len(self._inner) + bisect_right(self._inner, within)

    def _begin(self, index: int) -> int:
        return (self._start + index * self._step) * self._unit

    def __iter__(self) -> Iterator[int]:
        for index, flag in enumerate(self._flags):
            if flag:
                begin = self._begin(index)
                yield from (begin + second for second in self._inner)


class Expansion:
    """The instances of one rule, ignoring DTSTART, COUNT and UNTIL."""

    def __init__(self, parts: RuleParts, dtstart: datetime, search_steps: int = SEARCH_STEPS) -> None:
        self._parts = parts = completed(parts, dtstart)
        self._steps = search_steps
        self._filter = DayFilter(parts)
        self._first_day = dtstart.toordinal()
        self._origin = self._index(self._first_day)
        self._unit = _UNITS.get(parts.freq, DAY)
        self._origin_unit = clock_of(dtstart) // self._unit
        self._inner = _inner_seconds(parts)
        self._flags = _reachable(_flags(parts), parts.interval, self._origin_unit)
        self._by_residue: dict[int, DayTimes | None] = {}
        # A set position counts within a period. Up to a day, that is in `_inner`.
        self._picks_days = bool(parts.bysetpos) and parts.freq < Freq.DAILY
        self._weight = _WEIGHTS.get(parts.freq)

    def next(self, after: int, last: int) -> int | None:
        """Return the first clock in (after, last], or None; also None if the search gives up."""
        for day, times in self._walk(max(1, (after + 1) // DAY), last // DAY):
            found = times.after(after - day * DAY)
            if found is not None:
                clock = day * DAY + found
                return clock if clock <= last else None
        return None

    def previous(self, at: int, first: int) -> int | None:
        """Return the last clock in [first, at], or None; also None if the search gives up."""
        for day, times in self._walk(max(1, first // DAY), at // DAY, backwards=True):
            found = times.last(at - day * DAY)
            if found is not None:
                clock = day * DAY + found
                return clock if clock >= first else None
        return None

    def count(self, after: int, until: int) -> int:
        """Return how many clocks lie in (after, until]: one step per day that has some."""
        return self.nth(LAST_CLOCK, after, until)[0]

    def nth(self, number: int, after: int, until: int) -> tuple[int, int | None]:
        """Return how many clocks lie in (after, until], counted to `number` at most, and the `number`th."""
        total = 0
        low, high = max(1, (after + 1) // DAY), until // DAY
        for day, times in self._walk(low, high):
            before = times.upto(after - day * DAY) if day == low else 0
            here = (times.size if day < high else times.upto(until - day * DAY)) - before
            if total + here >= number:
                return number, day * DAY + next(islice(times, before + number - total - 1, None))
            total += max(0, here)
        return total, None

    def _walk(self, first: int, last: int, *, backwards: bool = False) -> Iterator[tuple[int, DayTimes]]:
        """Yield (day, times) for the days in [first, last] that have times, until the search gives up."""
        steps = 0
        for index in self._periods(first, last, backwards=backwards):
            days = self._days(index)
            steps += self._weight or 1 + len(days)
            pairs = self._picked if self._picks_days else self._timed
            for day, times in pairs(days, first, last, backwards=backwards):
                if times is not None:
                    steps = 0
                    yield day, times
            if steps > self._steps:
                return

    def _periods(self, first: int, last: int, *, backwards: bool) -> range:
        last = min(last, _LAST_DAY)
        if first > last or not self._inner or 1 not in self._flags:
            return range(0)
        step = self._parts.interval if self._parts.freq < Freq.DAILY else 1
        low, high = self._index(first), self._index(last)
        low += (self._origin - low) % step
        high -= (high - self._origin) % step
        return range(high, low - 1, -step) if backwards else range(low, high + 1, step)

    def _index(self, day: int) -> int:
        """Return the number of the period that holds the day: weeks, months, or else calendar years."""
        if self._parts.freq is Freq.WEEKLY:
            return (day - 1 - self._parts.wkst) // 7
        moment = date.fromordinal(day)
        return moment.year * 12 + moment.month - 1 if self._parts.freq is Freq.MONTHLY else moment.year

    def _days(self, index: int) -> list[int]:
        """Return the days of the period that the day-level parts allow, ascending."""
        if self._parts.freq is Freq.WEEKLY:
            return self._week(index * 7 + 1 + self._parts.wkst)
        year, month = divmod(index, 12) if self._parts.freq is Freq.MONTHLY else (index, 0)
        before = date(year, 1, 1).toordinal()
        days = self._filter.year(year).days
        if self._parts.freq is Freq.MONTHLY:
            low = bisect_left(days, month_start(year, month + 1))
            days = days[low : bisect_left(days, month_start(year, month + 2))]
        interval = self._parts.interval
        if self._parts.freq is Freq.DAILY and interval > 1:
            phase = (self._first_day - before) % interval
            if interval > 7:
                bits = self._filter.year(year).bits
                return [before + day for day in range(phase, 366, interval) if bits >> day & 1]
            return [before + day for day in days if (day - phase) % interval == 0]
        return [before + day for day in days]

    def _week(self, start: int) -> list[int]:
        """Return the days of the week that the day-level parts allow; the week may be in two years."""
        year = date.fromordinal(max(1, start)).year
        before = date(year, 1, 1).toordinal()
        ahead, length = start - before, month_start(year, 13)
        bits = self._filter.year(year).bits
        if ahead + 6 >= length and year < date.max.year:
            bits |= self._filter.year(year + 1).bits << length
        bits = bits >> ahead if ahead >= 0 else bits << -ahead
        return [start + day for day in _DAYS_OF_BITS[bits & 127]]

    def _timed(
        self, days: list[int], first: int, last: int, *, backwards: bool
    ) -> Iterator[tuple[int, DayTimes | None]]:
        near = days[bisect_left(days, first) : bisect_right(days, last)]
        if backwards:
            near.reverse()
        return zip(near, map(self._times, near), strict=True)

    def _times(self, day: int) -> DayTimes | None:
        """Return the day's times. In periods under a day they depend on where in it the interval arrives."""
        interval = self._parts.interval if self._unit < DAY else 1
        units = DAY // self._unit
        residue = (self._origin_unit - day * units) % interval
        if residue >= units:
            return None
        if residue in self._by_residue:
            return self._by_residue[residue]
        flags = self._flags[residue::interval]
        found = None
        if self._inner and 1 in flags:
            found = DayTimes(self._inner, flags, start=residue, step=interval, unit=self._unit)
        if len(self._by_residue) >= _CACHED_DAYS:
            self._by_residue.clear()
        self._by_residue[residue] = found
        return found

    def _picked(
        self, days: list[int], first: int, last: int, *, backwards: bool
    ) -> Iterable[tuple[int, DayTimes | None]]:
        """Return the days of a week, month or year with the times that BYSETPOS selects from the period."""
        inner = self._inner
        by_day: dict[int, list[int]] = {}
        for place in sorted(_places(self._parts.bysetpos, len(days) * len(inner))):
            by_day.setdefault(days[place // len(inner)], []).append(inner[place % len(inner)])
        picked = [(day, DayTimes(times)) for day, times in by_day.items() if first <= day <= last]
        return reversed(picked) if backwards else picked


class CountedEnd:
    """Where COUNT ends a rule: counted only as far as needed, and never twice."""

    def __init__(self, expansion: Expansion, number: int, start: int) -> None:
        self._expansion = expansion
        self._number = number
        # A clock, the number of instances up to it, and the last one if it is among them. In one tuple, so
        #         # that threads that share a rule see consistent states.
        self._state: tuple[int, int, int | None] = (start - 1, 0, None)

    def limit(self, clock: int) -> int:
        """Return the clock, or the last instance if that lies before it."""
        reached, number, end = self._state
        if end is None and clock > reached:
            further, end = self._expansion.nth(self._number - number, reached, clock)
            self._state = (clock, number + further, end)
        return clock if end is None else min(clock, end)


def _places(positions: tuple[int, ...], size: int) -> set[int]:
    """Return the 0-based positions that BYSETPOS names in a set of this size."""
    return {place - 1 if place > 0 else size + place for place in positions if abs(place) <= size}


def completed(parts: RuleParts, dtstart: datetime) -> RuleParts:
    """Return the parts, completed from DTSTART (RFC 5545 3.3.10)."""
    freq = parts.freq
    if not (parts.byweekno or parts.byyearday or parts.bymonthday or parts.byday):
        if freq is Freq.YEARLY:
            parts = replace(parts, bymonth=parts.bymonth or (dtstart.month,), bymonthday=(dtstart.day,))
        elif freq is Freq.MONTHLY:
            parts = replace(parts, bymonthday=(dtstart.day,))
        elif freq is Freq.WEEKLY:
            parts = replace(parts, byday=((0, dtstart.weekday()),))
    elif parts.byweekno and not (parts.byyearday or parts.bymonthday or parts.byday):
        parts = replace(parts, byday=((0, dtstart.weekday()),))
    return replace(
        parts,
        byhour=parts.byhour or ((dtstart.hour,) if freq <= Freq.DAILY else ()),
        byminute=parts.byminute or ((dtstart.minute,) if freq <= Freq.HOURLY else ()),
        bysecond=parts.bysecond or ((dtstart.second,) if freq <= Freq.MINUTELY else ()),
    )


def _inner_seconds(parts: RuleParts) -> tuple[int, ...]:
    """Return the seconds within a unit (day, hour, minute or second), after BYSETPOS."""
    hours = parts.byhour if parts.freq <= Freq.DAILY else (0,)
    minutes = parts.byminute if parts.freq <= Freq.HOURLY else (0,)
    seconds = parts.bysecond if parts.freq <= Freq.MINUTELY else (0,)
    inner = tuple(
        hour * 3600 + minute * 60 + second for hour in hours for minute in minutes for second in seconds
    )
    if not parts.bysetpos or parts.freq < Freq.DAILY:
        return inner
    return tuple(inner[place] for place in sorted(_places(parts.bysetpos, len(inner))))


def _flags(parts: RuleParts) -> bytes:
    """Return one byte per unit of a day: 1 where BYHOUR, BYMINUTE and BYSECOND allow the unit."""
    flags = b"\x01"
    for freq, size, admitted in (
        (Freq.SECONDLY, 60, parts.bysecond),
        (Freq.MINUTELY, 60, parts.byminute),
        (Freq.HOURLY, 24, parts.byhour),
    ):
        if parts.freq >= freq:
            empty = bytes(len(flags))
            flags = b"".join(flags if not admitted or unit in admitted else empty for unit in range(size))
    return flags


def _reachable(flags: bytes, interval: int, origin: int) -> bytes:
    """Return the flags without the units that the interval never reaches on any day."""
    step = gcd(interval, len(flags))
    kept = bytearray(len(flags))
    kept[origin % step :: step] = flags[origin % step :: step]
    return bytes(kept)
