"""What a schedule will do: its next fires, the times that do not fire, and how two schedules differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import count as counting
from itertools import pairwise
from typing import Final

from noonmark.core.instants import as_utc
from noonmark.core.schedules.schedule import Cron, Schedule, document_of
from noonmark.core.zones.zones import MAX_AT, UTC_ZONE, Zone

MAX_COMPARED: Final = 200_000
"""The most instants that `diff` walks through: what a schedule of every second has in two days."""

MOST_REMOVED: Final = 1000
"""The most times that are listed as removed, unless more fires are requested."""

_ABSENT: Final[tuple[object, ...]] = (None, 0, [], "auto", "UTC")

_UTC: Final = timezone(timedelta(0))


@dataclass(frozen=True, slots=True)
class Fire:
    """One due instant.

    Attributes:
        at: the instant, UTC.
        local: the same on the wall clock, with the zone's offset at that moment.
        note: how a clock change or a calendar affected it; None: not at all.
    """

    at: datetime
    local: datetime
    note: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """A naive local time that does not fire, and why."""

    local: datetime
    note: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The next fires of a schedule.

    Attributes:
        fires: oldest first.
        complete: no fire follows the last one, or there are none.
        removed: times among them that a clock change or a calendar removed.
    """

    fires: list[Fire]
    complete: bool
    removed: list[Removed]


@dataclass(frozen=True, slots=True)
class Difference:
    """What changes when one schedule replaces another.

    Attributes:
        added: fires of the new one that the old one does not have, oldest first.
        removed: fires of the old one that the new one does not have, oldest first.
        until: the end of the comparison.
        complete: whether the requested end was reached; False if a limit was reached before.
    """

    added: list[Fire]
    removed: list[Fire]
    until: datetime
    complete: bool


def preview(
    schedule: Schedule, after: datetime, until: datetime | None, count: int, *, zone: Zone | None = None
) -> Preview:
    """Return the fires strictly after `after`, as for a job that is created at `after`.

    Args:
        schedule: of the job.
        after: aware.
        until: the last instant that may be among them; None: no bound.
        count: the most fires that are returned.
        zone: the zone of the shown times; by default the schedule's own, or UTC if it has none.
    """
    after = as_utc(after)
    most = count if schedule.max_runs is None else min(count, schedule.max_runs)
    found = schedule.between(after, MAX_AT if until is None else as_utc(until), most)
    last = found[-1] if found else after
    used_up = schedule.max_runs is not None and len(found) >= schedule.max_runs
    complete = used_up or schedule.next(last) is None
    show = _Fires(schedule, zone)
    # Searched as far as the list goes: to its last fire if it was cut, else to the given end.
    horizon = last if until is None or len(found) >= most else as_utc(until)
    taken = schedule.removed(after, horizon, max(count, MOST_REMOVED)) if after < horizon else []
    removed = [Removed(local, note) for local, note in taken]
    return Preview([show(at) for at in found], complete, removed)


def diff(
    old: Schedule,
    new: Schedule,
    after: datetime,
    until: datetime,
    limit: int,
    *,
    zones: tuple[Zone | None, Zone | None] = (None, None),
) -> Difference:
    """Return the fires in (after, until] that only one of two schedules has, at most `limit` of each kind.

    Args:
        old: as for a job that is created at `after`: its `max_runs` counts from there.
        new: the same for the schedule that replaces it.
        after: aware.
        until: aware.
        limit: the most fires of each kind.
        zones: the zones that fires of the old and the new one are shown in; None: as in `preview`.
    """
    after, until = as_utc(after), as_utc(until)
    show_old, show_new = _Fires(old, zones[0]), _Fires(new, zones[1])
    added: list[Fire] = []
    removed: list[Fire] = []
    next_old, next_new = _counted(old), _counted(new)
    seen, left, right = after, next_old(after), next_new(after)
    for _ in range(MAX_COMPARED):
        at = min((at for at in (left, right) if at is not None and at <= until), default=None)
        if at is None:
            return Difference(added, removed, until, complete=True)
        # Checked before the fire is added: a list that is exactly full is still complete.
        if (left != at and len(added) >= limit) or (right != at and len(removed) >= limit):
            break
        if left != at:
            added.append(show_new(at))
        if right != at:
            removed.append(show_old(at))
        seen = at
        left = next_old(at) if left == at else left
        right = next_new(at) if right == at else right
    return Difference(added, removed, seen, complete=False)


def _counted(schedule: Schedule) -> Callable[[datetime], datetime | None]:
    """Return `schedule.next`, limited to the job's `max_runs`."""
    if schedule.max_runs is None:
        return schedule.next
    left = counting(schedule.max_runs, -1)
    return lambda at: schedule.next(at) if next(left) > 0 else None


def differing_fields(old: Schedule, new: Schedule) -> list[str]:
    """Return the fields of documents in which two schedules differ, also those that change no fire."""
    mine, other = _given(old), _given(new)
    return [key for key in dict.fromkeys((*mine, *other)) if mine.get(key) != other.get(key)]


def _given(schedule: Schedule) -> dict[str, object]:
    """Return the document form without fields that have no effect."""
    document = document_of(schedule)
    if schedule.start is None:
        document.pop("start", None)  # the anchor of an interval without a given start
    seeds = {rule.seed for rule in getattr(schedule, "members", (schedule,)) if isinstance(rule, Cron)}
    document["name"] = sorted(seeds - {""})
    return {key: value for key, value in document.items() if value not in _ABSENT}


def shortest_gap(schedule: Schedule, after: datetime, most_gaps: int = 50) -> timedelta | None:
    """Return the shortest time between the next few fires; None if there are fewer than two."""
    instants = schedule.between(after, MAX_AT, most_gaps)
    return min((later - sooner for sooner, later in pairwise(instants)), default=None)


class _Fires:
    """Makes fires of instants."""

    def __init__(self, schedule: Schedule, zone: Zone | None) -> None:
        self._schedule = schedule
        self._zone = zone or schedule.zone or UTC_ZONE
        self._clocks = schedule.zone
        self._always = schedule.calendars is not None

    def __call__(self, at: datetime) -> Fire:
        note = self._schedule.note(at) if self._always or self._near_a_change(at) else None
        return Fire(at, in_zone(at, self._zone), note)

    def _near_a_change(self, at: datetime) -> bool:
        """Whether a clock change may affect this instant; if not, an expensive query is avoided."""
        if self._clocks is None:
            return False
        segment = self._clocks.segment(at)
        since, still = abs(segment.offset - segment.before), abs(segment.after - segment.offset)
        return bool((since and at - segment.start <= since) or (still and segment.end - at <= still))


def in_zone(at: datetime, zone: Zone) -> datetime:
    """Return the instant on the zone's wall clock, aware: with its offset at that moment."""
    offset = zone.offset(at)
    return at.astimezone(timezone(offset) if offset else _UTC)
