"""Which topics exist, and their partitions, read from the cluster as rarely as possible.

librdkafka alone keeps a message for an absent topic for its whole timeout, and the batch with it. So the
producer checks here first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Final

ABSENT_RECHECK_SECONDS: Final = 5.0
"""An absent topic is not looked up again for this long."""

PARTITIONS_SECONDS: Final = 60.0
"""The number of a topic's partitions is read again after this time: people add partitions."""

GRACE_SECONDS: Final = 1.0
"""A topic just created can be unknown to some broker for a moment: absence counts only after this time."""


class Presence(Enum):
    """What is known of a topic."""

    PRESENT = auto()
    ABSENT = auto()
    SUSPECT = auto()
    """Not listed, but for less than the grace period: look it up again."""
    UNCHECKED = auto()
    """No broker answered."""


class TopicDirectory:
    """Caches which topics exist. One thread owns it.

    Args:
        list_topics: returns the number of partitions by topic, or None if no broker answered in time.
        clock: monotonic seconds.

    Attributes:
        present: the known topics, with the number of their partitions.
    """

    __slots__ = ("_absent_since", "_clock", "_counted_at", "_list_topics", "_recheck_at", "present")

    def __init__(
        self,
        list_topics: Callable[[], Mapping[str, int] | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._list_topics = list_topics
        self._clock = clock
        self._counted_at = clock()
        self.present: dict[str, int] = {}
        self._absent_since: dict[str, float] = {}
        self._recheck_at: dict[str, float] = {}

    def doubt(self, topic: str) -> None:
        """Look up this topic in the cluster next time, because a client reported that it does not know it."""
        self.present.pop(topic, None)

    def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions; 0 if it is not known."""
        if topic not in self.present:
            self.lookup((topic,))
        elif self._clock() - self._counted_at >= PARTITIONS_SECONDS:
            self._counted_at = self._clock()
            listed = self._list_topics() or {}
            self.present.update((name, listed[name]) for name in self.present if name in listed)
        return self.present.get(topic, 0)

    def lookup(self, topics: Iterable[str]) -> dict[str, Presence]:
        """Return what is known of each topic; at most one request for all of them."""
        now = self._clock()
        result: dict[str, Presence] = {}
        unknown: list[str] = []
        for topic in topics:
            if topic in self.present:
                result[topic] = Presence.PRESENT
            elif now < self._recheck_at.get(topic, 0.0):
                result[topic] = Presence.ABSENT
            else:
                unknown.append(topic)
        if unknown:
            listed = self._list_topics()
            for topic in unknown:
                result[topic] = Presence.UNCHECKED if listed is None else self._note(topic, listed)
        return result

    def wait_seconds(self, topics: Iterable[str]) -> float:
        """Return how long until the suspects among these topics may be decided."""
        now = self._clock()
        since = [self._absent_since[topic] for topic in topics if topic in self._absent_since]
        return max((start + GRACE_SECONDS - now for start in since), default=0.0)

    def _note(self, topic: str, listed: Mapping[str, int]) -> Presence:
        now = self._clock()
        if topic in listed:
            self._absent_since.pop(topic, None)
            self._recheck_at.pop(topic, None)
            self.present[topic] = listed[topic]
            return Presence.PRESENT
        if now - self._absent_since.setdefault(topic, now) < GRACE_SECONDS:
            return Presence.SUSPECT
        self._recheck_at[topic] = now + ABSENT_RECHECK_SECONDS
        return Presence.ABSENT
