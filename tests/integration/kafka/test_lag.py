import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.kafka.conftest import take

from noonmark.core.states import Lane
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag.backlog_reader import READ_RECORDS
from noonmark.kafka.lag.lag import LagProbe, LagUnavailable
from noonmark.kafka.lag.marks import Passage, TopicMarks
from noonmark.kafka.messages import RUNS_PER_MESSAGE, QueuedRun, Signer, encode_runs
from noonmark.kafka.producers.delivery import OutboundMessage

pytestmark = pytest.mark.kafka


@pytest.fixture
def probe(kafka):
    probe = LagProbe(kafka.config)
    yield probe
    probe.close()


def total(lags, name):
    return sum(getattr(lag, name) for lag in lags)


def wait_until_measurable(probe, group, topic, within=30.0):
    """A topic just made anew may for a moment be looked for where the old one was led."""
    deadline = time.monotonic() + within
    while (report := probe.measure_all([(group, topic)])).failed:
        assert time.monotonic() < deadline, report.failed


def test_lag_is_measured_although_no_consumer_ever_lived(kafka, probe):
    topic = kafka.topic(partitions=3)
    before = time.time()
    kafka.publish(topic, 90)
    lags = probe.measure(f"{kafka.name}.group", topic)
    assert [lag.partition for lag in lags] == [0, 1, 2]
    assert [lag.committed for lag in lags] == [None, None, None]
    assert total(lags, "start_backlog") == total(lags, "commit_lag") == 90
    for lag in lags:
        assert before - 1 <= lag.oldest_unstarted_timestamp_ms / 1000 <= time.time() + 1


def test_the_two_lags_and_the_age_follow_the_consumer(kafka, probe):
    topic, group = kafka.topic(), f"{kafka.name}.group"
    kafka.publish(topic, 10)
    consumer = kafka.consumer(topic)
    records = take(consumer, 10)
    consumer.started(records[:8])
    consumer.settle(records[:3])
    kafka.close(consumer)
    (lag,) = probe.measure(group, topic)
    assert (lag.committed, lag.next, lag.start_backlog, lag.commit_lag, lag.position) == (3, 8, 2, 7, 3)
    assert lag.oldest_unstarted_timestamp_ms == records[8].timestamp_ms
    consumer = kafka.consumer(topic)
    consumer.settle(take(consumer, 7))
    kafka.close(consumer)
    (lag,) = probe.measure(group, topic)
    assert (lag.committed, lag.start_backlog, lag.commit_lag) == (10, 0, 0)
    assert lag.oldest_unstarted_timestamp_ms is None


def test_the_age_is_read_again_when_the_consumer_has_moved_on(kafka, probe):
    topic, group = kafka.topic(), f"{kafka.name}.group"
    kafka.publish(topic, 10)
    (first,) = probe.measure(group, topic)
    consumer = kafka.consumer(topic)
    records = take(consumer, 10)
    consumer.settle(records[:6])
    kafka.close(consumer)
    (second,) = probe.measure(group, topic)
    assert first.oldest_unstarted_timestamp_ms == records[0].timestamp_ms
    assert (second.next, second.oldest_unstarted_timestamp_ms) == (6, records[6].timestamp_ms)


def test_the_age_is_read_once_per_position(kafka, probe, monkeypatch):
    topic, group = kafka.topic(partitions=6), f"{kafka.name}.group"
    kafka.publish(topic, 600)
    first = probe.measure(group, topic)
    monkeypatch.setattr(probe._reader, "_new_reader", lambda: pytest.fail("nothing must be read again"))
    probe._reader.close()
    assert probe.measure(group, topic) == first


def test_the_probe_joins_no_group_and_commits_nothing(kafka, probe):
    topic, group = kafka.topic(), f"{kafka.name}.group"
    kafka.publish(topic, 5)
    probe.measure(group, topic)
    groups = AdminClient(kafka.config.client()).list_consumer_groups().result().valid
    assert not [g for g in groups if g.group_id in (group, f"{kafka.config.topic_prefix}.lag-probe")]


def test_a_topic_that_does_not_exist_fails_alone(kafka, probe):
    topic, group = kafka.topic(), f"{kafka.name}.group"
    kafka.publish(topic, 5)
    report = probe.measure_all([(group, topic), (group, f"{kafka.name}.absent")])
    assert list(report.lags) == [(group, topic)]
    assert "Unknown topic" in report.failed[group, f"{kafka.name}.absent"]
    with pytest.raises(LagUnavailable, match="absent"):
        probe.measure(group, f"{kafka.name}.absent")


def test_a_broker_that_is_away_is_said_within_the_bound():
    probe = LagProbe(KafkaConfig("127.0.0.1:1"), timeout_seconds=0.5)
    started = time.monotonic()
    with pytest.raises(LagUnavailable):
        probe.measure("any", "any")
    assert time.monotonic() - started < 5
    probe.close()


