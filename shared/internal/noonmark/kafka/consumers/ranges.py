"""Reads what some topics contain now, from an instant on, without joining a group."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from noonmark.kafka.config import KafkaConfig

_POLL_SECONDS: Final = 0.5

_AGAIN_SECONDS: Final = 0.2
_MOVING: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""Errors of a partition whose leader is changing, or that was just created."""

Place = tuple[str, int]
"""A topic and a partition of it."""


class PartitionRange(NamedTuple):
    """The offsets that are read of a partition.

    Attributes:
        low: the first offset that the partition still has.
        start: the first that is read.
        end: one past the last that is read; equal to `start` if there is nothing to read.
    """

    low: int
    start: int
    end: int


class RangeReader:
    """Reads the records of topics from an instant up to the ends that they have when it is opened.

    One thread owns it. Memory is bounded by what librdkafka prefetches, about 16 MB.

    Args:
        config: the cluster.
        topics: names of topics.
        timeout_seconds: of each request.
        patience_seconds: the longest time that `read` waits for records: partitions move, brokers restart.

    Attributes:
        ranges: what is read of each partition; known once it is open.
    """

    def __init__(
        self,
        config: KafkaConfig,
        topics: Sequence[str],
        *,
        timeout_seconds: float = 10.0,
        patience_seconds: float = 60.0,
    ) -> None:
        self._config = config
        self._topics = topics
        self._timeout = timeout_seconds
        self._patience = patience_seconds
        self._failed: KafkaError | None = None
        self._left: dict[Place, int] = {}
        self._waited = 0.0
        self._consumer = Consumer(
            config.client(client_id="noonmark-range-reader")
            | {
                # librdkafka requires a group id; without a subscription it joins no group.
                "group.id": f"{config.topic_prefix}.range-reader",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                # Retention may remove records while they are read.
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "queued.max.messages.kbytes": 16_384,
                "fetch.wait.max.ms": 100,
            }
        )
        self.ranges: Mapping[Place, PartitionRange] = {}

    def open(self, since: datetime) -> None:
        """Note the ends of all partitions, and start at the first record with a timestamp from `since` on.

        Raises:
            KafkaException: no broker answered in time, a topic does not exist, or may not be read.
        """
        give_up_at = time.monotonic() + self._timeout
        while True:
            try:
                return self._open(since)
            except KafkaException as error:
                if error.args[0].code() not in _MOVING or time.monotonic() > give_up_at:
                    raise
                time.sleep(_AGAIN_SECONDS)

    @property
    def is_done(self) -> bool:
        """Whether everything was returned."""
        return not self._left

    def read(self, most: int = 500) -> list[Message]:
        """Return the next records of any partition, in order within each; may be empty before it is done.

        Raises:
            KafkaException: a partition cannot be read, or no record came for too long.
        """
        if not self._left:
            return []
        found = []
        began = time.monotonic()
        messages = self._consumer.consume(most, timeout=_POLL_SECONDS)
        # The caller may pause between two reads, so only the time spent here counts.
        self._waited += time.monotonic() - began
        for message in messages:
            place, offset = _place(message)
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
                if error.fatal() or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise KafkaException(error)
                self._failed = error  # the client tries again
                continue
            if place not in self._left:
                continue
            self._waited, self._failed = 0.0, None
            if error is None and offset < self._left[place]:
                found.append(message)
            # The last offsets may be gone, or be no records; the end of the partition comes after them.
            if offset + (error is None) >= self._left[place]:
                del self._left[place]
                self._consumer.pause([TopicPartition(*place)])
        if self._left and self._waited > self._patience:
            silent = KafkaError(KafkaError._TIMED_OUT, f"no record of {self._where()} in time")  # noqa: SLF001
            raise KafkaException(self._failed or silent)
        return found

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()

    def _open(self, since: datetime) -> None:
        places = [TopicPartition(topic, p) for topic in self._topics for p in self._partitions(topic)]
        # Ends first: what was acknowledged before this call is below them.
        bounds = {(tp.topic, tp.partition): self._bounds(tp) for tp in places}
        stamp = int(since.timestamp() * 1000)
        wanted = [TopicPartition(tp.topic, tp.partition, stamp) for tp in places]
        found = self._consumer.offsets_for_times(wanted, timeout=self._timeout)
        ranges = {}
        for tp in found:
            if tp.error is not None:
                raise KafkaException(tp.error)
            low, end = bounds[tp.topic, tp.partition]
            # Negative: no record is that new.
            start = min(max(tp.offset, low), end) if tp.offset >= 0 else end
            ranges[tp.topic, tp.partition] = PartitionRange(low, start, end)
        self.ranges = ranges
        self._left = {place: one.end for place, one in ranges.items() if one.end > one.start}
        self._consumer.assign([TopicPartition(*place, ranges[place].start) for place in self._left])
        self._waited = 0.0

    def _where(self) -> str:
        return ", ".join(f"{topic}[{partition}]" for topic, partition in sorted(self._left)[:3])

    def _partitions(self, topic: str) -> list[int]:
        described = self._consumer.list_topics(topic, timeout=self._timeout).topics[topic]
        if described.error is not None:
            raise KafkaException(KafkaError(described.error.code(), f"{topic}: {described.error.str()}"))
        return sorted(described.partitions)

    def _bounds(self, tp: TopicPartition) -> tuple[int, int]:
        found = self._consumer.get_watermark_offsets(tp, timeout=self._timeout)
        if found is None:
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, f"no offsets of {tp.topic}[{tp.partition}]")  # noqa: SLF001
            )
        return int(found[0]), int(found[1])


def _place(message: Message) -> tuple[Place, int]:
    topic: Any = message.topic()
    partition: Any = message.partition()
    offset: Any = message.offset()
    return (topic, partition), offset if offset is not None else -1
