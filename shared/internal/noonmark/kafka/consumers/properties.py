"""The librdkafka properties of a batch consumer, for both group protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import KafkaError

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.refusals import refusal
from noonmark.kafka.rights import Operation

_CLASSIC: Final = {
    # Cooperative from the start: a running group cannot change from eager to cooperative.
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 3_000,
}
"""With KIP-848 the broker sets the assignor and both times, and the client refuses them."""


def consumer_properties(config: KafkaConfig, group: str, max_poll_interval_seconds: float) -> dict[str, Any]:
    """Return the properties of a member of `group`."""
    properties = config.client() | {
        "group.id": group,
        "group.protocol": config.group_protocol,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "max.poll.interval.ms": round(max_poll_interval_seconds * 1000),
        # Enough for several batches; a pause or a rebalance discards what is buffered.
        "queued.min.messages": 10_000,
        "queued.max.messages.kbytes": 16_384,
        "fetch.queue.backoff.ms": 20,
        "fetch.error.backoff.ms": 100,
        "topic.metadata.refresh.interval.ms": 30_000,
    }
    return properties | (_CLASSIC if config.group_protocol == "classic" else {})


def hint(error: KafkaError, topics: Sequence[str], group: str) -> str:
    """Return what to do about an error of a member of `group`, if anything can be done."""
    if error.code() in (KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE):  # noqa: SLF001
        return "; brokers before 4.0 need the group protocol classic"
    if error.code() == KafkaError._FATAL:  # noqa: SLF001
        return "; the process ends, and joins the group again when it is restarted"
    missing = refusal(error, Operation.READ, topic=" or ".join(topics), group=group)
    return f"; {missing}" if missing is not None else ""
