"""A broker in memory: partitions with offsets, groups with committed offsets, and delays that the seed decides.

It keeps Kafka's promises (order within a partition, at least once) and no others: records become visible late,
partitions overtake each other, a producer's retry can store a record twice, and a group that gets a partition
again reads from its committed offset.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from noonmark.kafka.consumers.records import Record

PARTITIONS = 3
Place = tuple[str, int]


class Stored(NamedTuple):
    """A record of a partition, and when consumers see it, in seconds of the virtual clock."""

    key: bytes | None
    value: bytes
    visible_at: float


@dataclass
class Broker:
    """Topics are created by their first record.

    Attributes:
        dice: decides delays and duplicates.
        away_until: no request is answered before, in seconds of the virtual clock.
        twice: share of the records that are stored twice.
        late: longest delay of a record, in seconds.
        doubled: number of records that were stored twice.
    """

    dice: Random
    away_until: float = 0.0
    twice: float = 0.01
    late: float = 2.0
    doubled: int = 0
    logs: dict[Place, list[Stored]] = field(default_factory=lambda: defaultdict(list))
    committed: dict[tuple[str, Place], int] = field(default_factory=dict)

    def is_away(self, now: float) -> bool:
        """Return whether requests get no answer at this time."""
        return now < self.away_until

    def append(self, topic: str, key: bytes | None, value: bytes, now: float, *, partition: int = -1) -> None:
        """Store a record, and sometimes store it again as a producer's retry would."""
        place = topic, partition_of(key) if partition < 0 else partition
        log = self.logs[place]
        for _ in range(2 if self.dice.random() < self.twice else 1):
            seen = max(now + self.dice.uniform(0.01, self.late), log[-1].visible_at if log else 0.0)
            log.append(Stored(key, value, seen))
        self.doubled += len(log) > 1 and log[-1].value == log[-2].value

    def read(self, place: Place, offset: int, now: float, most: int, epoch: int = 0) -> list[Record]:
        """Return the visible records from this offset on."""
        if self.is_away(now):
            return []
        found = []
        for at, stored in enumerate(self.logs[place][offset : offset + most], offset):
            if stored.visible_at > now:
                break
            found.append(Record(*place, at, epoch, stored.key, stored.value, int(stored.visible_at * 1000)))
        return found

    def next_visible(self, place: Place, offset: int) -> float | None:
        """Return when the record with this offset becomes visible; None if there is none."""
        log = self.logs[place]
        return max(log[offset].visible_at, self.away_until) if offset < len(log) else None

    def position(self, group: str, place: Place) -> int:
        """Return the committed offset of a group."""
        return self.committed.get((group, place), 0)

    def commit(self, group: str, place: Place, offset: int, now: float) -> bool:
        """Store the offset of a group; False while the broker is away."""
        if self.is_away(now):
            return False
        self.committed[group, place] = offset
        return True


def partition_of(key: bytes | None) -> int:
    """Return the partition of a key: that of the job's id or the event's name."""
    return sum(key or b"") % PARTITIONS


def places_of(topic: str) -> list[Place]:
    """Return the partitions of a topic."""
    return [(topic, partition) for partition in range(PARTITIONS)]
