"""What a publisher says when the broker does not answer. What it publishes is tested on a real one."""

from __future__ import annotations

import pytest

from noonmark.client import Publisher, PublishError
from noonmark.core.access.submission_signature import SubmissionSignatureError

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 60, "linger.ms": 0, "log_level": 0}
JOB = {"type": "python", "handler": "a.b"}
KEY = "nmp_abcdefghijkl_" + "5" * 64


def test_what_is_not_acknowledged_is_named_by_its_event_id_so_that_it_can_be_sent_again():
    publisher, other = Publisher(NOBODY, KEY), Publisher(NOBODY)
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
    publisher = Publisher({**NOBODY, "queue.buffering.max.messages": 1})
    futures = [publisher.publish(JOB) for _ in range(2)]
    with pytest.raises(PublishError, match="2 events"):
        publisher.close(20)
    assert all(future.exception(0) for future in futures)


def test_what_can_never_be_sent_is_refused_at_once():
    publisher = Publisher({**NOBODY, "message.max.bytes": 1000})
    with pytest.raises(PublishError, match="order-1"):
        publisher.publish({**JOB, "payload": "x" * 2000}, event_id="order-1")
    publisher.close()


def test_a_wrong_key_namespace_or_time_is_refused_before_anything_is_sent():
    with pytest.raises(SubmissionSignatureError, match="an API key, which cannot sign"):
        Publisher(NOBODY, "nmk_abcdefghijkl_" + "x" * 43)
    with pytest.raises(ValueError, match="use up to 86400"):
        Publisher(NOBODY, valid_seconds=100_000)
    publisher = Publisher(NOBODY, KEY)
    with pytest.raises(SubmissionSignatureError, match="is not a namespace"):
        publisher.publish({**JOB, "namespace": "Not One"})
    publisher.close()
