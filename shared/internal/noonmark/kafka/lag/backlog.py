"""What stands before a run in its lane in Kafka; that Kafka does not answer is an answer, too."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException

from noonmark.core.vocabulary import Lane
from noonmark.core.why.facts import KafkaAway, LaneBacklog
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag.lag import LagProbe, LagUnavailable, PartitionLag
from noonmark.kafka.topics import Topics

TIMEOUT_SECONDS: Final = 2.0
FRESH_SECONDS: Final = 2.0
"""However many people ask, a lane is measured once in this time."""


class LaneBacklogs:
    """Measures lanes when somebody asks, one at a time. Safe to use from many threads."""

    def __init__(self, config: KafkaConfig, topics: Topics) -> None:
        """Connect when first asked."""
        self._config = config
        self._topics = topics
        self._lock = threading.Lock()
        self._known: dict[tuple[str, Lane], tuple[float, LaneBacklog | KafkaAway]] = {}

    def measure(self, pool: str, lane: Lane) -> LaneBacklog | KafkaAway:
        """Return the messages of a pool's lane that no worker has taken; ages are by this host's clock."""
        # Longer than one measurement takes: whoever waits for another's gets what it found.
        if not self._lock.acquire(timeout=4 * TIMEOUT_SECONDS):
            return KafkaAway("it is being asked, and takes long to answer")
        try:
            known = self._known.get((pool, lane))
            if known is not None and time.monotonic() - known[0] < FRESH_SECONDS:
                return known[1]
            found = self._ask(pool, lane)
            self._known[pool, lane] = (time.monotonic(), found)
            return found
        finally:
            self._lock.release()

    def _ask(self, pool: str, lane: Lane) -> LaneBacklog | KafkaAway:
        # Not kept: between two questions lie hours, and a client at rest holds connections and threads.
        probe = LagProbe(self._config, timeout_seconds=TIMEOUT_SECONDS)
        try:
            return summed(probe.measure(self._topics.group_worker(pool, lane), self._topics.runs(pool, lane)))
        except (LagUnavailable, KafkaException) as error:
            return KafkaAway(str(error))
        finally:
            probe.close()


def summed(partitions: Sequence[PartitionLag]) -> LaneBacklog:
    """Add up the partitions of a lane; an age that could not be read is unknown, not nothing."""
    stamps = [one.oldest_unstarted_timestamp_ms for one in partitions if one.start_backlog]
    known = [stamp for stamp in stamps if stamp is not None]
    oldest = max(0.0, time.time() - min(known) / 1000) if known and len(known) == len(stamps) else None
    return LaneBacklog(sum(one.start_backlog for one in partitions), oldest)
