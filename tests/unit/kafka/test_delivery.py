import pytest
from confluent_kafka import KafkaError

from noonmark.kafka.producers.delivery import (
    INVALID_TIMESTAMP,
    DeliveryFailure,
    FailureKind,
    OutboundMessage,
    classify,
    restore_order,
)
from noonmark.kafka.producers.producer import BatchResult

TRANSIENT = DeliveryFailure(FailureKind.TRANSIENT, "_MSG_TIMED_OUT", "late")
PERMANENT = DeliveryFailure(FailureKind.PERMANENT, "MSG_SIZE_TOO_LARGE", "large")


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.INVALID_RECORD,
    ],
)
def test_what_would_fail_again_is_permanent(code):
    failure = classify(KafkaError(code), "runs")
    assert failure.is_permanent
    assert failure.reason.startswith("runs: ")


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._PURGE_QUEUE,
        KafkaError._FATAL,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
def test_what_may_pass_is_transient(code):
    assert not classify(KafkaError(code), "runs").is_permanent


def test_a_refused_time_names_the_clocks_and_may_pass():
    failure = classify(KafkaError(KafkaError.INVALID_TIMESTAMP), "runs")
    assert (failure.is_permanent, failure.code) == (False, INVALID_TIMESTAMP)
    assert "the clock of the database's host" in failure.reason
    assert "message.timestamp.type=LogAppendTime" in failure.reason


def test_the_clients_last_error_is_part_of_the_reason():
    client_error = KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down")
    assert (
        "2/2 brokers are down" in classify(KafkaError(KafkaError._MSG_TIMED_OUT), "runs", client_error).reason
    )


def test_a_batch_result_names_what_was_acknowledged():
    result = BatchResult(4, {1: TRANSIENT, 3: PERMANENT})
    assert not result.all_acknowledged
    assert list(result.acknowledged()) == [0, 2]
    assert BatchResult(4, {}).all_acknowledged


def batch(*keys):
    return [OutboundMessage("t", key, b"") for key in keys]


def test_what_follows_a_failed_message_of_its_key_is_sent_again():
    failed = {1: TRANSIENT}
    restore_order(batch(b"a", b"b", b"a", b"b", b"b", None), [1], failed)
    assert sorted(failed) == [1, 3, 4]
    assert failed[3].code == "OUT_OF_TURN"
    assert not failed[3].is_permanent


def test_a_message_that_failed_for_good_displaces_nothing():
    failed = {0: PERMANENT}
    restore_order(batch(b"a", b"a"), [0], failed)
    assert failed == {0: PERMANENT}


def test_a_message_saved_by_a_second_try_displaces_what_went_before_it():
    failed: dict[int, DeliveryFailure] = {}
    restore_order(batch(b"a", b"a", b"b"), [0], failed)
    assert sorted(failed) == [1]


def test_messages_sent_again_together_keep_their_order():
    failed: dict[int, DeliveryFailure] = {}
    restore_order(batch(b"a", b"a", b"a"), [0, 1, 2], failed)
    assert failed == {}


def test_a_failure_among_those_sent_again_displaces_its_followers():
    failed = {1: TRANSIENT}
    restore_order(batch(b"a", b"a", b"a"), [0, 1, 2], failed)
    assert sorted(failed) == [1, 2]


def test_messages_without_a_key_have_no_order():
    failed = {0: TRANSIENT}
    restore_order(batch(None, None), [0], failed)
    assert sorted(failed) == [0]


def test_messages_of_one_partition_keep_their_order_whatever_their_keys():
    failed = {0: TRANSIENT}
    places = [(b"a", 1), (b"b", 1), (None, 1), (b"a", 2)]
    restore_order([OutboundMessage("t", key, b"", None, at) for key, at in places], [0], failed)
    assert sorted(failed) == [0, 1, 2]
