"""Proof that a consumer group has passed everything published before an instant. Only bookkeeping."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Passage:
    """How far a group has come, in publishing time.

    Attributes:
        until: every message acknowledged before this instant has been passed by the group, or is gone with
            its topic. None while nothing is proved.
        lost: whether the last observation showed that the topic was created again, or has lost records.
    """

    until: datetime | None
    lost: bool


class TopicMarks:
    """Stores the end offsets of a topic's partitions at certain instants.

    A message acknowledged before `marked_at` is below the end offsets read after it. Once a group's
    position has reached those ends in every partition, the group has passed that message: a run that still
    waits for it will wait for ever. Age alone proves nothing.

    Args:
        capacity: the number of marks kept. If there are more, every second one is dropped: the proof then
            comes in larger steps, but stays correct.
    """

    __slots__ = ("_capacity", "_last_ends", "_last_marked_at", "_lost", "_marks", "_topic_id", "_until")

    def __init__(self, capacity: int = 2048) -> None:
        self._capacity = max(capacity, 2)
        self._marks: deque[tuple[datetime, dict[int, int]]] = deque()
        self._topic_id: str | None = None
        self._last_ends: dict[int, int] = {}
        self._last_marked_at: datetime | None = None
        self._until: datetime | None = None
        self._lost = False

    def observe(self, marked_at: datetime, ends: Mapping[int, int], topic_id: str | None = None) -> bool:
        """Store the end offsets per partition. Return whether the topic has lost records.

        Read `marked_at` before the ends, from the clock that dates acknowledgements. A topic with another id,
        a missing partition, or an end that went back has lost records: what was acknowledged before the last
        good observation counts as passed from then on.
        """
        self._lost = self._has_lost(ends, topic_id)
        if self._lost:
            self._marks.clear()
            self._advance(self._last_marked_at)
        self._topic_id = topic_id if topic_id is not None else self._topic_id
        self._last_ends = dict(ends)
        self._last_marked_at = marked_at
        self._marks.append((marked_at, self._last_ends))
        if len(self._marks) > self._capacity:
            newest = self._marks[-1]
            self._marks = deque(list(self._marks)[:-1:2])
            self._marks.append(newest)
        return self._lost

    def passed(self, positions: Mapping[int, int]) -> Passage:
        """Return what a group's positions (`PartitionLag.position`) prove.

        A partition without a position has not been passed.
        """
        marks = self._marks
        while marks and all(positions.get(p, -1) >= end for p, end in marks[0][1].items()):
            self._advance(marks.popleft()[0])
        return Passage(self._until, self._lost)

    def _has_lost(self, ends: Mapping[int, int], topic_id: str | None) -> bool:
        if topic_id is not None and self._topic_id is not None and topic_id != self._topic_id:
            return True
        return any(ends.get(partition, -1) < end for partition, end in self._last_ends.items())

    def _advance(self, instant: datetime | None) -> None:
        if instant is not None and (self._until is None or instant > self._until):
            self._until = instant
