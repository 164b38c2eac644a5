"""Reading what topics contain now: from an instant on, up to the ends at the beginning, without a group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from noonmark.kafka.consumers.ranges import RangeReader

pytestmark = pytest.mark.kafka

NOW = datetime.now(UTC)


@pytest.fixture
def topic(kafka):
    """A topic of two partitions, with a record of each of the last ten hours in the first, oldest first."""
    topic = kafka.topic(partitions=2, **{"message.timestamp.type": "CreateTime"})
    produce(kafka, topic, *range(10, 0, -1))
    return topic


def produce(kafka, topic, *hours_ago):
    producer = Producer(kafka.config.client())
    for hours in hours_ago:
        at = round((NOW - timedelta(hours=hours)).timestamp() * 1000)
        producer.produce(topic, str(hours).encode(), partition=0, timestamp=at)
    assert producer.flush(30) == 0


@pytest.fixture
def reader(kafka, topic):
    reader = RangeReader(kafka.config, [topic])
    kafka.opened.append(reader)
    return reader


def read(reader, most=500):
    found = []
    while not reader.is_done:
        batch = reader.read(most)
        assert len(batch) <= most
        found += [int(message.value()) for message in batch]
    return found


def remove(kafka, topic, before):
    """Delete the records of the first partition below an offset, as retention does."""
    admin = AdminClient(kafka.config.client())
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result()


def since(hours):
    return NOW - timedelta(hours=hours, minutes=1)


def test_records_from_an_instant_on_are_read_in_order(reader, topic):
    reader.open(since(4))

    assert (reader.ranges[topic, 0], reader.ranges[topic, 1]) == ((0, 6, 10), (0, 0, 0))
    assert read(reader) == [4, 3, 2, 1]
    assert reader.read() == []


def test_what_is_published_after_the_opening_is_not_read(kafka, reader, topic):
    reader.open(since(10))
    produce(kafka, topic, 0)

    assert read(reader, most=3) == list(range(10, 0, -1))


def test_nothing_is_read_of_a_topic_without_records_that_are_new_enough(reader, topic):
    reader.open(NOW + timedelta(hours=1))

    assert reader.is_done
    assert reader.ranges[topic, 0] == (0, 10, 10)


def test_records_that_retention_removed_are_not_part_of_the_range(kafka, reader, topic):
    remove(kafka, topic, before=7)
    reader.open(since(10))

    assert reader.ranges[topic, 0] == (7, 7, 10)
    assert read(reader) == [3, 2, 1]


def test_records_that_are_removed_while_they_are_read_end_the_reading_nevertheless(kafka, reader, topic):
    reader.open(since(10))
    remove(kafka, topic, before=10)

    assert len(read(reader)) <= 10


def test_a_topic_that_does_not_exist_is_named(kafka):
    reader = RangeReader(kafka.config, [f"{kafka.name}.none"])
    kafka.opened.append(reader)

    with pytest.raises(KafkaException, match=f"{kafka.name}.none"):
        reader.open(NOW)
