import logging

import pytest

from noonmark.kafka.client_log import CLIENT_LOGGER, Repeats

REFUSED = (
    "[thrd:{0}/bootstrap]: {0}/bootstrap: Connect to ipv4#{0} failed: refused (after {1}ms in state CONNECT)"
)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def shown(clock):
    """Log as librdkafka's binding does; return the text that is shown, or None."""
    repeats = Repeats(10.0, clock)

    def log(text, client="noonmark-relay#producer-1", level=logging.ERROR):
        record = logging.LogRecord("any", level, __file__, 1, "%s [%s] %s", ("FAIL", client, text), None)
        return record.getMessage() if repeats.filter(record) else None

    return log


def test_a_line_that_repeats_is_shown_once_in_ten_seconds_with_the_number_left_out(shown, clock):
    assert shown(REFUSED.format("127.0.0.1:1", 0)).endswith("in state CONNECT)")
    for took in range(7):
        clock.now += 1
        assert shown(REFUSED.format("127.0.0.1:1", took)) is None
    clock.now += 3
    assert shown(REFUSED.format("127.0.0.1:1", 0)).endswith("in state CONNECT) (7 more like this since)")
    clock.now += 10
    assert shown(REFUSED.format("127.0.0.1:1", 0)).endswith("in state CONNECT)")


def test_the_next_client_of_the_same_name_says_nothing_new(shown):
    assert shown("brokers are down", client="noonmark-lag#producer-1")
    assert shown("brokers are down", client="noonmark-lag#producer-2") is None
    assert shown("brokers are down", client="noonmark-relay#producer-3")


def test_another_broker_another_text_and_another_level_are_shown(shown):
    assert shown(REFUSED.format("127.0.0.1:1", 0))
    assert shown(REFUSED.format("127.0.0.1:2", 0))
    assert shown("Disconnected")
    assert shown("Disconnected", level=logging.CRITICAL)


def test_what_is_no_complaint_is_always_shown(shown):
    assert [shown("request", level=logging.DEBUG) for _ in range(3)] == [
        "FAIL [noonmark-relay#producer-1] request"
    ] * 3


def test_lines_without_end_fill_no_memory(shown, clock):
    repeats = Repeats(10.0, clock)
    for number in range(5000):
        clock.now += 0.001
        repeats.filter(logging.LogRecord("any", logging.ERROR, __file__, 1, f"line {number}", (), None))
    assert len(repeats._shown) <= 500


def test_the_logger_of_the_clients_has_the_filter():
    assert [type(one) for one in CLIENT_LOGGER.filters] == [Repeats]
