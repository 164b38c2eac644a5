import time

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from noonmark.kafka.consumers.commits import Committer, Progress, decode_progress, encode_progress
from noonmark.kafka.consumers.offsets import OffsetTracker
from noonmark.kafka.consumers.records import ConsumerCounters


class Group:
    """Takes commits like a client would; the test answers them."""

    def __init__(self):
        self.sent, self.refusal = [], None

    def commit(self, *, offsets, asynchronous):
        if self.refusal is not None:
            raise KafkaException(self.refusal)
        self.sent.append([(o.topic, o.partition, o.offset, o.metadata.split(";")[0]) for o in offsets])
        self.metadata = [o.metadata for o in offsets]
        self.asked = offsets
        return None if asynchronous else [TopicPartition(o.topic, o.partition, o.offset) for o in offsets]


def setup(interval=0.0, metadata_interval=0.0):
    tracker, counters, group = OffsetTracker(100), ConsumerCounters(), Group()
    committer = Committer(
        tracker, counters, interval_seconds=interval, metadata_interval_seconds=metadata_interval
    )
    held = tracker.assign("t", 0)
    held.polled_many(range(10))
    return tracker, counters, group, committer, held


def test_metadata_carries_the_progress_of_the_consumer():
    assert decode_progress(encode_progress(Progress(42, 50, 7))) == Progress(42, 50, 7)
    assert (
        decode_progress("worker=a;next=42;v=1")
        == decode_progress(encode_progress(Progress(42)))
        == Progress(42)
    )
    assert decode_progress("nothing") is decode_progress(None) is None


def test_a_commit_says_what_was_read_and_what_of_it_waits():
    _, _, group, committer, held = setup()
    held.split(4, 8)
    held.settled_many([0, 1])
    held.started_many([2, 3, 6])
    held.started_parts([(4, part) for part in range(3)])
    committer.commit_due(group)
    # Of ten records, five parts of the fifth and four whole ones are not started.
    assert group.metadata == ["next=4;read=10;waiting=9"]


def test_only_what_changed_is_committed():
    _, counters, group, committer, held = setup()
    held.settled_many([0, 1])
    held.started_many([2, 3])
    committer.commit_due(group)
    assert group.sent == [[("t", 0, 2, "next=4")]]
    committer.answered(None, group.asked)
    committer.commit_due(group)
    assert len(group.sent) == 1
    assert counters.commits == 1


def test_one_commit_is_on_its_way_at_a_time():
    _, _, group, committer, held = setup()
    held.settled(0)
    committer.commit_due(group)
    held.settled(1)
    committer.commit_due(group)
    assert len(group.sent) == 1
    committer.answered(None, group.asked)
    committer.commit_due(group)
    assert group.sent[1] == [("t", 0, 2, "next=2")]


def test_a_change_of_metadata_alone_waits_longer():
    _, _, group, committer, held = setup(metadata_interval=3600)
    held.settled(0)
    committer.commit_due(group)
    committer.answered(None, group.asked)
    held.started_many([1, 2])
    committer.commit_due(group)
    assert len(group.sent) == 1
    held.settled(1)
    committer.commit_due(group)
    assert group.sent[1] == [("t", 0, 2, "next=3")]


def test_commits_keep_their_interval():
    _, _, group, committer, held = setup(interval=3600)
    committer._sent_at = time.monotonic()
    held.settled(0)
    committer.commit_due(group)
    assert group.sent == []


def test_a_commit_of_an_old_generation_is_dropped_and_sent_again_if_still_ours():
    _, counters, group, committer, held = setup()
    held.settled(0)
    committer.commit_due(group)
    committer.answered(KafkaError(KafkaError.STALE_MEMBER_EPOCH), group.asked)
    assert (counters.commits_dropped, counters.commit_errors, counters.commits) == (1, 0, 0)
    committer.commit_due(group)
    assert len(group.sent) == 2


def test_a_refusal_on_the_spot_is_counted_and_sent_again():
    _, counters, group, committer, held = setup()
    held.settled(0)
    group.refusal = KafkaError(KafkaError._WAIT_COORD)
    committer.commit_due(group)
    committer.commit_now(group, [("t", 0)])
    assert counters.commit_errors == 2
    group.refusal = None
    committer.commit_due(group)
    assert group.sent == [[("t", 0, 1, "next=1")]]


def test_a_revoked_partition_is_committed_also_when_an_answer_is_still_out():
    _, counters, group, committer, held = setup()
    held.settled(0)
    committer.commit_due(group)
    committer.commit_now(group, [("t", 0)])
    assert group.sent[1] == group.sent[0]
    assert counters.commits == 1


def test_a_late_answer_is_not_taken_for_that_of_a_newer_commit():
    _, counters, group, committer, held = setup()
    held.settled(0)
    committer.commit_due(group)
    late = group.asked
    committer._pending_since -= 3600
    held.settled(1)
    committer.commit_due(group)
    assert len(group.sent) == 2
    committer.answered(None, late)
    assert counters.commits == 0
    assert not committer.commit_all(group)
    committer.answered(None, group.asked)
    assert counters.commits == 1
    assert committer.commit_all(group)


def test_a_lost_partitions_commit_holds_nothing_up():
    tracker, _, group, committer, held = setup()
    held.settled(0)
    committer.commit_due(group)
    tracker.drop("t", 0)
    committer.drop("t", 0)
    assert committer.commit_all(group)


def test_a_dropped_partition_is_not_committed():
    tracker, _, group, committer, held = setup()
    held.settled(0)
    tracker.drop("t", 0)
    committer.drop("t", 0)
    committer.commit_due(group)
    committer.commit_now(group, [("t", 0)])
    assert group.sent == []


def test_marks_are_not_computed_again_until_something_has_changed(monkeypatch):
    tracker, _, group, committer, held = setup()
    asked = []
    monkeypatch.setattr(
        OffsetTracker, "__iter__", lambda self: asked.append(1) or iter(tuple(self._by_partition))
    )
    tracker.settled(held.epoch, [0])
    committer.commit_due(group)
    committer.answered(None, group.asked)
    for _ in range(5):
        committer.commit_due(group)
    assert (len(asked), len(group.sent)) == (2, 1)

    tracker.started(held.epoch, [3])
    tracker.settled(held.epoch, [1, 2])
    committer.commit_due(group)
    committer.answered(None, group.asked)
    assert group.sent[1:] == [[("t", 0, 3, "next=4")]]

    tracker.polled_many("t", 0, range(10, 12))
    committer.commit_due(group)
    assert "read=12" in group.metadata[0]


def test_a_commit_that_got_no_answer_is_sent_again_although_nothing_has_changed(monkeypatch):
    tracker, _, group, committer, held = setup()
    committer.commit_due(group)
    committer.answered(None, group.asked)
    committer.commit_due(group)
    tracker.settled(held.epoch, [0])
    committer.commit_due(group)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61.0)
    committer.commit_due(group)
    assert group.sent[1] == group.sent[2] == [("t", 0, 1, "next=1")]
