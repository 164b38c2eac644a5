import threading
import time

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.kafka.conftest import poll_until, take
from tests.support.commits import Commits

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.membership import coordinator_answers
from noonmark.kafka.lag.lag import LagProbe
from noonmark.kafka.producers.delivery import OutboundMessage

pytestmark = pytest.mark.kafka


def committed(kafka):
    """Return (topic, partition) to (offset, metadata), as the brokers keep it."""
    topics = AdminClient(kafka.config.client()).list_topics(timeout=30).topics
    places = [(n, p) for n, t in topics.items() if n.startswith(f"{kafka.name}.") for p in t.partitions]
    commits = Commits(kafka.config.bootstrap)
    try:
        found = commits.of(f"{kafka.name}.group", places)
    finally:
        commits.close()
    return {place: (held.offset, held.metadata.split(";")[0]) for place, held in found.items()}


def numbers(records):
    return sorted(int(record.value) for record in records)


def settle_all(consumer, batch):
    consumer.settle(batch)


def test_a_batch_is_what_is_there_and_no_wait_fills_it(kafka):
    topic = kafka.topic()
    kafka.publish(topic, 100)
    consumer = kafka.consumer(topic)
    take(consumer, 100)
    kafka.publish(topic, 3, start=100)
    started = time.monotonic()
    assert len(consumer.poll_batch(1000, 60)) <= 3
    assert time.monotonic() - started < 60
    assert consumer.poll_batch(1000, 0.01) is not None


def test_a_batch_is_never_larger_than_asked(kafka):
    topic = kafka.topic(partitions=3)
    kafka.publish(topic, 500)
    consumer = kafka.consumer(topic)
    sizes = []
    take(consumer, 500, max_records=7, each=lambda _c, batch: sizes.append(len(batch)))
    assert max(sizes) == 7


