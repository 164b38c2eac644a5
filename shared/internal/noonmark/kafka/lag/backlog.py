"""The messages before a run in its Kafka lane. That Kafka does not answer is a result, too."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException

from noonmark.core.states import Lane
from noonmark.core.why.facts import KafkaAway, LaneBacklog
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag.lag import LagProbe, LagUnavailable, PartitionLag
from noonmark.kafka.topics import Topics

TIMEOUT_SECONDS: Final = 2.0
FRESH_SECONDS: Final = 2.0
"""A lane is measured at most once in this time, however many people ask."""


class LaneBacklogs:
    """Measures lanes on request, one at a time. Safe to use from many threads."""

    def __init__(self, config: KafkaConfig, topics: Topics) -> None:
        """Connections are opened by the first measurement."""
        self._config = config
        self._topics = topics
        self._lock = threading.Lock()
        self._measured: dict[tuple[str, Lane], tuple[float, LaneBacklog | KafkaAway]] = {}

    def measure(self, pool: str, lane: Lane) -> LaneBacklog | KafkaAway:
        """Return the messages of a pool's lane that no worker has started; ages are by this host's clock."""
        # Longer than one measurement takes: a thread that waits for another's gets its result.
        if not self._lock.acquire(timeout=4 * TIMEOUT_SECONDS):
            return KafkaAway("a request is in progress, and takes long")
        try:
            cached = self._measured.get((pool, lane))
            if cached is not None and time.monotonic() - cached[0] < FRESH_SECONDS:
                return cached[1]
            found = self._measure(pool, lane)
            self._measured[pool, lane] = (time.monotonic(), found)
            return found
        finally:
            self._lock.release()

    def _measure(self, pool: str, lane: Lane) -> LaneBacklog | KafkaAway:
        # Not cached: requests may be hours apart, and an idle client holds connections and threads.
        probe = LagProbe(self._config, timeout_seconds=TIMEOUT_SECONDS)
        try:
            return summed(probe.measure(self._topics.group_worker(pool, lane), self._topics.runs(pool, lane)))
        except (LagUnavailable, KafkaException) as error:
            return KafkaAway(str(error))
        finally:
            probe.close()


def summed(partitions: Sequence[PartitionLag]) -> LaneBacklog:
    """Add up the partitions of a lane; an age that could not be read is unknown, not zero."""
    stamps = [one.oldest_unstarted_timestamp_ms for one in partitions if one.start_backlog]
    known = [stamp for stamp in stamps if stamp is not None]
    oldest = max(0.0, time.time() - min(known) / 1000) if known and len(known) == len(stamps) else None
    return LaneBacklog(sum(one.start_backlog for one in partitions), oldest)
