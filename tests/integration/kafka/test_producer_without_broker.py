"""What the producer does when no broker is there: the address is a closed port."""

import pytest
from confluent_kafka import KafkaError

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.producers.delivery import UNACKNOWLEDGED_TOPIC, OutboundMessage
from noonmark.kafka.producers.producer import RelayProducer

NOWHERE = KafkaConfig("127.0.0.1:1")
MESSAGES = [OutboundMessage("runs", b"%d" % n, b"value") for n in range(50)]


@pytest.fixture
def waits():
    return []


def test_without_a_broker_every_message_fails_for_now(waits):
    producer = RelayProducer(NOWHERE, delivery_timeout_seconds=0.5, on_wait=waits.append)
    result = producer.send_batch(MESSAGES)
    assert len(result.failed) == 50
    assert {f.is_permanent for f in result.failed.values()} == {False}
    assert list(result.acknowledged()) == []
    assert waits
    assert waits == sorted(waits)
    producer.close(0.1)


def test_a_stop_ends_the_wait_and_gives_every_message_back(waits):
    producer = RelayProducer(
        NOWHERE, delivery_timeout_seconds=300, should_stop=lambda: len(waits) >= 2, on_wait=waits.append
    )
    result = producer.send_batch(MESSAGES)
    assert len(result.failed) == 50
    assert {f.is_permanent for f in result.failed.values()} == {False}
    assert len(waits) < 10
    producer.close(0.1)


def test_a_full_local_queue_holds_the_caller_and_loses_nothing(waits):
    producer = RelayProducer(
        NOWHERE,
        delivery_timeout_seconds=0.5,
        on_wait=waits.append,
        properties={"queue.buffering.max.messages": 10},
    )
    result = producer.send_batch(MESSAGES[:20])
    assert sorted(result.failed) == list(range(20))
    producer.close(0.1)


def test_a_fatal_error_is_answered_with_a_new_producer():
    producer = RelayProducer(NOWHERE, delivery_timeout_seconds=0.2)
    before = producer._producer
    producer._client_error(KafkaError(KafkaError._FATAL, "out of sequence", fatal=True))
    result = producer.send_batch(MESSAGES[:1])
    assert producer._producer is not before
    assert [f.is_permanent for f in result.failed.values()] == [False]
    producer.close(0.1)


@pytest.mark.parametrize("answers", [False, True])
def test_a_topic_is_blamed_for_a_timeout_only_if_the_cluster_answers(answers, monkeypatch):
    producer = RelayProducer(NOWHERE, delivery_timeout_seconds=0.5, blame_topics=True)
    if answers:
        # A partition without a leader: brokers list its topic, but none acknowledges its messages.
        monkeypatch.setattr(producer, "_list_topics", lambda: {"runs": 3})
    failed = producer.send_batch(MESSAGES[:3]).failed
    assert {f.is_permanent for f in failed.values()} == {False}
    assert {f.code == UNACKNOWLEDGED_TOPIC for f in failed.values()} == {answers}
    producer.close(0.1)
