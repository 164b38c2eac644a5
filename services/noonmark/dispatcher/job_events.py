"""Sends events to topics that jobs name: one that acknowledges nothing must not delay the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from noonmark.kafka.producers.delivery import (
    UNACKNOWLEDGED_TOPIC,
    DeliveryFailure,
    OutboundMessage,
    unacknowledged_topic,
)
from noonmark.kafka.producers.producer import BatchResult

ACKNOWLEDGE_SECONDS: Final = 5.0
"""A topic has this time to acknowledge an event while all others wait: enough to elect a new leader."""

_SKIP_SECONDS: Final = 60.0
"""Events for a topic that did not acknowledge in time are not sent, and so delay nothing, for this time."""


class Producer(Protocol):
    """Sends batches: `noonmark.kafka.producers.producer.RelayProducer`."""

    def send_batch(self, messages: Sequence[OutboundMessage]) -> BatchResult:
        """Send a batch and wait until every message is acknowledged or has failed."""

    def close(self) -> None:
        """Release the client."""


class JobEventSender:
    """Sends events over a separate producer, and skips topics that did not acknowledge the last one.

    Args:
        producer: gives up after `ACKNOWLEDGE_SECONDS`, and says whether the topic or the cluster is at fault.
        clock: monotonic seconds.
    """

    def __init__(self, producer: Producer, clock: Callable[[], float] = time.monotonic) -> None:
        self._producer = producer
        self._clock = clock
        self._skipped_until: dict[str, float] = {}

    def send_batch(self, messages: Sequence[OutboundMessage]) -> BatchResult:
        """Send events, or report at once those for topics that are skipped at the moment."""
        now = self._clock()
        self._skipped_until = {topic: until for topic, until in self._skipped_until.items() if until > now}
        failed: dict[int, DeliveryFailure] = {}
        sent: list[int] = []
        for index, message in enumerate(messages):
            if message.topic in self._skipped_until:
                failed[index] = unacknowledged_topic(message.topic, "not tried again yet")
            else:
                sent.append(index)
        if sent:
            result = self._producer.send_batch([messages[index] for index in sent])
            failed |= {sent[index]: failure for index, failure in result.failed.items()}
            until = self._clock() + _SKIP_SECONDS
            self._skipped_until |= {
                messages[sent[index]].topic: until
                for index, failure in result.failed.items()
                if failure.code == UNACKNOWLEDGED_TOPIC
            }
        return BatchResult(len(messages), failed)

    def close(self) -> None:
        """Release the client."""
        self._producer.close()
