"""The tracker against a naive model: it never commits past an unsettled record, and all when all are settled."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.kafka.consumers.offsets import OffsetTracker, PartitionTracker


def test_a_slow_record_holds_the_commit_position():
    tracker = PartitionTracker(epoch=1, window=10)
    tracker.polled_many([1, 2, 3])
    tracker.settled(3)
    tracker.settled(1)
    assert tracker.commit_position() == 2
    tracker.settled(2)
    assert tracker.commit_position() == 4


def test_nothing_polled_means_nothing_to_commit():
    tracker = PartitionTracker(epoch=1, window=10)
    tracker.settled_many([5, 6])
    assert tracker.commit_position() is None
    assert tracker.next_unstarted() is None


def test_gaps_belong_to_no_record():
    tracker = PartitionTracker(epoch=1, window=10)
    tracker.polled_many([10, 15, 90])
    tracker.settled_many([10, 15])
    assert tracker.commit_position() == 90
    tracker.settled(90)
    assert tracker.commit_position() == 91


def test_the_next_unstarted_runs_ahead_of_the_commit_position():
    tracker = PartitionTracker(epoch=1, window=10)
    tracker.polled_many(range(6))
    tracker.started_many([0, 1, 3])
    assert (tracker.commit_position(), tracker.next_unstarted()) == (0, 2)
    tracker.settled(2)  # a duplicate: settled without a start
    assert (tracker.commit_position(), tracker.next_unstarted()) == (0, 4)


def test_the_window_counts_what_is_settled_behind_a_slow_record():
    tracker = PartitionTracker(epoch=1, window=4)
    tracker.polled_many(range(4))
    tracker.settled_many([1, 2, 3])
    assert tracker.is_full
    assert (tracker.in_flight, tracker.window_size) == (1, 4)
    tracker.settled(0)
    assert not tracker.is_full
    assert tracker.window_size == 0


def test_an_offset_that_went_back_needs_a_new_epoch():
    tracker = PartitionTracker(epoch=1, window=4)
    tracker.polled_many([7, 8])
    with pytest.raises(ValueError, match="same assignment"):
        tracker.polled_many((8,))


def test_marks_of_an_older_epoch_are_ignored():
    tracker = OffsetTracker(window=10)
    old = tracker.assign("t", 0)
    old.polled_many([0, 1])
    new = tracker.assign("t", 0)
    new.polled_many([0, 1])
    assert not tracker.settled(old.epoch, [0, 1])
    assert not tracker.is_current(old.epoch)
    assert tracker.is_current(new.epoch)
    assert tracker.mark("t", 0) == ("t", 0, 0, 0, 2, 2)
    assert tracker.settled(new.epoch, [0])
    assert tracker.mark("t", 0) == ("t", 0, 1, 1, 2, 1)


def test_a_dropped_partition_yields_no_mark():
    tracker = OffsetTracker(window=10)
    tracker.assign("t", 3).polled_many((1,))
    tracker.drop("t", 3)
    assert tracker.mark("t", 3) is None
    assert tracker.in_flight == 0
    assert list(tracker) == []


steps = st.lists(st.integers(min_value=1, max_value=4), min_size=1, max_size=30)
places = st.lists(st.integers(-2, 32), max_size=6)
moves = st.lists(
    st.tuples(st.just("poll"), st.integers(1, 10))
    | st.tuples(st.just("settle"), places)
    | st.tuples(st.just("start"), places),
    max_size=40,
)


@given(steps, moves)
def test_the_positions_equal_those_of_a_naive_model(steps, moves):
    offsets = [100 + sum(steps[: n + 1]) for n in range(len(steps))]
    tracker = PartitionTracker(epoch=1, window=8)
    polled, settled, started = [], set(), set()

    def named(places):
        """Offsets in flight, settled long ago, and some that no record ever had."""
        return [polled[at] if 0 <= at < len(polled) else 10_000 + at for at in places]

    for move, what in moves:
        if move == "poll":
            batch = offsets[len(polled) : len(polled) + what]
            tracker.polled_many(batch)
            polled += batch
        elif move == "settle":
            tracker.settled_many(named(what))
            settled.update(named(what))
            started.update(named(what))
        else:
            tracker.started_many(named(what))
            started.update(named(what))
        unsettled = [o for o in polled if o not in settled]
        unstarted = [o for o in polled if o not in started]
        end = polled[-1] + 1 if polled else None
        assert tracker.commit_position() == (unsettled[0] if unsettled else end)
        assert tracker.next_unstarted() == (unstarted[0] if unstarted else end)
        assert tracker.in_flight == len(unsettled)
        window = [o for o in polled if unsettled and o >= unsettled[0]]
        assert tracker.window_size == len(window)
        assert tracker.is_full == (len(window) >= 8)
    tracker.settled_many(offsets)
    if polled:
        assert tracker.commit_position() == tracker.next_unstarted() == polled[-1] + 1


@given(st.permutations(range(200)), st.integers(1, 50))
def test_any_order_of_settling_ends_at_the_end(order, batch):
    tracker = PartitionTracker(epoch=1, window=1000)
    tracker.polled_many(range(200))
    last = 0
    for start in range(0, 200, batch):
        tracker.settled_many(order[start : start + batch])
        position = tracker.commit_position()
        assert position is not None
        assert position >= last
        last = position
    assert last == 200


def test_a_record_with_parts_moves_once_all_of_them_are_settled():
    tracker = PartitionTracker(epoch=1, window=100)
    tracker.polled_many([7, 8])
    tracker.split(7, 3)
    tracker.started_parts([(7, 0), (7, 2)])
    tracker.settled_parts([(7, 0), (7, 0), (7, 2), (7, 9), (99, 0)])
    assert (tracker.commit_position(), tracker.next_unstarted()) == (7, 7)
    tracker.started_parts([(7, 1)])
    assert (tracker.commit_position(), tracker.next_unstarted()) == (7, 8)
    tracker.settled_parts([(7, 1)])
    assert (tracker.commit_position(), tracker.next_unstarted()) == (8, 8)


def test_a_refused_record_is_settled_whole_whatever_its_parts():
    tracker = PartitionTracker(epoch=1, window=100)
    tracker.polled_many([7])
    tracker.split(7, 3)
    tracker.settled_many([7])
    tracker.settled_parts([(7, 1)])
    assert (tracker.commit_position(), tracker.window_size, tracker.in_flight) == (8, 0, 0)


def test_the_window_counts_parts():
    tracker = PartitionTracker(epoch=1, window=10)
    tracker.polled_many([1, 2, 3])
    tracker.split(2, 8)
    assert (tracker.window_size, tracker.is_full) == (10, True)
    tracker.settled_many([1, 3])
    assert tracker.window_size == 9
    tracker.settled_parts([(2, part) for part in range(8)])
    assert tracker.window_size == 0


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=12),
    st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=120),
)
def test_positions_of_records_with_parts_equal_those_of_a_naive_model(sizes, marks):
    parts = [(offset, part) for offset, size in enumerate(sizes) for part in range(size)]
    tracker = PartitionTracker(epoch=1, window=1000)
    tracker.polled_many(range(len(sizes)))
    for offset, size in enumerate(sizes):
        if size > 1:
            tracker.split(offset, size)
    settled, started = set(), set()
    for settles, at in marks:
        if at >= len(parts):
            continue
        offset, part = parts[at]
        whole = sizes[offset] == 1
        if settles:
            tracker.settled(offset) if whole else tracker.settled_parts([(offset, part)])
            settled.add((offset, part))
        else:
            tracker.started(offset) if whole else tracker.started_parts([(offset, part)])
        started.add((offset, part))
        first = next((o for o, p in parts if (o, p) not in settled), len(sizes))
        unstarted = next((o for o, p in parts if (o, p) not in started), len(sizes))
        assert (tracker.commit_position(), tracker.next_unstarted()) == (first, unstarted)
        assert tracker.window_size == sum(sizes[first:])


def test_the_pure_part_loads_no_client():
    script = (
        "import sys, noonmark.kafka.consumers.offsets, noonmark.kafka.lag.marks, noonmark.kafka.topics\n"
        "assert 'confluent_kafka' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda tracker, epoch: tracker.polled_many("t", 0, [7]),
        lambda tracker, epoch: tracker.split(epoch, 5, 2),
        lambda tracker, epoch: tracker.started(epoch, [5]),
        lambda tracker, epoch: tracker.settled(epoch, [5]),
        lambda tracker, epoch: tracker.assign("t", 1),
        lambda tracker, epoch: tracker.assign("t", 0),
        lambda tracker, epoch: tracker.drop("t", 0),
    ],
)
def test_every_change_of_a_partition_is_counted(change):
    tracker = OffsetTracker(100)
    epoch = tracker.assign("t", 0).epoch
    tracker.polled_many("t", 0, [5, 6])
    before = tracker.changes
    change(tracker, epoch)
    assert tracker.changes > before


def test_what_changes_no_partition_is_not_counted():
    tracker = OffsetTracker(100)
    epoch = tracker.assign("t", 0).epoch
    before = tracker.changes
    tracker.polled_many("t", 1, [7])
    tracker.polled_many("t", 0, [])
    tracker.settled(epoch + 1, [7])
    tracker.started(epoch + 1, [7])
    tracker.split(epoch + 1, 7, 2)
    tracker.drop("t", 1)
    tracker.mark("t", 0)
    assert tracker.changes == before
