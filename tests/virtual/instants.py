"""When a schedule is due, found without the product: by walking, listing and filtering.

Cron is walked minute by minute (`tests.support.time_oracle`), RRULE is dateutil's on naive local time, the rest are
loops. Instants are whole UTC seconds, wall-clock times whole seconds since 1970-01-01T00:00 on the wall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from dateutil.rrule import rrulestr
from tests.support.time_oracle.clock import wall_clock
from tests.support.time_oracle.cron import OracleCron, read_cron
from tests.support.time_oracle.walk import DAY, LONGEST_MADE_UP, day_matches, fires, look, stretch

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the wall's
IsClosed = Callable[[date], bool]

_WALK_DAYS = 28
_FURTHEST_MOVE_DAYS = 366


@dataclass(frozen=True)
class Member:
    """One rule of a schedule: `kind` is cron, rrule, every or at."""

    kind: str
    text: str = ""
    dialect: str = "unix"
    seconds_field: str | None = None
    dtstart: datetime | None = None
    every: int = 0
    at: int = 0
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Shape:
    """What the members of a schedule share."""

    zone: str = "UTC"
    gap: str = "auto"
    overlap: str = "auto"
    start: int | None = None
    end: int | None = None
    max_runs: int | None = None
    is_closed: IsClosed | None = field(default=None, compare=False)
    on_holiday: str = "skip"


@dataclass(frozen=True)
class Due:
    """The instants of a job, and whether others follow."""

    instants: list[int]
    more: bool


def due(members: Iterable[Member], shape: Shape, created: int, until: int) -> Due:
    """Return what is due in (created, until]."""
    found: set[int] = set()
    more = False
    for member in members:
        listed = list(_of_member(member, shape, created, until + 1))
        bounds = [at for at in (member.end, shape.end) if at is not None]
        low = max(at for at in (member.start, shape.start, created + 1) if at is not None)
        high = min([until, *bounds])
        found.update(at for at in listed if low <= at <= high)
        more = more or not (any(at <= until for at in bounds) or _is_finite(member, until))
    instants = sorted(found)
    if shape.max_runs is not None and len(instants) >= shape.max_runs:
        return Due(instants[: shape.max_runs], more=False)
    return Due(instants, more)


def _is_finite(member: Member, until: int) -> bool:
    if member.kind == "at":
        return member.at <= until
    if member.kind == "rrule" and ("COUNT" in member.text or "UNTIL" in member.text):
        rule, last = _without_until(member.text)
        if last is not None:
            return last <= until
        *_, end = rrulestr(rule, dtstart=member.dtstart)
        return wall(end) < until - 2 * DAY
    return False


def _of_member(member: Member, shape: Shape, created: int, end: int) -> Iterator[int]:
    if member.kind == "at":
        yield member.at
    elif member.kind == "every":
        yield from _interval(member, shape, created, end)
    elif member.kind == "rrule":
        yield from _rrule(member, shape, created, end)
    elif shape.is_closed is None:
        yield from _walked(_cron_of(member), shape, created, end)
    else:
        # The walk knows no calendars: list the wall-clock times, move them, and read the wall clock for each.
        cron = _cron_of(member)
        walls = _listed(cron, created, end)
        moved = _under_calendars(walls, shape)
        yield from _resolved(moved, shape, wild=cron.wild, rrule=False)


def _interval(member: Member, shape: Shape, created: int, end: int) -> Iterator[int]:
    anchor = next(at for at in (member.start, shape.start, created) if at is not None)
    for at in range(anchor, end, member.every):
        if shape.is_closed is None or not shape.is_closed(_date(_shown(shape.zone, at))):
            yield at


# cron


def _cron_of(member: Member) -> OracleCron:
    return _read_cron(member.text, member.dialect, member.seconds_field)


@lru_cache(maxsize=4096)
def _read_cron(text: str, dialect: str, seconds_field: str | None) -> OracleCron:
    return read_cron(text, quartz=dialect == "quartz", seconds_field=seconds_field)


def _walked(cron: OracleCron, shape: Shape, created: int, end: int) -> Iterator[int]:
    first = created - created % DAY
    for begin in range(first, end, _WALK_DAYS * DAY):
        stop = begin + _WALK_DAYS * DAY
        if not any(day_matches(cron, day) for day in range(begin // DAY - 2, stop // DAY + 3)):
            continue
        view = stretch(shape.zone, begin - DAY, stop + DAY)
        due_here = fires(look(cron, view), shape.gap, shape.overlap, wild=cron.wild)
        yield from (at for at in due_here if begin <= at < stop)


def _listed(cron: OracleCron, created: int, end: int) -> list[int]:
    times = [minute * 60 + second for minute in cron.minutes_of_day() for second in cron.seconds]
    # A fire can be moved by a calendar for a year at most; those of the days around matter too.
    days = range(created // DAY - _FURTHEST_MOVE_DAYS, end // DAY + _FURTHEST_MOVE_DAYS)
    return [day * DAY + time for day in days if day_matches(cron, day) for time in times]


# RRULE


def _without_until(text: str) -> tuple[str, int | None]:
    """Take UNTIL (of a single rule, in UTC) out of the text: it bounds instants, dateutil would bound local times."""
    head, found, rest = text.partition(";UNTIL=")
    if not found:
        return text, None
    until, semicolon, tail = rest.partition(";")
    at = datetime.strptime(until, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return head + semicolon + tail, int(at.timestamp())


def _rrule(member: Member, shape: Shape, created: int, end: int) -> Iterator[int]:
    text, last = _without_until(member.text)
    rule = rrulestr(text, dtstart=member.dtstart)
    reach = _FURTHEST_MOVE_DAYS if shape.is_closed is not None else 2
    low = EPOCH + timedelta(seconds=created - reach * DAY)
    high = EPOCH + timedelta(seconds=end + reach * DAY)
    walls = [wall(at) for at in rule.between(low, high, inc=True)]
    resolved = _resolved(_under_calendars(walls, shape), shape, wild=False, rrule=True)
    yield from (at for at in resolved if last is None or at <= last)


# calendars


def _under_calendars(walls: list[int], shape: Shape) -> list[int]:
    is_closed = shape.is_closed
    if is_closed is None:
        return walls
    kept: set[int] = set()
    step = {"next_business_day": DAY, "previous_business_day": -DAY}.get(shape.on_holiday)
    for at in walls:
        if not is_closed(_date(at)):
            kept.add(at)
        elif step is not None:
            moved = at
            while is_closed(_date(moved)) and abs(moved - at) <= _FURTHEST_MOVE_DAYS * DAY:
                moved += step
            if not is_closed(_date(moved)):
                kept.add(moved)
    return sorted(kept)


def _date(at: int) -> date:
    return (EPOCH + timedelta(seconds=at)).date()


# from the wall to UTC


def wall(local: datetime) -> int:
    """Return a naive local time as seconds."""
    return (local - EPOCH) // timedelta(seconds=1)


def _shown(zone: str, at: int) -> int:
    return wall_clock(zone).walls(at, at + 1, 1)[0]


def _resolved(walls: Iterable[int], shape: Shape, *, wild: bool, rrule: bool) -> list[int]:
    found: set[int] = set()
    for local in walls:
        found.update(_images(local, shape.zone, shape.gap, shape.overlap, wild=wild, rrule=rrule))
    return sorted(found)


@lru_cache(maxsize=500_000)
def _images(local: int, zone: str, gap: str, overlap: str, *, wild: bool, rrule: bool) -> tuple[int, ...]:
    # No zone lies further from UTC than 14 h, and none changes its clocks twice within two days.
    before, after = (at - _shown(zone, at) for at in (local - 20 * 3600, local + 20 * 3600))
    passes = sorted({at for at in (local + before, local + after) if _shown(zone, at) == local})
    if len(passes) == 1:
        return tuple(passes)
    if passes:
        rule = overlap
        if rule == "auto":
            long = passes[-1] - passes[0] > LONGEST_MADE_UP
            rule = "first" if rrule else "both" if wild or long else "first"
        return {"first": (passes[0],), "last": (passes[-1],), "both": tuple(passes)}[rule]
    rule = gap
    if rule == "auto":
        long = before - after > LONGEST_MADE_UP
        rule = "shift" if rrule else "skip" if wild or long else "run_after"
    if rule == "skip":
        return ()
    if rule == "shift":
        return (local + before,)
    # Just after the jump the clock shows later than `local` for the first time.
    [jump] = wall_clock(zone).changes(local + after - 86_400, local + before + 86_400)
    return (jump,)
