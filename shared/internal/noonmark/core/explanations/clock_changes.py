"""What changes of the clocks do to a schedule on the wall clock, in plain English."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from noonmark.core.explanations.english import day, joined
from noonmark.core.schedules.wall_clock import Cron, WallClock
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.zones import MAX_AT, Segment

_MOST: Final = 4
"""The most changes shown for one schedule; Casablanca has two in a year, and so do most zones."""
_NAMED: Final = 3
_TICK: Final = timedelta(microseconds=1)
_ZERO: Final = timedelta(0)

_GAPS: Final = {
    DstGap.RUN_AFTER: "a time that does not exist runs right after the gap",
    DstGap.SKIP: "times that do not exist are skipped",
    DstGap.SHIFT: "a time that does not exist runs later by the length of the gap",
}
_OVERLAPS: Final = {
    DstOverlap.FIRST: "a time that occurs twice runs the first time",
    DstOverlap.LAST: "a time that occurs twice runs the second time",
    DstOverlap.BOTH: "a time that occurs twice runs both times",
}
_PASSES: Final = {
    DstOverlap.FIRST: "the first time only",
    DstOverlap.LAST: "the second time only",
    DstOverlap.BOTH: "both times",
}


class ClockWords(NamedTuple):
    """What changes of the clocks do to a schedule.

    Attributes:
        changes: a sentence for each change that affects it.
        rule: what it does with such times; None if no change affects it.
    """

    changes: list[str]
    rule: str | None


def clock_words(schedule: WallClock, after: datetime, until: datetime) -> ClockWords:
    """Say what the changes of the clocks in (after, until] do to a schedule: which, and by which rule."""
    zone = schedule.zone
    if zone is None:
        return ClockWords([], None)
    low = after if schedule.start is None else max(after, schedule.start)
    high = until if schedule.end is None else min(until, schedule.end)
    gap_rule, overlap_rule = schedule.clock_rules
    gaps: list[str] = []
    changes: list[str] = []
    segment = zone.segment(low)
    while segment.end <= high and segment.end < MAX_AT and len(changes) < _MOST:
        upcoming = zone.segment(segment.end)
        size = upcoming.offset - segment.offset
        if size > _ZERO:
            gaps += (found := [*_gap_words(schedule, segment, upcoming, gap_rule.for_size(size))])
            changes += found
        elif size < _ZERO:
            changes += _overlap_words(schedule, segment, upcoming, overlap_rule.for_size(-size))
        segment = upcoming
    return ClockWords(changes, _rule(schedule, gap=bool(gaps), overlap=len(changes) > len(gaps)))


def _rule(schedule: WallClock, *, gap: bool, overlap: bool) -> str | None:
    """Say what a schedule does when the clocks go forward, back, or both."""
    if not (gap or overlap):
        return None
    gap_rule, overlap_rule = schedule.clock_rules
    automatic = schedule.dst_gap is DstGap.AUTO and schedule.dst_overlap is DstOverlap.AUTO
    texts = []
    if gap:
        limit = " if that is no longer than 3 hours" if gap_rule.limit is not None else ""
        texts.append(f"{_GAPS[gap_rule.how]}{limit}")
    if overlap:
        texts.append(_OVERLAPS[overlap_rule.which])
    when = "change" if gap and overlap else "go forward" if gap else "go back"
    return f"When the clocks {when}, {', and '.join(texts)}{' (auto)' if automatic else ''}."


def _is_rhythm(schedule: WallClock) -> bool:
    """Whether it runs around the clock, so that no single time matters."""
    return isinstance(schedule, Cron) and schedule.rule.hours.bit_count() == 24


def _gap_words(schedule: WallClock, segment: Segment, upcoming: Segment, how: DstGap) -> Iterator[str]:
    low, high = segment.local_end, upcoming.local_start
    times, more = _times(schedule, low, high)
    if not times:
        return
    on = day(times[0])
    if how is DstGap.SKIP and _is_rhythm(schedule):
        yield (
            f"On {on} the clocks go forward from {low:%H:%M} to {high:%H:%M}: the time between is skipped,"
            " and the rhythm continues."
        )
        return
    several = bool(more) or len(times) > 1
    missing = f"On {on} {_clocks(times, more)} {'do' if several else 'does'} not exist"
    if how is DstGap.SKIP:
        yield f"{missing}: no run."
    elif how is DstGap.SHIFT:
        moved = [at + (high - low) for at in times]
        yield f"{missing}: run{'' if several else 's'} at {_clocks(moved, more)}."
    else:
        where = f"{high:%H:%M}" if high.date() == times[0].date() else f"{high:%H:%M} on {day(high)}"
        yield f"{missing}: {'one run' if several else 'runs'} at {where}{' instead' if several else ''}."


def _overlap_words(
    schedule: WallClock, segment: Segment, upcoming: Segment, which: DstOverlap
) -> Iterator[str]:
    low, high = upcoming.local_start, segment.local_end
    times, more = _times(schedule, low, high)
    if not times:
        return
    on = day(times[0])
    if which is DstOverlap.BOTH and _is_rhythm(schedule):
        yield (
            f"On {on} the clocks go back from {high:%H:%M} to {low:%H:%M}: the rhythm continues through"
            " both passes."
        )
        return
    several = bool(more) or len(times) > 1
    yield (
        f"On {on} {_clocks(times, more)} occur{'' if several else 's'} twice:"
        f" run{'' if several else 's'} {_PASSES[which]}."
    )


def _times(schedule: WallClock, low: datetime, high: datetime) -> tuple[list[datetime], int]:
    """Return the schedule's local times in [low, high): the first few, and the number of the others."""
    times: list[datetime] = []
    more = 0
    for rule in schedule.local_rules:
        at = rule.next(low - _TICK)
        while at is not None and at < high and len(times) < _NAMED:
            times.append(at)
            at = rule.next(at)
        if at is not None and at < high:
            more += rule.count(at - _TICK, high - _TICK)
    return sorted(set(times)), more


def _clocks(times: list[datetime], more: int) -> str:
    words = [f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}" for at in times]
    return joined([*words, f"{more} more"] if more else words)
