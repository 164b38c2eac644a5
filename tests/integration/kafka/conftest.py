"""Topics and clients of the Kafka tests. `kafka_server` starts the broker (tests/conftest.py)."""

import time
import uuid

import pytest
from confluent_kafka.admin import AdminClient

from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.producers.delivery import OutboundMessage
from noonmark.kafka.producers.producer import RelayProducer
from noonmark.kafka.topics import TopicSpec


class Kafka:
    """A broker, a name no other test uses, and everything opened on the way."""

    def __init__(self, bootstrap, protocol):
        self.config = KafkaConfig(bootstrap, group_protocol=protocol)
        self.name = f"test-{uuid.uuid4().hex[:12]}"
        self.opened = []

    def topic(self, suffix="runs", partitions=1, **config):
        name = f"{self.name}.{suffix}"
        settings = {"message.timestamp.type": "LogAppendTime"} | config
        ensure_topics(self.config, [TopicSpec(name, partitions, 1, settings)])
        return name

    def delete(self, topic):
        admin = AdminClient(self.config.client())
        admin.delete_topics([topic])[topic].result()

    def producer(self, **options):
        return self._keep(RelayProducer(self.config, **options))

    def consumer(self, topic, **options):
        properties = {"heartbeat.interval.ms": 500} if self.config.group_protocol == "classic" else {}
        options = {
            "commit_interval_seconds": 0.05,
            "pause_grace_seconds": 0.1,
            "properties": properties,
        } | options
        return self._keep(BatchConsumer(self.config, topic, f"{self.name}.group", **options))

    def publish(self, topic, count, start=0):
        """Publish numbered messages; their values are their numbers."""
        numbers = range(start, start + count)
        messages = [OutboundMessage(topic, uuid.uuid4().bytes, str(n).encode()) for n in numbers]
        assert self.producer().send_batch(messages).all_acknowledged

    def close(self, client):
        self.opened.remove(client)
        client.close()

    def _keep(self, client):
        self.opened.append(client)
        return client


@pytest.fixture(params=["consumer", "classic"])
def group_protocol(request):
    return request.param


@pytest.fixture
def kafka(kafka_server):
    yield from _kafka(kafka_server, "consumer")


@pytest.fixture
def kafka_by_protocol(kafka_server, group_protocol):
    yield from _kafka(kafka_server, group_protocol)


def _kafka(server, protocol):
    kafka = Kafka(server.bootstrap, protocol)
    yield kafka
    for client in kafka.opened:
        client.close()


def poll_until(condition, *consumers, within=30.0, max_records=1000, each=None):
    """Poll the consumers until the condition holds; return the records they gave, per consumer."""
    received = [[] for _ in consumers]
    deadline = time.monotonic() + within
    while not condition(*received):
        assert time.monotonic() < deadline, f"not within {within} s; received {[len(r) for r in received]}"
        for consumer, records in zip(consumers, received, strict=True):
            batch = consumer.poll_batch(max_records, 0.02)
            if each:
                each(consumer, batch)
            records.extend(batch)
    return received[0] if len(consumers) == 1 else received


def take(consumer, count, **options):
    """Poll until exactly `count` records have come."""
    records = poll_until(lambda got: len(got) >= count, consumer, **options)
    assert len(records) == count
    return records
