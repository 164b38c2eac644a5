"""Which topics exist, read from the cluster as rarely as possible.

librdkafka alone keeps a message for an absent topic for its whole timeout, and the batch with it. So the
producer checks here first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final

ABSENT_RECHECK_SECONDS: Final = 5.0
"""An absent topic is not looked up again for this long."""

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
        list_topics: returns the names of all topics, or None if no broker answered in time.
        clock: monotonic seconds.
    """

    __slots__ = ("_absent_since", "_clock", "_list_topics", "_recheck_at", "present")

    def __init__(
        self, list_topics: Callable[[], frozenset[str] | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._list_topics = list_topics
        self._clock = clock
        self.present: set[str] = set()
        self._absent_since: dict[str, float] = {}
        self._recheck_at: dict[str, float] = {}

    def doubt(self, topic: str) -> None:
        """Look up this topic in the cluster next time, because a client reported that it does not know it."""
        self.present.discard(topic)

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

    def _note(self, topic: str, listed: frozenset[str]) -> Presence:
        now = self._clock()
        if topic in listed:
            self._absent_since.pop(topic, None)
            self._recheck_at.pop(topic, None)
            self.present.add(topic)
            return Presence.PRESENT
        if now - self._absent_since.setdefault(topic, now) < GRACE_SECONDS:
            return Presence.SUSPECT
        self._recheck_at[topic] = now + ABSENT_RECHECK_SECONDS
        return Presence.ABSENT
