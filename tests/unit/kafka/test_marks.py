from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from noonmark.kafka.lag.lag import PartitionLag, lag_of
from noonmark.kafka.lag.marks import Passage, TopicMarks

START = datetime(2026, 6, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def test_nothing_is_proven_before_the_group_has_passed_a_mark():
    marks = TopicMarks()
    marks.observe(at(0), {0: 10, 1: 5})
    assert marks.passed({0: 10, 1: 4}) == Passage(None, lost=False)
    assert marks.passed({0: 10}) == Passage(None, lost=False)
    assert marks.passed({0: 11, 1: 5}) == Passage(at(0), lost=False)


def test_the_newest_passed_mark_counts_and_the_proof_never_goes_back():
    marks = TopicMarks()
    for seconds, end in ((0, 10), (5, 20), (10, 30)):
        marks.observe(at(seconds), {0: end})
    assert marks.passed({0: 25}).until == at(5)
    assert marks.passed({0: 12}).until == at(5)
    assert marks.passed({0: 30}).until == at(10)


def test_a_backlog_of_hours_proves_nothing():
    marks = TopicMarks(capacity=16)
    for second in range(0, 3 * 3600, 5):
        marks.observe(at(second), {0: 1000 + second})
    assert marks.passed({0: 999}).until is None
    assert marks.passed({0: 1000}).until == at(0)


def test_an_empty_partition_is_passed():
    marks = TopicMarks()
    marks.observe(at(0), {0: 0, 1: 0})
    assert marks.passed({0: 0, 1: 0}).until == at(0)


def test_a_partition_added_later_does_not_hold_older_marks():
    marks = TopicMarks()
    marks.observe(at(0), {0: 10})
    assert not marks.observe(at(5), {0: 12, 1: 3})
    assert marks.passed({0: 12, 1: 0}).until == at(0)
    assert marks.passed({0: 12, 1: 3}).until == at(5)


def test_a_topic_made_anew_is_lost_up_to_the_last_good_observation():
    marks = TopicMarks()
    marks.observe(at(0), {0: 10}, "first")
    marks.observe(at(5), {0: 20}, "first")
    assert marks.observe(at(10), {0: 50}, "second")
    assert marks.passed({0: 0}) == Passage(at(5), lost=True)
    assert not marks.observe(at(15), {0: 51}, "second")
    assert marks.passed({0: 50}) == Passage(at(10), lost=False)


def test_ends_that_went_back_and_partitions_that_vanished_are_lost():
    shrunk = TopicMarks()
    shrunk.observe(at(0), {0: 10, 1: 10})
    assert shrunk.observe(at(5), {0: 9, 1: 10})
    assert shrunk.passed({}).until == at(0)
    fewer = TopicMarks()
    fewer.observe(at(0), {0: 10, 1: 0})
    assert fewer.observe(at(5), {0: 10})


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=60),
    st.lists(st.integers(0, 200), min_size=3, max_size=3),
    st.integers(2, 80),
)
def test_what_is_proven_is_always_true(growth, position, capacity):
    marks, ends, history = TopicMarks(capacity), [0, 0, 0], []
    for second, added in enumerate(growth):
        ends = [end + more for end, more in zip(ends, added, strict=True)]
        history.append((at(second), tuple(ends)))
        marks.observe(at(second), dict(enumerate(ends)))
    until = marks.passed(dict(enumerate(position))).until
    passed = [when for when, ends in history if all(p >= e for p, e in zip(position, ends, strict=True))]
    if capacity >= len(history):
        assert until == (passed[-1] if passed else None)
    else:
        assert until is None or until in passed


class Commit:
    def __init__(self, offset, metadata=None):
        self.offset, self.metadata = offset, metadata


def lag(begin, end, held) -> PartitionLag:
    return lag_of(topic="t", topic_id="i", group="g", partition=0, begin=begin, end=end, commit=held)


def test_a_group_that_never_committed_has_everything_before_it():
    it = lag(3, 10, None)
    assert (it.committed, it.next, it.start_backlog, it.commit_lag, it.position) == (None, 3, 7, 7, 3)


def test_the_two_lags_differ_by_what_is_running():
    it = lag(0, 100, Commit(40, "next=90"))
    assert (it.start_backlog, it.commit_lag, it.position) == (10, 60, 40)


def test_one_run_that_cannot_start_does_not_make_those_behind_it_wait():
    it = lag(0, 100, Commit(40, "next=41;read=90;waiting=1"))
    assert (it.next, it.read, it.waiting, it.start_backlog, it.commit_lag) == (41, 90, 1, 11, 60)


def test_what_a_consumer_says_beyond_what_is_stored_is_ignored():
    for metadata in ("next=41;read=101;waiting=1", "next=41;read=40;waiting=1", "next=41;read=90"):
        it = lag(0, 100, Commit(40, metadata))
        assert (it.next, it.read, it.waiting, it.start_backlog) == (41, 41, 0, 59)


def test_metadata_of_others_is_no_next():
    for metadata in (None, "", "next=", "next=abc", "xnext=50", "next=9999999999999999999999"):
        assert lag(0, 100, Commit(40, metadata)).next == 40


def test_retention_that_overtook_the_group_moves_its_position():
    it = lag(60, 100, Commit(40, "next=50"))
    assert (it.next, it.start_backlog, it.commit_lag, it.position) == (60, 40, 40, 60)
    assert it.has_lost_records


def test_a_commit_past_the_end_belongs_to_an_earlier_topic():
    it = lag(0, 5, Commit(40, "next=45"))
    assert it.is_reset
    assert (it.next, it.start_backlog, it.commit_lag, it.position) == (0, 5, 5, 0)


def test_a_next_beyond_the_end_or_behind_the_commit_is_bounded():
    assert lag(0, 50, Commit(40, "next=60")).next == 50
    assert lag(0, 50, Commit(40, "next=30")).next == 40
