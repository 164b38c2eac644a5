"""Plain rules of local time, for tests of what zones and calendars make of them."""

# ruff: noqa: DTZ001 - local times are naive

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from itertools import product
from zoneinfo import ZoneInfo

from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.local_times import GapRule, OverlapRule, resolve_auto

MINUTE = timedelta(minutes=1)
ZERO_AT = datetime(1, 1, 1)


@dataclass(frozen=True)
class Daily:
    """Local times at the same minutes of every day."""

    minutes: tuple[int, ...]

    def _time(self, index: int) -> datetime | None:
        day, place = divmod(index, len(self.minutes))
        try:
            return ZERO_AT + timedelta(days=day, minutes=self.minutes[place])
        except OverflowError:
            return None

    def _until(self, at: datetime) -> int:
        """Return how many times lie at or before `at`."""
        since = at - ZERO_AT
        minute = (since - timedelta(days=since.days)) / MINUTE
        return since.days * len(self.minutes) + bisect_right(self.minutes, minute)

    def next(self, after: datetime) -> datetime | None:
        return self._time(self._until(after))

    def previous(self, at: datetime) -> datetime | None:
        index = self._until(at) - 1
        return None if index < 0 else self._time(index)

    def count(self, after: datetime, until: datetime) -> int:
        return max(self._until(until) - self._until(after), 0)


@dataclass(frozen=True)
class Times:
    """A few local times."""

    times: tuple[datetime, ...]

    def next(self, after: datetime) -> datetime | None:
        return next(iter(self.times[bisect_right(self.times, after) :]), None)

    def previous(self, at: datetime) -> datetime | None:
        return next(iter(self.times[: bisect_right(self.times, at)][-1:]), None)

    def count(self, after: datetime, until: datetime) -> int:
        return max(bisect_right(self.times, until) - bisect_right(self.times, after), 0)


def at_minutes(*clocks: str) -> Daily:
    return Daily(tuple(sorted(int(clock[:2]) * 60 + int(clock[3:]) for clock in clocks)))


def every(minutes: int, first: int = 0) -> Daily:
    return Daily(tuple(range(first, 1440, minutes)))


RULES = (
    Daily((135, 150, 165)),  # 02:15, 02:30, 02:45
    at_minutes("00:00", "00:30", "01:30", "02:00", "03:00", "23:45"),
    every(15),
    every(47, 5),
)

COMBINATIONS = [
    *(
        (GapRule(gap), OverlapRule(overlap))
        for gap, overlap in product(list(DstGap)[1:], list(DstOverlap)[1:])
    ),
    resolve_auto(
        DstGap.AUTO, DstOverlap.AUTO, kind="cron", wild=False
    ),  # the other two `auto` stand for explicit pairs
]


@cache
def wall(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)
