"""Moves a schedule to other zone data: no local time fires twice, none is lost.

What is known of a job is the last instant that has its verdict, and how far the wall clock was from UTC
then. Together they name a local time, and a local time means the same on any zone data: up to there all is
done. The zone data of that time are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from noonmark.core.schedules.schedule import TICK, AnyOf, Cron, RRule, Schedule, WallClock
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.zones import MAX_AT, REACH, Segment, Zone, plus


def next_open(
    schedule: Schedule, at: datetime, offset: timedelta, *, planned: datetime | None = None
) -> datetime | None:
    """Return the first instant whose local time has no verdict yet; None if there is none.

    It may be before `at`: if the clock is ahead of what the old zone data said, some local times have passed
        without a run, and are late now.

    Schedules that go by elapsed time (intervals, and cron with `*` in the minute or the hour) continue
        after `at` whatever the clock shows: as on the night of a change, they repeat an hour that comes
        twice.

    Args:
        schedule: on the current zone data.
        at: the last instant with a verdict: what was due up to it, on the zone data of that time, is done.
        offset: of the wall clock from UTC at `at`, on the zone data of that time.
        planned: the instant that was found after `at` on other zone data, if one was.
    """
    zone = schedule.zone
    if zone is None:
        return schedule.next(at)
    if zone.offset(at) == offset:
        found = schedule.next(at)
        if planned is None or found == planned:
            return found
    members = schedule.members if isinstance(schedule, AnyOf) else (schedule,)
    firsts = (_next_of(member, zone, at, offset, planned) for member in members)
    return _within(schedule, min((first for first in firsts if first is not None), default=None))


def _next_of(
    schedule: Schedule, zone: Zone, at: datetime, offset: timedelta, planned: datetime | None
) -> datetime | None:
    if not isinstance(schedule, WallClock) or schedule.zone is None or _by_elapsed_time(schedule):
        return schedule.next(at)
    local = plus(at.replace(tzinfo=None), offset)
    if zone.offset(at) == offset:
        return _overtaken(schedule, zone, at, offset, planned) or _next_in_step(schedule, zone, at, local)
    # From `at` if it is earlier: instants that a rule names in UTC do not move.
    found = schedule.next(min(at, _before_any_after(zone, local)))
    while found is not None and _is_done(schedule, zone, found, at, local):
        found = schedule.next(found)
    return found


def _is_done(schedule: WallClock, zone: Zone, found: datetime, at: datetime, local: datetime) -> bool:
    if found == at:
        return True  # It has its run; if its local time is another one now, that one shares the run.
    if isinstance(schedule, RRule) and found in schedule.recurrence.instants:
        return found < at  # written in UTC
    return _latest_local(schedule, zone, found) <= local


def _by_elapsed_time(schedule: WallClock) -> bool:
    return isinstance(schedule, Cron) and schedule.rule.wild and schedule.dst_overlap is DstOverlap.AUTO


def _next_in_step(schedule: WallClock, zone: Zone, at: datetime, local: datetime) -> datetime | None:
    """Return the next instant where the clock showed at `at` what it shows now.

    Only a new overlap can repeat a local time that has fired.
    """
    found = schedule.next(at)
    while found is not None and zone.local(found) <= local:
        segment = zone.segment(found)
        if schedule.clock_rules[1].for_size(segment.before - segment.offset) is DstOverlap.BOTH:
            return found
        found = schedule.next(found)
    return found


def _overtaken(
    schedule: WallClock, zone: Zone, at: datetime, offset: timedelta, planned: datetime | None
) -> datetime | None:
    """Return the past instant of the local time of `planned`, if a new overlap contains it."""
    if planned is None or planned <= at:
        return None
    images = zone.images(plus(planned.replace(tzinfo=None), offset))
    first = next((each for each in images if each < at), None)
    return first if first is not None and schedule.previous(first) == first else None


def _before_any_after(zone: Zone, local: datetime) -> datetime:
    """Return an instant before all that show a later local time than `local`, or stand for one in a gap."""
    images = zone.images(local)
    if images:
        return images[0]
    for segment in _segments_about(zone, local):
        if segment.local_start > local:
            return segment.start - TICK
    raise AssertionError(f"{local} is neither shown by {zone.name} nor left out")  # pragma: no cover


def _segments_about(zone: Zone, local: datetime) -> Iterator[Segment]:
    segment = zone.segment(plus(local.replace(tzinfo=UTC), -REACH))
    last = plus(local.replace(tzinfo=UTC), REACH)
    yield segment
    while segment.end <= last and segment.end < MAX_AT:
        segment = zone.segment(segment.end)
        yield segment


def _latest_local(schedule: WallClock, zone: Zone, at: datetime) -> datetime:
    """Return the latest of the local times that the fire at `at` stands for."""
    segment = zone.segment(at)
    local = zone.local(at)
    size = segment.offset - segment.before
    if size <= timedelta(0) or at >= segment.start + size or _last(schedule, local) == local:
        return local
    how = schedule.clock_rules[0].for_size(size)
    if how is DstGap.SHIFT:
        return local - size
    missing = _last(schedule, segment.local_start - TICK)
    if how is DstGap.RUN_AFTER and missing is not None and missing >= segment.local_start - size:
        return missing
    return local


def _last(schedule: WallClock, local: datetime) -> datetime | None:
    """Return the last local time of a schedule at or before `local`."""
    return max(
        (found for rule in schedule.local_rules if (found := rule.previous(local)) is not None), default=None
    )


def _within(schedule: Schedule, found: datetime | None) -> datetime | None:
    """Apply the bounds of the union to an instant of a member."""
    if found is None or (schedule.end is not None and found > schedule.end):
        return None
    if schedule.start is not None and found < schedule.start:
        return schedule.next(schedule.start - TICK)
    return found
