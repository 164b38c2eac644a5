"""The lifecycle topic read from its beginning: how many verdicts each run was given."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from benchmarks.stack import BenchmarkError
from noonmark.core.transitions import VERDICTS
from noonmark.kafka.config import KafkaConfig
from noonmark.schemas.events.lifecycle import SETTLED

_TIMEOUT_SECONDS: Final = 30.0
_MOST: Final = 500
_VERDICTS: Final = frozenset(state.value for state in VERDICTS)


@dataclass(slots=True)
class Verdicts:
    """Terminal events of one namespace's runs.

    Attributes:
        by_run: how many terminal outcomes were announced, by run id.
    """

    by_run: Counter[str] = field(default_factory=Counter)
    _events: set[str] = field(default_factory=set)

    @property
    def runs(self) -> int:
        """Runs with a verdict."""
        return len(self.by_run)

    @property
    def second(self) -> int:
        """Runs with more than one."""
        return sum(count > 1 for count in self.by_run.values())

    def add(self, event: dict[str, Any], namespace: str) -> None:
        """Count one event. The same event delivered twice is one: its id says so."""
        if event.get("type") != SETTLED or event["id"] in self._events:
            return
        self._events.add(event["id"])
        for outcome in event["data"]["outcomes"]:
            if outcome["namespace"] == namespace and outcome["state"] in _VERDICTS:
                self.by_run[outcome["run_id"]] += 1


def read_verdicts(bootstrap: str, topic: str, namespace: str) -> Verdicts:
    """Read everything that the topic holds now.

    Raises:
        BenchmarkError: it could not be read to its end in time.
    """
    verdicts = Verdicts()
    for value in read_all(bootstrap, topic):
        verdicts.add(orjson.loads(value), namespace)
    return verdicts


def read_all(bootstrap: str, topic: str) -> list[bytes]:
    """Return every record's value, up to the ends that the topic's partitions have now.

    Raises:
        BenchmarkError: it could not be read to its end in time.
    """
    consumer = Consumer(
        KafkaConfig(bootstrap).client(
            client_id="benchmark", group_id="benchmark-reader", enable_auto_commit=False
        )
    )
    values: list[bytes] = []
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1]
            for number in partitions
        }
        missing = {number for number, end in ends.items() if end > 0}
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in missing])
        give_up_at = time.monotonic() + _TIMEOUT_SECONDS
        while missing:
            if time.monotonic() > give_up_at:
                raise BenchmarkError(f"{topic} could not be read to its end in {_TIMEOUT_SECONDS:.0f} s")
            for message in consumer.consume(_MOST, timeout=0.2):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                if value is not None:
                    values.append(value)
                if offset >= ends[partition] - 1:
                    missing.discard(partition)
    finally:
        consumer.close()
    return values
