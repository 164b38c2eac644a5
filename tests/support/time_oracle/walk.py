"""The walk over the UTC clock, and the rules for wall-clock times that are left out or come twice.

Rules (docs: what a schedule does when the clocks change):

- gap `run_after`: the first instant after the jump, once for all times jumped over; `skip`: nothing; `shift`: each
  time jumped over, read with the offset before the jump; `auto`: for cron, nothing if the minute or hour field starts
  with `*` or the jump is longer than 3 h, else run_after; for rrule, shift.
- overlap `first`, `last`, `both`: the passes in which a repeated time counts; `auto`: for cron, both if the minute or
  hour field starts with `*` or the overlap is longer than 3 h, else first; for rrule, first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache

from tests.support.time_oracle.clock import wall_clock
from tests.support.time_oracle.cron import OracleCron

DAY = 86_400
LONGEST_MADE_UP = 3 * 3600
GAP_RULES = ("auto", "run_after", "skip", "shift")
OVERLAP_RULES = ("auto", "first", "last", "both")
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Jump:
    """A moment at which the wall clock leaves times out."""

    at: int
    missed: range
    offset_before: int


@dataclass(frozen=True)
class Stretch:
    """What the clock showed at each step of [start, end); `step` is 60 or 1 seconds."""

    start: int
    step: int
    walls: list[int]
    jumps: list[Jump]
    passes: dict[int, list[int]]
    """For a wall time that was shown more than once: when."""
    days: list[int] = field(default_factory=list)
    """The dates that were shown or jumped over, as days since 1970-01-01."""


@lru_cache(maxsize=1024)
def stretch(zone: str, start: int, end: int, step: int = 60) -> Stretch:
    """Walk from `start` to `end` (UTC seconds) and write down what the clock of the zone shows."""
    walls = wall_clock(zone).walls(start, end, step)
    jumps = []
    seen: dict[int, list[int]] = {}
    went_back = False
    for index in range(1, len(walls)):
        moved = walls[index] - walls[index - 1]
        if moved > step:
            at = start + index * step
            missed = range(walls[index - 1] + step, walls[index], step)
            jumps.append(Jump(at, missed, walls[index - 1] - (at - step)))
        elif moved < step:
            went_back = True
    if went_back:
        for index, wall in enumerate(walls):
            seen.setdefault(wall, []).append(start + index * step)
    days = {wall // DAY for wall in walls[:: 3600 // step]} | {walls[-1] // DAY}
    days |= {wall // DAY for jump in jumps for wall in (jump.missed[0], jump.missed[-1])}
    passes = {wall: at for wall, at in seen.items() if len(at) > 1}
    return Stretch(start, step, walls, jumps, passes, sorted(days))


@dataclass(frozen=True)
class Sighting:
    """Where an expression matched in a stretch, before any rule is asked. All numbers are UTC or wall seconds."""

    once: list[int]
    repeated: list[list[int]]
    jumped: list[tuple[Jump, list[int]]]
    seconds: tuple[int, ...]


def look(cron: OracleCron, view: Stretch) -> Sighting:
    """Walk the stretch and note each step at which the expression matches what the clock shows."""
    matching = _matching_walls(cron, view)
    if not matching:
        return Sighting([], [], [], ())
    hits = [
        (view.start + index * view.step, wall) for index, wall in enumerate(view.walls) if wall in matching
    ]
    once = [at for at, wall in hits if wall not in view.passes]
    repeated = [view.passes[wall] for wall in sorted({wall for _, wall in hits if wall in view.passes})]
    jumped = [(jump, [wall for wall in jump.missed if wall in matching]) for jump in view.jumps]
    seconds = cron.seconds if view.step == 60 else (0,)
    return Sighting(once, repeated, [(jump, missed) for jump, missed in jumped if missed], seconds)


def _matching_walls(cron: OracleCron, view: Stretch) -> frozenset[int]:
    # Walking minutes, the seconds are put on at the end: clocks change on full minutes where that is done.
    days = tuple(day for day in view.days if day_matches(cron, day))
    return _matching(cron, days, by_second=view.step == 1)


@lru_cache(maxsize=4096)
def _matching(cron: OracleCron, days: tuple[int, ...], *, by_second: bool) -> frozenset[int]:
    seconds = cron.seconds if by_second else (0,)
    minutes = cron.minutes_of_day()
    return frozenset(
        day * DAY + minute * 60 + second for day in days for minute in minutes for second in seconds
    )


@lru_cache(maxsize=200_000)
def day_matches(cron: OracleCron, day: int) -> bool:
    """Tell whether the expression admits this day, counted from 1970-01-01."""
    return cron.day_matches(_EPOCH + timedelta(days=day))


def fires(
    sighting: Sighting, gap: str, overlap: str, *, wild: bool = False, rrule: bool = False
) -> list[int]:
    """Return the instants (UTC seconds) that the rules make of a sighting, in order, each once."""
    minutes = list(sighting.once)
    for passes in sighting.repeated:
        rule = overlap
        if rule == "auto":
            long = passes[-1] - passes[0] > LONGEST_MADE_UP
            rule = "first" if rrule else "both" if wild or long else "first"
        minutes.extend({"first": passes[:1], "last": passes[-1:], "both": passes}[rule])
    made_up = []
    for jump, missed in sighting.jumped:
        rule = gap
        if rule == "auto":
            long = len(jump.missed) * jump.missed.step > LONGEST_MADE_UP
            rule = "shift" if rrule else "skip" if wild or long else "run_after"
        if rule == "run_after":
            made_up.append(jump.at)
        elif rule == "shift":
            minutes.extend(wall - jump.offset_before for wall in missed)
    if sighting.seconds == (0,):
        return sorted({*minutes, *made_up})
    return sorted({at + second for at in minutes for second in sighting.seconds} | set(made_up))


def fires_after(
    cron: OracleCron,
    zone: str,
    after: float,
    count: int,
    gap: str = "auto",
    overlap: str = "auto",
    *,
    years: int = 46,
) -> list[int]:
    """Return the first `count` fires after an instant (UTC seconds), walking day by day for so many years."""
    found: list[int] = []
    day = int(after // DAY)
    for today in range(day, day + years * 366):
        # The date on the wall is within a day of the UTC date; a jump may leave out one more.
        if not any(day_matches(cron, near) for near in range(today - 2, today + 3)):
            continue
        # A day on each side shows what was there before midnight and what comes again after it.
        view = stretch(zone, (today - 1) * DAY, (today + 2) * DAY)
        due = fires(look(cron, view), gap, overlap, wild=cron.wild)
        found.extend(at for at in due if at > after and today * DAY <= at < (today + 1) * DAY)
        if len(found) >= count:
            break
    return found[:count]
