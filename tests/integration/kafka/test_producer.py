import os
import subprocess
import sys
import time
import uuid

import pytest
from tests.integration.kafka.conftest import take
from tests.support.clocks.turned import NoCompilerError, TurnedClock, compile_library

from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.producers.delivery import INVALID_TIMESTAMP, OutboundMessage
from noonmark.kafka.topics import Topics, TopicSpec

pytestmark = pytest.mark.kafka

SEND = """
import sys
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.producers.delivery import OutboundMessage
from noonmark.kafka.producers.producer import RelayProducer

_, bootstrap, *topics = sys.argv
producer = RelayProducer(KafkaConfig(bootstrap), delivery_timeout_seconds=20)
result = producer.send_batch([OutboundMessage(topic, b"k", b"v") for topic in topics])
producer.close()
sys.exit("; ".join(failure.reason for failure in result.failed.values()) or 0)
"""


def good(topic, count):
    return [OutboundMessage(topic, uuid.uuid4().bytes, str(n).encode()) for n in range(count)]


def values(records):
    return [int(record.value) for record in records]


def test_messages_come_back_as_they_went_in_the_order_of_their_key(kafka):
    topic = kafka.topic(partitions=3)
    messages = [OutboundMessage(topic, b"key-%d" % (n % 7), str(n).encode()) for n in range(2000)]
    producer = kafka.producer()
    for start in range(0, 2000, 500):
        assert producer.send_batch(messages[start : start + 500]).all_acknowledged
    records = take(kafka.consumer(topic), 2000)
    assert sorted(values(records)) == list(range(2000))
    for key in {record.key for record in records}:
        of_key = [int(r.value) for r in records if r.key == key]
        assert of_key == sorted(of_key)
    assert all(abs(record.timestamp_ms / 1000 - time.time()) < 60 for record in records)


def test_a_message_for_an_unknown_topic_fails_alone_and_soon(kafka, monkeypatch):
    topic = kafka.topic()
    producer = kafka.producer(delivery_timeout_seconds=60)
    assert producer.send_batch(good(topic, 1)).all_acknowledged
    batch = good(topic, 1000)
    batch.insert(500, OutboundMessage(f"{kafka.name}.absent", b"k", b"v"))
    started = time.monotonic()
    result = producer.send_batch(batch)
    assert time.monotonic() - started < 30
    assert list(result.failed) == [500]
    assert result.failed[500].is_permanent
    assert "topic does not exist" in result.failed[500].reason
    # The second time the topic is known to be absent: nothing waits.
    held = []
    monkeypatch.setattr(producer, "_send_held", lambda *these: held.append(these))
    assert list(producer.send_batch(batch).failed) == [500]
    assert held == []
    assert len(take(kafka.consumer(topic), 2001)) == 2001


def test_without_holding_an_unseen_topic_fails_for_now_and_then_for_good_and_nobody_waits(kafka):
    topic = kafka.topic()
    producer = kafka.producer(hold_unseen=False)
    batch = [*good(topic, 10), OutboundMessage(f"{kafka.name}.absent", b"k", b"v")]
    first = producer.send_batch(batch)
    assert [(i, f.code, f.is_permanent) for i, f in first.failed.items()] == [
        (10, "UNCONFIRMED_TOPIC", False)
    ]
    deadline = time.monotonic() + 20
    while not (again := producer.send_batch(batch[10:])).failed[0].is_permanent:
        assert again.failed[0].code == "UNCONFIRMED_TOPIC"
        assert time.monotonic() < deadline
    assert len(take(kafka.consumer(topic), 10)) == 10


def test_a_topic_made_just_after_the_first_look_gets_its_messages(kafka):
    topic = f"{kafka.name}.late"
    producer = kafka.producer(
        on_wait=lambda _waited: ensure_topics(kafka.config, [TopicSpec(topic, 1, 1)]),
    )
    assert producer.send_batch(good(topic, 3)).all_acknowledged


