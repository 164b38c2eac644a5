"""What a publisher says when the broker does not answer. What it publishes is tested on a real one."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from noonmark.client import Publisher, PublishError
from noonmark.core.access.submission_signature import SubmissionSignatureError

NO_BROKER = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 60, "linger.ms": 0, "log_level": 0}
JOB = {"type": "python", "handler": "a.b"}
KEY = "nmp_abcdefghijkl_" + "5" * 64


def test_what_is_not_acknowledged_is_named_by_its_event_id_so_that_it_can_be_sent_again():
    publisher, other = Publisher(NO_BROKER, KEY), Publisher(NO_BROKER)
    other.publish(JOB)
    first, second = publisher.publish(JOB, event_id="order-1"), publisher.pause("nightly", event_id="order-2")
    with pytest.raises(PublishError, match="2 events were not acknowledged") as lost:
        publisher.flush(20)
    assert sorted(event_id for event_id, _ in lost.value.failed) == ["order-1", "order-2"]
    for future in (first, second):
        assert isinstance(future.exception(0), PublishError)
    publisher.close()
    # What went wrong in a block goes before what was not acknowledged.
    with pytest.raises(ZeroDivisionError), other:
        _ = 1 / 0


@pytest.mark.slow
def test_a_full_queue_makes_room_as_its_messages_time_out():
    publisher = Publisher({**NO_BROKER, "queue.buffering.max.messages": 1})
    futures = [publisher.publish(JOB) for _ in range(2)]
    with pytest.raises(PublishError, match="2 events"):
        publisher.close(20)
    assert all(future.exception(0) for future in futures)


def test_what_can_never_be_sent_is_refused_at_once():
    publisher = Publisher({**NO_BROKER, "message.max.bytes": 1000})
    with pytest.raises(PublishError, match="order-1"):
        publisher.publish({**JOB, "payload": "x" * 2000}, event_id="order-1")
    publisher.close()


def test_a_wrong_key_namespace_or_time_is_refused_before_anything_is_sent():
    with pytest.raises(SubmissionSignatureError, match="an API key, which cannot sign"):
        Publisher(NO_BROKER, "nmk_abcdefghijkl_" + "x" * 43)
    with pytest.raises(ValueError, match="use up to 86400"):
        Publisher(NO_BROKER, valid_seconds=100_000)
    publisher = Publisher(NO_BROKER, KEY)
    with pytest.raises(SubmissionSignatureError, match="is not a namespace"):
        publisher.publish({**JOB, "namespace": "Not One"})
    publisher.close()


def test_what_ends_the_producer_fails_what_waits_even_if_its_report_was_lost_with_it(monkeypatch):
    publisher = Publisher(NO_BROKER)
    monkeypatch.setattr(publisher, "_producer", Ending(publisher._producer))
    waiting = publisher.publish(JOB, event_id="order-1")
    told = "an old broker: this publisher can send nothing more, create a new one"
    with pytest.raises(PublishError, match=told):
        publisher.flush(20)
    assert isinstance(waiting.exception(0), PublishError)
    publisher.close()


def test_what_was_not_sent_in_time_fails_when_the_publisher_closes_and_leaves_nobody_waiting():
    publisher = Publisher({**NO_BROKER, "message.timeout.ms": 60_000})
    waiting = publisher.publish(JOB, event_id="order-1")
    with pytest.raises(PublishError, match="no answer in time"):
        publisher.close(0.2)
    assert isinstance(waiting.exception(0), PublishError)


class Ending:
    """A producer whose every poll raises what the client does when reports were served after a fatal error."""

    def __init__(self, producer):
        self._producer = producer

    def __getattr__(self, name):
        return getattr(self._producer, name)

    def __len__(self):
        return 0

    def poll(self, seconds):
        self._producer.poll(seconds)
        ended = SystemError("returned a result with an exception set")
        ended.__cause__ = KafkaException(
            KafkaError(KafkaError.UNSUPPORTED_VERSION, "an old broker", fatal=True)
        )
        raise ended
