"""Wall clocks: what the clock on the wall of a zone shows at a UTC instant.

The zone data are the files of the `tzdata` package, whatever the host has. Instants and wall-clock times are whole
numbers here: seconds since 1970-01-01T00:00 on the UTC clock, and on the wall clock.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

HOUR = 3600


class WallClock:
    """The wall clock of one zone.

    The offset is read at every full hour; where two readings in a row agree the hour between them is taken to be
    regular (no zone ever changed its clocks twice within an hour), where they differ each second asked for is read.
    """

    def __init__(self, name: str) -> None:
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            self._zone = ZoneInfo.from_file(file, key=name)
        self.name = name
        self._hours: dict[int, int] = {}

    def _read(self, at: int) -> int:
        offset = datetime.fromtimestamp(at, self._zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())

    def _at_hour(self, hour: int) -> int:
        offset = self._hours.get(hour)
        if offset is None:
            offset = self._hours[hour] = self._read(hour * HOUR)
        return offset

    def walls(self, start: int, end: int, step: int) -> list[int]:
        """Return what the clock shows at start, start + step, … before `end`. `step` divides an hour."""
        shown: list[int] = []
        at = start
        while at < end:
            hour = at // HOUR
            border = min(end, (hour + 1) * HOUR)
            before, after = self._at_hour(hour), self._at_hour(hour + 1)
            if before == after:
                shown.extend(range(at + before, border + before, step))
            else:
                shown.extend(moment + self._read(moment) for moment in range(at, border, step))
            at = border
        return shown

    def changes(self, start: int, end: int) -> list[int]:
        """Return the instants in [start, end) from which on the offset is another."""
        found = []
        for hour in range(start // HOUR, end // HOUR):
            if self._at_hour(hour) != self._at_hour(hour + 1):
                moment = hour * HOUR + 1
                while self._read(moment) == self._read(moment - 1):
                    moment += 1
                found.append(moment)
        return found


@cache
def wall_clock(name: str) -> WallClock:
    """Return the clock of a zone; the same one each time, with what it has read."""
    return WallClock(name)
