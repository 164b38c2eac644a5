"""From when on a topic has every event: what retention may have removed is not compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from noonmark.kafka.consumers.ranges import PartitionRange, Place

MARGIN: Final = timedelta(minutes=10)
"""The brokers date records by their clocks, when they are relayed; the database dates outcomes."""


class Coverage:
    """Finds from when on the records of a key are complete, from the records that were read.

    Retention removes the oldest records of a partition. So a partition has every record of a key that was
    appended after the oldest one that it still has; and it has all since the begin of the reading if it
    has an older record.

    Args:
        since: only records from then on are read.
        keyed: whether the records of one key share a partition.
    """

    def __init__(self, since: datetime, *, keyed: bool) -> None:
        self._since = since
        self._keyed = keyed
        self._ranges: Mapping[Place, PartitionRange] = {}
        self._first: dict[Place, dict[str, datetime]] = defaultdict(dict)
        self._next: dict[Place, int] = {}

    def open(self, ranges: Mapping[Place, PartitionRange]) -> None:
        """Note the partitions before their records are read."""
        self._ranges = ranges
        self._next = {place: one.start for place, one in ranges.items()}

    def note(self, place: Place, offset: int, timestamp_ms: int, key: str) -> None:
        """Note a record, in the order of offsets."""
        if offset > self._next[place]:
            # Retention has removed records while they were read.
            self._first[place].clear()
            one = self._ranges[place]
            self._ranges = {**self._ranges, place: one._replace(low=one.start)}
        self._next[place] = offset + 1
        self._first[place].setdefault(key, datetime.fromtimestamp(timestamp_ms / 1000, UTC))

    def since(self, key: str) -> datetime | None:
        """Return from when on every event of a key was read; None: nothing is known to be complete."""
        places = self._ranges
        cut = {place for place, one in places.items() if one.low >= one.start}
        found = [self._first[place][key] for place in cut if key in self._first[place]]
        if not found and (cut or not places):
            return None
        # A partition that never had a record has lost none.
        if not self._keyed and any(places[p].low > 0 and key not in self._first[p] for p in cut):
            return None
        return max([self._since, *found]) + MARGIN