@pytest.mark.slow
def test_a_topic_deleted_in_use_fails_for_good_and_works_again_when_made_anew(kafka):
    topic, gone = kafka.topic(), kafka.topic("gone")
    producer = kafka.producer()
    assert producer.send_batch(good(gone, 3)).all_acknowledged
    kafka.delete(gone)
    deadline = time.monotonic() + 60
    # Until every part of the broker knows of the deletion, its failure may be for now only.
    while True:
        failed = producer.send_batch(good(topic, 100) + good(gone, 2)).failed
        assert set(failed) <= {100, 101}
        if len(failed) == 2 and all(failure.is_permanent for failure in failed.values()):
            break
        assert time.monotonic() < deadline
    kafka.topic("gone")
    deadline = time.monotonic() + 60
    while producer.send_batch(good(gone, 1)).failed:
        assert time.monotonic() < deadline


def test_one_oversized_message_fails_alone_in_a_request_the_broker_refuses(kafka):
    topic = kafka.topic(**{"max.message.bytes": "2000"})
    batch = [OutboundMessage(topic, b"%d" % (n % 5), os.urandom(50)) for n in range(200)]
    batch[30] = OutboundMessage(topic, b"0", os.urandom(3000))
    result = kafka.producer().send_batch(batch)
    permanent = [index for index, failure in result.failed.items() if failure.is_permanent]
    assert permanent == [30]
    assert all(failure.code == "OUT_OF_TURN" for index, failure in result.failed.items() if index != 30)


def test_a_message_larger_than_the_client_allows_fails_alone(kafka):
    topic = kafka.topic()
    batch = good(topic, 10)
    batch[4] = OutboundMessage(topic, b"k", b"x" * 2_000_000)
    result = kafka.producer().send_batch(batch)
    assert list(result.failed) == [4]
    assert result.failed[4].is_permanent


def test_an_impossible_topic_name_fails_for_good(kafka):
    topic = kafka.topic()
    result = kafka.producer().send_batch([*good(topic, 2), OutboundMessage("not a topic!", None, b"v")])
    assert list(result.failed) == [2]
    assert result.failed[2].is_permanent


def test_a_batch_larger_than_the_local_queue_goes_out_whole(kafka):
    topic = kafka.topic()
    producer = kafka.producer(properties={"queue.buffering.max.messages": 20})
    assert producer.send_batch(good(topic, 2000)).all_acknowledged
    assert sorted(values(take(kafka.consumer(topic), 2000))) == list(range(2000))


def test_headers_travel_with_the_message(kafka):
    topic = kafka.topic()
    message = OutboundMessage(topic, b"k", b"1", [("traceparent", b"00-ab"), ("empty", None)])
    assert kafka.producer().send_batch([message]).all_acknowledged
    (record,) = take(kafka.consumer(topic, headers=True), 1)
    assert record.headers == [("traceparent", b"00-ab"), ("empty", None)]


def test_an_empty_batch_is_fine(kafka):
    assert kafka.producer().send_batch([]).all_acknowledged


@pytest.mark.parametrize("hours", [2, -2, 24 * 40])
def test_a_client_whose_clock_is_wrong_can_write_to_every_topic(kafka, tmp_path, hours):
    specs = Topics(kafka.name).topic_specs(["default"])
    specs += Topics(kafka.name).submission_specs([f"{kafka.name}.bound"])
    ensure_topics(kafka.config, specs)
    try:
        clock = TurnedClock(compile_library(tmp_path), tmp_path / "clock")
    except NoCompilerError as error:
        pytest.skip(str(error))
    clock.turn(hours * 3600)
    command = [sys.executable, "-c", SEND, kafka.config.bootstrap, *(spec.name for spec in specs)]
    sent = subprocess.run(
        command, env=os.environ | clock.environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert sent.returncode == 0, sent.stderr


def test_a_topic_with_the_time_of_its_producers_refuses_a_wrong_one_and_keeps_a_given_one(kafka):
    topic = kafka.topic(**{"message.timestamp.type": "CreateTime"})
    producer, now_ms = kafka.producer(), int(time.time() * 1000)
    wrong = OutboundMessage(topic, b"k", b"1", timestamp_ms=now_ms + 2 * 3600 * 1000)
    failure = producer.send_batch([wrong]).failed[0]
    assert (failure.code, failure.is_permanent) == (INVALID_TIMESTAMP, False)

    assert producer.send_batch([OutboundMessage(topic, b"k", b"2", timestamp_ms=now_ms - 5)]).all_acknowledged
    (record,) = take(kafka.consumer(topic), 1)
    assert (record.value, record.timestamp_ms) == (b"2", now_ms - 5)
