"""A rule in the local time of a zone, as instants, also where local times are missing or occur twice.

Within a segment of constant offset, local time and UTC run in step, so a rule is asked once per segment and
not once per instant. What happens at a segment's ends is decided by a `GapRule` and an `OverlapRule`.

Local times are read change by change. That is exact as long as no segment is shorter than the changes at its
ends; in zone data the shortest segment lasts 7 days and the longest change 24 hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, Literal

from noonmark.core.calendars.local_rule import LocalRule
from noonmark.core.instants import as_utc
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.zones import MAX_AT, MIN_AT, REACH, Segment, Zone, plus

CLOCK_CHANGE: Final = timedelta(hours=3)
"""The longest change that `auto` makes up for, as cronie does; a longer one is a correction of the clock."""

_ZERO: Final = timedelta(0)
_TICK: Final = timedelta(microseconds=1)
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class GapRule:
    """What happens to a local time in a gap: `how` (not `auto`), or `skip` in a gap longer than `limit`."""

    how: DstGap
    limit: timedelta | None = None

    def for_size(self, size: timedelta) -> DstGap:
        """Return the rule for a gap of this length."""
        return self.how if self.limit is None or size <= self.limit else DstGap.SKIP


@dataclass(frozen=True, slots=True)
class OverlapRule:
    """In which pass a repeated local time fires: `which` (not `auto`), or `both` if longer than `limit`."""

    which: DstOverlap
    limit: timedelta | None = None

    def for_size(self, size: timedelta) -> DstOverlap:
        """Return the rule for an overlap of this length."""
        return self.which if self.limit is None or size <= self.limit else DstOverlap.BOTH


def resolve_auto(
    gap: DstGap, overlap: DstOverlap, *, kind: Literal["cron", "rrule"], wild: bool
) -> tuple[GapRule, OverlapRule]:
    """Return the rules that hold, with `auto` replaced by what it stands for.

    `auto` is the cronie rule for cron: if the minute or the hour starts with `*` (`wild`), nothing is made
    up and both passes fire; else missing times run after a gap of up to 3 h and the first pass fires. For
    rrule it is RFC 5545: missing times are read with the offset before the gap, and the first pass fires.
    """
    gap_rule, overlap_rule = GapRule(gap), OverlapRule(overlap)
    if gap is DstGap.AUTO:
        if kind == "rrule":
            gap_rule = GapRule(DstGap.SHIFT)
        else:
            gap_rule = GapRule(DstGap.SKIP) if wild else GapRule(DstGap.RUN_AFTER, CLOCK_CHANGE)
    if overlap is DstOverlap.AUTO:
        if kind == "rrule":
            overlap_rule = OverlapRule(DstOverlap.FIRST)
        else:
            overlap_rule = (
                OverlapRule(DstOverlap.BOTH) if wild else OverlapRule(DstOverlap.FIRST, CLOCK_CHANGE)
            )
    return gap_rule, overlap_rule


class _Ahead:
    """`rule.next`, called again only if the last result does not answer the query."""

    __slots__ = ("asked", "found", "rule")

    def __init__(self, rule: LocalRule) -> None:
        self.rule = rule
        self.asked: datetime | None = None
        self.found: datetime | None = None

    def __call__(self, local: datetime) -> datetime | None:
        if self.asked is None or local < self.asked or (self.found is not None and local >= self.found):
            self.asked, self.found = local, self.rule.next(local)
        return self.found


class _Behind:
    """`rule.previous`, called again only if the last result does not answer the query."""

    __slots__ = ("asked", "found", "rule")

    def __init__(self, rule: LocalRule) -> None:
        self.rule = rule
        self.asked: datetime | None = None
        self.found: datetime | None = None

    def __call__(self, local: datetime) -> datetime | None:
        if self.asked is None or local > self.asked or (self.found is not None and local < self.found):
            self.asked, self.found = local, self.rule.previous(local)
        return self.found


@dataclass(frozen=True, slots=True)
class Zoned:
    """The instants, aware and in UTC, at which a rule on the wall clock of a zone fires.

    Local times that meet on one instant are one fire.
    """

    rule: LocalRule
    zone: Zone
    gap: GapRule
    overlap: OverlapRule

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire strictly after `after`; None if the rule has none within its search bound."""
        after = as_utc(after)
        ahead = _Ahead(self.rule)
        segment: Segment | None = self.zone.segment(after)
        while segment is not None:
            found = self._first_in(segment, after, ahead)
            if found is not None:
                return found
            segment = self._segment_after(segment, ahead)
        return None

    def previous(self, at: datetime) -> datetime | None:
        """Return the last fire at or before `at`; None if the rule has none within its search bound."""
        at = as_utc(at)
        behind = _Behind(self.rule)
        segment: Segment | None = self.zone.segment(at)
        while segment is not None:
            found = self._last_in(segment, at, behind)
            if found is not None and found <= at:  # at the calendar's first hours `at` may have no local time
                return found
            segment = self._segment_before(segment, behind)
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many fires lie in (after, until]; the rule counts, once per segment."""
        after, until = as_utc(after), as_utc(until)
        if until <= after:
            return 0
        segment = self.zone.segment(after)
        total = self._count_in(segment, after, until)
        while segment.end <= until and segment.end < MAX_AT:
            segment = self.zone.segment(segment.end)
            total += self._count_in(segment, after, until)
        return total

    def note(self, at: datetime) -> str | None:
        """Return how a clock change affected the fire at `at`; None: not at all, or no fire."""
        at = as_utc(at)
        segment = self.zone.segment(at)
        local = plus(at.replace(tzinfo=None), segment.offset)
        regular = self._regular_at(segment, local)
        missing, more = self._missing_at(segment, at)
        if missing:
            named = _named(missing, more, local)
            plural = more or len(missing) > 1
            if regular:
                return f"also runs for {named}, which {'do' if plural else 'does'} not exist"
            moved = "shifted" if self._gap_of(segment)[0] is DstGap.SHIFT else "moved"
            return f"{moved}: {named} {'do' if plural else 'does'} not exist"
        return self._pass_note(segment, local) if regular else None

    def removed(self, after: datetime, until: datetime, limit: int) -> list[tuple[datetime, str]]:
        """Return the first `limit` naive local times that a gap in (after, until] removes, each with a note.

        The pass of an overlap that does not fire is not among them.
        """
        after, until = as_utc(after), as_utc(until)
        found: list[tuple[datetime, str]] = []
        ahead = _Ahead(self.rule)
        segment: Segment | None = self.zone.segment(after)
        while segment is not None and segment.start <= until and len(found) < limit:
            how, low, high = self._gap_of(segment)
            if how is DstGap.SKIP and low < high and after < segment.start:
                found += (
                    (local, f"removed: {_clock(local, local)} does not exist")
                    for local in islice(self._times(low, high), limit - len(found))
                )
            segment = self._segment_after(segment, ahead)
        return found

    def _gap_of(self, segment: Segment) -> tuple[DstGap, datetime, datetime]:
        """Return the rule for the gap at the segment's start and its local times [low, high)."""
        low = high = segment.local_start
        size = segment.offset - segment.before
        if size <= _ZERO:
            return DstGap.SKIP, low, high
        how = self.gap.for_size(size)
        if how is DstGap.SHIFT:
            # Keeps instants in order even with absurd zone data: see the docstring of this module.
            high = min(high, segment.local_end - size)
        return how, low - size, high

    def _span(self, segment: Segment) -> tuple[datetime, datetime]:
        """Return [low, high): the local times that fire when read with the segment's own offset."""
        low, high = segment.local_start, segment.local_end
        second_pass = segment.before - segment.offset
        if second_pass > _ZERO and self.overlap.for_size(second_pass) is DstOverlap.FIRST:
            low += second_pass
        first_pass = segment.offset - segment.after
        if first_pass > _ZERO and self.overlap.for_size(first_pass) is DstOverlap.LAST:
            high -= first_pass
        return low, high

    def _first_in(self, segment: Segment, after: datetime, ahead: _Ahead) -> datetime | None:
        """Return the segment's first fire after `after`."""
        clock = after.replace(tzinfo=None)
        shifted = None
        if segment.before < segment.offset:
            how, gap_low, gap_high = self._gap_of(segment)
            if how is DstGap.RUN_AFTER and after < segment.start:
                missing = ahead(gap_low - _TICK)
                if missing is not None and missing < gap_high:
                    return segment.start
            elif how is DstGap.SHIFT:
                missing = ahead(max(gap_low - _TICK, plus(clock, segment.before)))
                if missing is not None and missing < gap_high:
                    shifted = (missing - segment.before).replace(tzinfo=UTC)
        low, high = self._span(segment)
        local = ahead(max(plus(low, -_TICK), plus(clock, segment.offset)))
        if local is None or local >= high:
            return shifted
        regular = (local - segment.offset).replace(tzinfo=UTC)
        return regular if shifted is None else min(shifted, regular)

    def _last_in(self, segment: Segment, at: datetime, behind: _Behind) -> datetime | None:
        """Return the segment's last fire at or before `at`."""
        clock = at.replace(tzinfo=None)
        low, high = self._span(segment)
        found = None
        local = behind(min(plus(high, -_TICK), plus(clock, segment.offset)))
        if local is not None and local >= low:
            found = (local - segment.offset).replace(tzinfo=UTC)
        if segment.before >= segment.offset:
            return found
        how, gap_low, gap_high = self._gap_of(segment)
        if how is DstGap.SHIFT:
            missing = behind(min(gap_high - _TICK, plus(clock, segment.before)))
            if missing is not None and missing >= gap_low:
                shifted = (missing - segment.before).replace(tzinfo=UTC)
                found = shifted if found is None else max(found, shifted)
        elif how is DstGap.RUN_AFTER and found is None:
            missing = behind(gap_high - _TICK)
            if missing is not None and missing >= gap_low:
                found = segment.start
        return found

    def _count_in(self, segment: Segment, after: datetime, until: datetime) -> int:
        """Return how many of the segment's fires lie in (after, until]."""
        newer, newest = after.replace(tzinfo=None), until.replace(tzinfo=None)
        low, high = self._span(segment)
        found = self._count_between(
            max(plus(low, -_TICK), plus(newer, segment.offset)),
            min(plus(high, -_TICK), plus(newest, segment.offset)),
        )
        if segment.before >= segment.offset:
            return found
        how, gap_low, gap_high = self._gap_of(segment)
        if how is DstGap.RUN_AFTER and after < segment.start <= until:
            made_up = self.rule.count(gap_low - _TICK, gap_high - _TICK) > 0
            return found + (made_up and not self._regular_at(segment, segment.local_start))
        if how is DstGap.SHIFT:
            size = segment.offset - segment.before
            start = max(gap_low, plus(newer, segment.before) + _TICK)
            end = min(gap_high, plus(newest, segment.before) + _TICK)
            # Two local times may meet on one instant: the regular one has been counted.
            found += sum(
                1 for local in self._times(start, end) if not self._regular_at(segment, local + size)
            )
        return found

    def _count_between(self, after: datetime, until: datetime) -> int:
        return self.rule.count(after, until) if after < until else 0

    def _segment_after(self, segment: Segment, ahead: _Ahead) -> Segment | None:
        """Return the next segment that may hold a fire; None if there is none."""
        if segment.end == MAX_AT:
            return None
        # What follows begins here on the wall clock, a gap's missing times included.
        lowest = segment.local_end + min(segment.after - segment.offset, _ZERO)
        upcoming = ahead(lowest - _TICK)
        if upcoming is None:
            return None
        return self.zone.segment(max(segment.end, plus(upcoming.replace(tzinfo=UTC), -REACH)))

    def _segment_before(self, segment: Segment, behind: _Behind) -> Segment | None:
        """Return the last segment before this one that may hold a fire; None if there is none."""
        if segment.start == MIN_AT:
            return None
        # What precedes ends here on the wall clock.
        highest = segment.local_start + (segment.before - segment.offset)
        elapsed = behind(highest - _TICK)
        if elapsed is None:
            return None
        return self.zone.segment(min(segment.start - _TICK, plus(elapsed.replace(tzinfo=UTC), REACH)))

    def _times(self, low: datetime, high: datetime) -> Iterator[datetime]:
        """Yield the rule's times in [low, high)."""
        local = self.rule.next(plus(low, -_TICK))
        while local is not None and local < high:
            yield local
            local = self.rule.next(local)

    def _has(self, local: datetime) -> bool:
        return self.rule.previous(local) == local

    def _regular_at(self, segment: Segment, local: datetime) -> bool:
        low, high = self._span(segment)
        return low <= local < high and self._has(local)

    def _missing_at(self, segment: Segment, at: datetime) -> tuple[list[datetime], int]:
        """Return the local times of the segment's gap that fire at `at`: the first few, and how many more."""
        how, low, high = self._gap_of(segment)
        if how is DstGap.SHIFT:
            local = plus(at.replace(tzinfo=None), segment.before)
            return ([local] if low <= local < high and self._has(local) else []), 0
        if how is DstGap.RUN_AFTER and at == segment.start:
            times = list(islice(self._times(low, high), _NAMED))
            more = self._count_between(times[-1], high - _TICK) if times else 0
            return times, more
        return [], 0

    def _pass_note(self, segment: Segment, local: datetime) -> str | None:
        """Return the note on a regular fire whose local time occurs twice."""
        clock = _clock(local, local)
        back = segment.before - segment.offset
        if back > _ZERO and local < segment.local_start + back:
            last = self.overlap.for_size(back) is DstOverlap.LAST
            return f"last of two {clock}" if last else f"second pass: {clock} occurs twice"
        back = segment.offset - segment.after
        if back > _ZERO and local >= segment.local_end - back:
            return f"first of two {clock}" if self.overlap.for_size(back) is DstOverlap.FIRST else None
        return None


def _clock(local: datetime, beside: datetime) -> str:
    """Return HH:MM, with seconds if there are some and with the date if it is not that of `beside`."""
    date = "" if local.date() == beside.date() else f"{local:%Y-%m-%d} "
    return date + (f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}")


def _named(times: list[datetime], more: int, beside: datetime) -> str:
    """Return the times as a list in words: "02:15 and 02:45", "02:00, 02:01, 02:02 and 57 more"."""
    words = [_clock(local, beside) for local in times] + ([f"{more} more"] if more else [])
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