def test_only_the_contiguous_part_is_committed(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic()
    kafka.publish(topic, 10)
    consumer = kafka.consumer(topic)
    records = take(consumer, 10)
    consumer.started(records[:8])
    consumer.settle(records[:3] + records[4:7])
    consumer.flush()
    assert committed(kafka)[topic, 0] == (3, "next=8")
    consumer.settle(records[3:4])
    consumer.flush()
    assert committed(kafka)[topic, 0] == (7, "next=8")
    consumer.settle(records)
    consumer.flush()
    assert committed(kafka)[topic, 0] == (10, "next=10")


def test_commits_go_out_by_themselves_while_polling(kafka):
    topic = kafka.topic()
    kafka.publish(topic, 5)
    consumer = kafka.consumer(topic)
    records = take(consumer, 5)
    consumer.settle(records[:2])
    consumer.started(records[:4])
    poll_until(lambda _: consumer.counters.commits >= 1, consumer)
    assert committed(kafka)[topic, 0] == (2, "next=4")
    # Nothing settled since, only started: the metadata follows, within about a second.
    consumer.started(records)
    before = consumer.counters.commits
    poll_until(lambda _: consumer.counters.commits > before, consumer)
    assert committed(kafka)[topic, 0] == (2, "next=5")


def test_what_was_not_settled_comes_again_after_a_close(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic()
    kafka.publish(topic, 10)
    first = kafka.consumer(topic)
    records = take(first, 10)
    first.settle([*records[:4], records[6]])
    kafka.close(first)
    assert not first.is_current(records[5])
    again = take(kafka.consumer(topic), 6)
    assert numbers(again) == [4, 5, 6, 7, 8, 9]


def test_what_was_settled_just_before_the_close_does_not_come_again(kafka):
    topic = kafka.topic()
    kafka.publish(topic, 10)
    first = kafka.consumer(topic, commit_interval_seconds=3600)
    first.settle(take(first, 10))
    kafka.close(first)
    kafka.publish(topic, 1, start=10)
    assert numbers(take(kafka.consumer(topic), 1)) == [10]


def test_a_full_window_holds_only_its_own_partition(kafka):
    topic = kafka.topic(partitions=2)
    kafka.publish(topic, 4000)
    consumer = kafka.consumer(topic, max_in_flight=100)
    held = []

    def keep_the_first_of_partition_zero(_consumer, batch):
        for record in batch:
            if record.partition == 0 and not held:
                held.append(record)
        consumer.settle([record for record in batch if record not in held])

    def the_other_is_through(got):
        return sum(record.partition == 1 for record in got) == total[1]

    probe = LagProbe(kafka.config)
    total = {lag.partition: lag.end for lag in probe.measure(f"{kafka.name}.nobody", topic)}
    probe.close()
    received = poll_until(
        the_other_is_through, consumer, max_records=50, each=keep_the_first_of_partition_zero
    )
    stuck = sum(record.partition == 0 for record in received)
    assert stuck <= 150
    consumer.settle(held)
    rest = total[0] - stuck
    more = poll_until(lambda got: len(got) >= rest, consumer, each=settle_all)
    assert len(more) == rest
    assert numbers(received + more) == list(range(4000))


@pytest.mark.parametrize("pause_grace_seconds", [0.0, 60.0], ids=["fetching-stops", "buffer-stays"])
def test_nothing_comes_in_a_pause_and_nothing_is_dropped_by_it(kafka, pause_grace_seconds):
    topic = kafka.topic(partitions=3)
    kafka.publish(topic, 3000)
    consumer = kafka.consumer(topic, pause_grace_seconds=pause_grace_seconds)
    records = poll_until(lambda got: len(got) >= 100, consumer, max_records=100)
    for _ in range(5):
        consumer.pause()
        assert consumer.is_paused
        for _ in range(10):
            assert consumer.poll_batch(100, 0.01) == []
        consumer.resume()
        seen = len(records)
        records += poll_until(lambda got: len(got) >= 100, consumer, max_records=100)
        assert len(records) > seen
    records += take(consumer, 3000 - len(records))
    assert numbers(records) == list(range(3000))


def test_a_poll_for_nothing_takes_nothing(kafka):
    topic = kafka.topic()
    kafka.publish(topic, 10)
    consumer = kafka.consumer(topic)
    poll_until(lambda _: bool(consumer.assigned), consumer, max_records=0)
    for _ in range(20):
        assert consumer.poll_batch(0, 0.01) == []
    assert len(take(consumer, 10)) == 10


def test_a_resume_from_another_thread_wakes_a_poll_that_waits(kafka):
    topic = kafka.topic()
    consumer = kafka.consumer(topic, pause_grace_seconds=60)
    poll_until(lambda _: bool(consumer.assigned), consumer)
    kafka.publish(topic, 1)
    consumer.pause()
    timer = threading.Timer(0.2, consumer.resume)
    timer.start()
    started = time.monotonic()
    while not consumer.poll_batch(10, 60):
        assert time.monotonic() - started < 60
    timer.join()


def test_a_pause_holds_through_a_rebalance(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic(partitions=4)
    first = kafka.consumer(topic)
    poll_until(lambda _: len(first.assigned) == 4, first)
    first.pause()
    second = kafka.consumer(topic)
    # The second takes some partitions, then leaves: they come back to the first, which is paused.
    poll_until(lambda *_: len(first.assigned) == 2 and len(second.assigned) == 2, first, second, within=60)
    kafka.publish(topic, 400)
    kafka.close(second)
    assert poll_until(lambda _: len(first.assigned) == 4, first, within=60) == []
    for _ in range(20):
        assert first.poll_batch(100, 0.01) == []
    assert first.counters.lost == 0
    # Free again: every partition is read, none stays paused in silence.
    first.resume()
    records = poll_until(lambda got: len({(r.partition, r.offset) for r in got}) == 400, first)
    assert {record.partition for record in records} == {0, 1, 2, 3}


def test_a_partition_that_left_while_paused_is_read_when_it_comes_back(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic(partitions=2)
    first = kafka.consumer(topic, pause_grace_seconds=0)
    poll_until(lambda _: len(first.assigned) == 2, first)
    first.pause()
    second = kafka.consumer(topic)
    poll_until(lambda *_: len(first.assigned) == 1 and len(second.assigned) == 1, first, second, within=60)
    first.resume()
    poll_until(lambda *_: True, first, second)
    kafka.close(second)
    poll_until(lambda _: len(first.assigned) == 2, first, within=60)
    kafka.publish(topic, 200)
    records = take(first, 200)
    assert {record.partition for record in records} == {0, 1}


def test_a_rebalance_commits_what_is_settled_and_voids_what_is_in_hand(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic(partitions=4)
    kafka.publish(topic, 400)
    first = kafka.consumer(topic, commit_interval_seconds=3600)
    mine = take(first, 400)
    settled = [record for record in mine if record.offset % 10 != 5 or record.offset < 50]
    first.settle(settled)
    second = kafka.consumer(topic)
    theirs = []
    poll_until(
        lambda *_: len(first.assigned) == 2 and len(second.assigned) == 2,
        first,
        second,
        within=60,
        each=lambda consumer, batch: theirs.extend(batch) if consumer is second else None,
    )
    gone = {(topic, p) for p in range(4)} - first.assigned
    assert second.assigned == gone
    assert all(first.is_current(record) == ((topic, record.partition) in first.assigned) for record in mine)
    # The second starts at the first record without a verdict, not at the highest one seen.
    expected = {
        (record.partition, record.offset)
        for record in mine
        if (topic, record.partition) in gone and record.offset >= 55
    }
    theirs += poll_until(lambda _a, got: len(theirs) + len(got) >= len(expected), first, second)[1]
    assert {(record.partition, record.offset) for record in theirs} == expected
    # Marks for partitions that moved change nothing.
    before = committed(kafka)
    first.settle(mine)
    first.flush()
    after = committed(kafka)
    assert {held: after[held] for held in gone} == {held: before[held] for held in gone}
    assert first.counters.late_marks > 0


def test_two_consumers_share_a_burst_and_every_record_is_settled_once(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic(partitions=6)
    consumers = [kafka.consumer(topic), kafka.consumer(topic)]
    poll_until(lambda *_: all(len(c.assigned) == 3 for c in consumers), *consumers, within=60)
    kafka.publish(topic, 3000)
    got = poll_until(lambda a, b: len(a) + len(b) >= 3000, *consumers, each=settle_all)
    assert numbers(got[0] + got[1]) == list(range(3000))
    for consumer in consumers:
        consumer.flush()
    marks = committed(kafka)
    assert sum(offset for offset, _ in marks.values()) == 3000


def test_records_that_are_no_messages_of_ours_are_handed_out_like_any(kafka):
    topic = kafka.topic()
    bodies = [b"\xff\xfe", b"", b"[" * 50, b'{"a":NaN}', b"x" * 100_000]
    messages = [OutboundMessage(topic, None, body) for body in bodies]
    assert kafka.producer().send_batch(messages).all_acknowledged
    records = take(kafka.consumer(topic), 5)
    assert [record.value for record in records] == bodies
    assert all(record.key is None for record in records)


def test_a_topic_made_anew_under_a_consumer_starts_over(kafka):
    topic = kafka.topic()
    kafka.publish(topic, 50)
    consumer = kafka.consumer(topic)
    old = take(consumer, 50)
    kafka.delete(topic)
    poll_until(lambda _: not consumer.is_current(old[0]) or consumer.counters.errors, consumer, within=60)
    kafka.topic()
    kafka.publish(topic, 5, start=1000)
    fresh = take(consumer, 5, within=60)
    assert numbers(fresh) == [1000, 1001, 1002, 1003, 1004]
    consumer.settle(old)
    consumer.settle(fresh[:2])
    consumer.flush()
    assert committed(kafka)[topic, 0] == (2, "next=2")


def test_a_record_with_parts_is_committed_once_all_of_them_are_settled(kafka):
    topic = kafka.topic()
    kafka.publish(topic, 3)
    consumer = kafka.consumer(topic)
    first, second, third = take(consumer, 3)
    parts = consumer.split(second, 4)
    consumer.settle([first, third, *parts[1:]])
    kafka.close(consumer)

    consumer = kafka.consumer(topic)
    again = take(consumer, 2)
    assert numbers(again) == [1, 2]
    parts = consumer.split(again[0], 4)
    consumer.started(parts)
    consumer.settle(parts)
    consumer.settle(again[1:])
    kafka.close(consumer)
    (lag,) = LagProbe(kafka.config).measure(f"{kafka.name}.group", topic)
    assert lag.commit_lag == 0


def test_a_member_that_leaves_its_group_gives_what_is_not_settled_to_others_and_joins_again(
    kafka_by_protocol,
):
    kafka = kafka_by_protocol
    topic = kafka.topic(partitions=2)
    kafka.publish(topic, 100)
    first = kafka.consumer(topic)
    mine = take(first, 100)
    settled = [record for record in mine if record.offset < 10]
    first.settle(settled)
    first.pause()
    second = kafka.consumer(topic)

    first.leave_group()
    _, theirs = poll_until(
        lambda _, theirs: len(second.assigned) == 2 and len(theirs) >= 80, first, second, within=60
    )

    assert first.assigned == frozenset()
    assert not any(first.is_current(record) for record in mine)
    assert numbers(theirs) == sorted(set(numbers(mine)) - set(numbers(settled)))
    first.resume()
    first.join_group()
    poll_until(lambda *_: len(first.assigned) == len(second.assigned) == 1, first, second, within=60)
    assert first.counters.lost == 0


def test_the_coordinator_answers_a_member_without_a_partition(kafka_by_protocol):
    kafka = kafka_by_protocol
    topic = kafka.topic()
    members = [kafka.consumer(topic) for _ in range(2)]
    poll_until(lambda *_: any(member.assigned for member in members), *members)
    # Both are members by now: with KIP-848, the coordinator would not answer another client.
    poll_until(lambda *_: all(map(coordinator_answers, members)), *members)
    (spare,) = (member for member in members if not member.assigned)
    assert coordinator_answers(spare)


def test_nobody_answers_for_a_topic_that_does_not_exist_or_without_a_broker(kafka_by_protocol):
    kafka = kafka_by_protocol
    absent = kafka.consumer(f"{kafka.name}.absent")
    config = KafkaConfig("127.0.0.1:1", group_protocol=kafka.config.group_protocol)
    away = BatchConsumer(config, "any", "any", properties={"log_level": 0})
    try:
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            absent.poll_batch(1, 0.1)
            away.poll_batch(1, 0.1)
        assert not coordinator_answers(absent)
        assert not coordinator_answers(away)
    finally:
        away.close(0.1)
