"""Rules on the wall clock against a walk through UTC, minute by minute, with zoneinfo as the clock on the wall."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest
from tests.support.local_times import COMBINATIONS, MINUTE, RULES, Daily, wall
from tests.support.time_oracle import counts

from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.local_times import GapRule, OverlapRule, Zoned
from noonmark.core.zones.zones import load_zone

HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)

WALKED = {
    "America/New_York": (2005, 2030),
    "Europe/Berlin": (2005, 2030),
    "Europe/Dublin": (2005, 2030),
    "Australia/Lord_Howe": (2005, 2030),
    "Antarctica/Troll": (2005, 2030),
    "Africa/Cairo": (2005, 2030),
    "Africa/Casablanca": (2005, 2030),
    "America/Santiago": (2005, 2030),
    "Asia/Beirut": (2018, 2026),
    "America/St_Johns": (2005, 2013),  # changed at one minute past midnight until 2011
    "Antarctica/Casey": (2009, 2024),
    "Europe/Moscow": (2005, 2030),
    "America/Caracas": (2005, 2030),
    "Asia/Pyongyang": (2005, 2030),
    "Pacific/Apia": (2009, 2014),
    "Pacific/Kwajalein": (1969, 1994),
    "Pacific/Kiritimati": (1994, 1996),
    "Africa/Sao_Tome": (2017, 2020),
}


@cache
def changes(name: str) -> tuple[datetime, ...]:
    """Return the changes of the walk's years, to the minute, found by looking hour by hour."""
    first, last = WALKED[name]
    at, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    found = []
    clock = wall(name)
    while at < end:
        if at.astimezone(clock).utcoffset() != (at + 12 * HOUR).astimezone(clock).utcoffset():
            low, high = at, at + 12 * HOUR
            while high - low > MINUTE:
                middle = low + (high - low) // MINUTE // 2 * MINUTE
                same = middle.astimezone(clock).utcoffset() == low.astimezone(clock).utcoffset()
                low, high = (middle, high) if same else (low, middle)
            found.append(high)
        at += 12 * HOUR
    return tuple(found)


class Walk:
    """What the clock on the wall shows at every minute around a change."""

    def __init__(self, name: str, change: datetime) -> None:
        clock = wall(name)
        self.change = change
        self.before = (change - MINUTE).astimezone(clock).utcoffset()
        self.size = size = abs(change.astimezone(clock).utcoffset() - self.before)
        self.start, self.end = change - size - 2 * HOUR, change + size + 3 * HOUR
        self.images: dict[datetime, list[datetime]] = defaultdict(list)
        at, reach = self.start - size - HOUR, self.end + size + HOUR
        while at < reach:
            self.images[at.astimezone(clock).replace(tzinfo=None)].append(at)
            at += MINUTE
        first, last = min(self.images), max(self.images)
        self.locals = [first + n * MINUTE for n in range((last - first) // MINUTE + 1)]

    def fires(self, rule: Daily, gap: GapRule, overlap: OverlapRule) -> list[datetime]:
        """Return the fires in (start, end], each local minute judged on its own."""
        found = set()
        minutes = set(rule.minutes)
        which = DstOverlap.BOTH if overlap.limit and self.size > overlap.limit else overlap.which
        how = DstGap.SKIP if gap.limit and self.size > gap.limit else gap.how
        for local in self.locals:
            if local.hour * 60 + local.minute not in minutes:
                continue
            images = self.images.get(local, [])
            if not images and how is DstGap.RUN_AFTER:
                found.add(self.change)
            elif not images and how is DstGap.SHIFT:
                found.add((local - self.before).replace(tzinfo=UTC))
            elif which is DstOverlap.BOTH:
                found.update(images)
            else:
                found.update(images[:1] if which is DstOverlap.FIRST else images[-1:])
        return [at for at in sorted(found) if self.start < at <= self.end]


def check(of: Zoned, walk: Walk, expected: list[datetime]) -> None:
    got, at = [], walk.start
    while (at := of.next(at)) is not None and at <= walk.end:
        got.append(at)
    assert got == expected
    back, at = [], walk.end
    while (at := of.previous(at)) is not None and at > walk.start:
        back.append(at)
        at -= TICK
    assert back[::-1] == expected
    points = [walk.start, *expected[:: max(len(expected) // 3, 1)], walk.change - TICK, walk.change, walk.end]
    for after, until in [*pairwise(points), (points[0], points[-1]), (points[1], points[-1])]:
        counted = bisect_right(expected, until) - bisect_right(expected, after)
        assert of.count(after, until) == max(counted, 0), (after, until)
    for point in (
        walk.change - 17 * MINUTE - TICK,
        walk.change - TICK,
        walk.change,
        walk.change + 20 * MINUTE,
    ):
        assert of.next(point) == [*expected, of.next(walk.end)][bisect_right(expected, point)]
        assert of.previous(point - TICK) == [of.previous(walk.start), *expected][bisect_left(expected, point)]


@pytest.mark.parametrize("name", WALKED)
def test_all_rules_fire_as_a_walk_through_utc_says(name):
    found = changes(name)
    assert found
    for index, change in enumerate(found):
        walk = Walk(name, change)
        # Every rule with every combination, over four changes of each direction.
        rule = RULES[index // 2 % 4 if len(found) > 8 else 0]
        for rules in (rule,) if len(found) > 8 else RULES:
            for gap, overlap in COMBINATIONS:
                of = Zoned(rules, load_zone(name), gap, overlap)
                check(of, walk, walk.fires(rules, gap, overlap))
                counts.add("walks through a change", schedules=1)
    counts.add("walks through a change", changes=len(found))