def test_marks_prove_what_a_group_has_passed_and_what_went_with_its_topic(kafka, probe):
    topic, group, marks = kafka.topic(partitions=2), f"{kafka.name}.group", TopicMarks()

    def observe():
        marked_at = datetime.now(UTC)
        lags = probe.measure(group, topic)
        lost = marks.observe(marked_at, {lag.partition: lag.end for lag in lags}, lags[0].topic_id)
        return marked_at, lost, {lag.partition: lag.position for lag in lags}

    kafka.publish(topic, 20)
    first, _, positions = observe()
    assert marks.passed(positions).until is None
    consumer = kafka.consumer(topic)
    consumer.settle(take(consumer, 20))
    kafka.close(consumer)
    kafka.publish(topic, 5)
    second, _, positions = observe()
    assert marks.passed(positions).until == first
    kafka.delete(topic)
    kafka.topic(partitions=2)
    wait_until_measurable(probe, group, topic)
    kafka.publish(topic, 5)
    third, lost, positions = observe()
    assert lost
    # What was acknowledged up to the last look at the old topic is gone; the rest may be in the new one.
    assert second < third
    assert marks.passed(positions) == Passage(second, lost=True)


def test_a_backlog_of_runs_is_counted_in_runs(kafka):
    config = KafkaConfig(kafka.config.bootstrap, topic_prefix=kafka.name)
    topic, group = kafka.topic("runs.default.normal", partitions=2), f"{kafka.name}.group"
    signer = Signer({"k": b"x" * 32}, "k")

    def message(runs, partition):
        queued = [
            QueuedRun(uuid4(), uuid4(), "n", datetime(2026, 6, 1, tzinfo=UTC), 1, 1) for _ in range(runs)
        ]
        value = encode_runs(signer, queued, pool="default", lane=Lane.NORMAL)
        return OutboundMessage(topic, None, value, None, partition)

    sizes = [64, 1, 17] * 20
    producer = kafka.producer()
    assert producer.send_batch([message(runs, 0) for runs in sizes]).all_acknowledged
    probe = LagProbe(config)
    try:
        first, second = probe.measure(group, topic)
        assert (first.start_backlog, first.commit_lag) == (sum(sizes), len(sizes))
        assert (second.start_backlog, second.commit_lag) == (0, 0)

        assert producer.send_batch([message(5, 0), message(3, 1)]).all_acknowledged
        first, second = probe.measure(group, topic)
        assert (first.start_backlog, second.start_backlog) == (sum(sizes) + 5, 3)
    finally:
        probe.close()


def test_a_long_backlog_of_runs_is_estimated_at_once_and_counted_in_time(kafka):
    config = KafkaConfig(kafka.config.bootstrap, topic_prefix=kafka.name)
    topic, group = kafka.topic("runs.default.low"), f"{kafka.name}.group"
    kafka.publish(topic, 3 * READ_RECORDS)
    probe = LagProbe(config)
    try:
        for _ in range(4):
            (lag,) = probe.measure(group, topic)
            assert lag.start_backlog == 3 * READ_RECORDS
        assert probe._reader._known[lag.topic_id, 0, False].upto == 3 * READ_RECORDS
    finally:
        probe.close()


def test_the_first_measurement_counts_the_runs_of_some_hundred_messages(kafka):
    config = KafkaConfig(kafka.config.bootstrap, topic_prefix=kafka.name)
    topic, group = kafka.topic("runs.default.high"), f"{kafka.name}.group"
    signer = Signer({"k": b"x" * 32}, "k")
    at = datetime(2026, 6, 1, tzinfo=UTC)
    runs = [QueuedRun(uuid4(), uuid4(), "n", at, 1, 1) for _ in range(RUNS_PER_MESSAGE)]
    value = encode_runs(signer, runs, pool="default", lane=Lane.HIGH)
    kafka.publish(topic, 200)
    producer = kafka.producer()
    assert producer.send_batch([OutboundMessage(topic, None, value) for _ in range(200)]).all_acknowledged
    probe = LagProbe(config)
    try:
        (lag,) = probe.measure(group, topic)
    finally:
        probe.close()
    assert lag.start_backlog == 200 + 200 * RUNS_PER_MESSAGE


def test_a_run_that_does_not_start_does_not_make_those_behind_it_wait(kafka, probe):
    topic, group = kafka.topic(), f"{kafka.name}.group"
    kafka.publish(topic, 50)
    consumer = kafka.consumer(topic)
    records = take(consumer, 50)
    parts = consumer.split(records[3], 10)
    consumer.settle([record for record in records if record is not records[3]])
    consumer.settle(parts[1:])
    kafka.close(consumer)
    kafka.publish(topic, 7)
    (lag,) = probe.measure(group, topic)
    assert (lag.committed, lag.next, lag.read, lag.waiting) == (3, 3, 50, 1)
    assert (lag.start_backlog, lag.commit_lag) == (8, 54)
    assert lag.oldest_unstarted_timestamp_ms == records[3].timestamp_ms
