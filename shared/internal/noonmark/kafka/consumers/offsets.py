"""Which records of a partition are in flight, started and settled, and how far its offset may move.

Only bookkeeping: no client, no clock, no locks. One thread owns a tracker. Every operation works on whole
batches and costs amortised constant time per record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple


class PartitionTracker:
    """The records of one partition during one assignment.

    `epoch` numbers the assignment: records polled under another epoch are ignored. The window is everything
    polled that the commit position has not passed: records in flight, and those settled behind one that is
    not.
    """

    __slots__ = ("_order", "_position", "_start_order", "_unsettled", "_unstarted", "epoch", "window")

    def __init__(self, epoch: int, window: int) -> None:
        if window < 1:
            raise ValueError(f"a partition's window must hold at least one record, not {window}")
        self.epoch = epoch
        self.window = window
        self._order: deque[int] = deque()
        self._unsettled: set[int] = set()
        self._start_order: deque[int] = deque()
        self._unstarted: set[int] = set()
        self._position: int | None = None

    def polled_many(self, offsets: Collection[int]) -> None:
        """Add records in the order in which they were polled.

        Gaps are fine (compaction, transaction markers); they belong to no record and block nothing.

        Raises:
            ValueError: an offset is not above all polled before it; the caller must begin a new epoch.
        """
        position = self._position
        for offset in offsets:
            if position is not None and offset < position:
                raise ValueError(f"offset {offset} was polled after {position - 1} in the same assignment")
            position = offset + 1
        self._position = position
        self._order.extend(offsets)
        self._unsettled.update(offsets)
        self._start_order.extend(offsets)
        self._unstarted.update(offsets)

    def started(self, offset: int) -> None:
        """Mark one record as started; see `started_many`."""
        self.started_many((offset,))

    def started_many(self, offsets: Iterable[int]) -> None:
        """Mark records as started, in any order. Unknown ones are ignored."""
        self._unstarted.difference_update(offsets)
        order, unstarted = self._start_order, self._unstarted
        while order and order[0] not in unstarted:
            order.popleft()

    def settled(self, offset: int) -> None:
        """Mark one record as settled; see `settled_many`."""
        self.settled_many((offset,))

    def settled_many(self, offsets: Collection[int]) -> None:
        """Mark records as settled (their outcome is durable), in any order.

        Settled implies started. Unknown records are ignored.
        """
        self._unsettled.difference_update(offsets)
        order, unsettled = self._order, self._unsettled
        while order and order[0] not in unsettled:
            order.popleft()
        self.started_many(offsets)

    def commit_position(self) -> int | None:
        """Return the offset to commit: the first unsettled one, or one past the last polled.

        None if nothing was polled under this epoch.
        """
        return self._order[0] if self._order else self._position

    def next_unstarted(self) -> int | None:
        """Return the first offset that was not started; None if nothing was polled."""
        return self._start_order[0] if self._start_order else self._position

    @property
    def position(self) -> int | None:
        """One past the last polled offset."""
        return self._position

    @property
    def in_flight(self) -> int:
        """Records polled and not settled."""
        return len(self._unsettled)

    @property
    def window_size(self) -> int:
        """Records polled that the commit position has not passed."""
        return len(self._order)

    @property
    def is_full(self) -> bool:
        """Whether the window has reached its cap: no more records should be polled."""
        return len(self._order) >= self.window


class CommitMark(NamedTuple):
    """What to commit for one partition: the offset, and the first one not yet started."""

    topic: str
    partition: int
    offset: int
    next: int


class OffsetTracker:
    """The trackers of all partitions that one consumer holds, by partition or by epoch.

    Epochs rise by one with each assignment of any partition and are never used twice, so an epoch alone shows
    whether a record in flight still counts.
    """

    __slots__ = ("_by_epoch", "_by_partition", "_last_epoch", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        self._last_epoch = 0
        self._by_partition: dict[tuple[str, int], PartitionTracker] = {}
        self._by_epoch: dict[int, PartitionTracker] = {}

    def assign(self, topic: str, partition: int) -> PartitionTracker:
        """Begin a new epoch for a partition. Records of an earlier epoch are forgotten."""
        self.drop(topic, partition)
        self._last_epoch += 1
        tracker = PartitionTracker(self._last_epoch, self._window)
        self._by_partition[topic, partition] = tracker
        self._by_epoch[tracker.epoch] = tracker
        return tracker

    def drop(self, topic: str, partition: int) -> None:
        """Forget a partition: marks under its epoch are ignored from now on."""
        tracker = self._by_partition.pop((topic, partition), None)
        if tracker is not None:
            del self._by_epoch[tracker.epoch]

    def get(self, topic: str, partition: int) -> PartitionTracker | None:
        """Return the partition's tracker; None if the partition is not held."""
        return self._by_partition.get((topic, partition))

    def is_current(self, epoch: int) -> bool:
        """Whether the assignment with this epoch is still held. Any thread may call this."""
        return epoch in self._by_epoch

    def started(self, epoch: int, offsets: Iterable[int]) -> bool:
        """Mark records as started; False (and nothing done) if the epoch is over."""
        tracker = self._by_epoch.get(epoch)
        if tracker is None:
            return False
        tracker.started_many(offsets)
        return True

    def settled(self, epoch: int, offsets: Collection[int]) -> bool:
        """Mark records as settled; False (and nothing done) if the epoch is over."""
        tracker = self._by_epoch.get(epoch)
        if tracker is None:
            return False
        tracker.settled_many(offsets)
        return True

    def mark(self, topic: str, partition: int) -> CommitMark | None:
        """Return what can be committed for a partition; None if nothing was polled."""
        tracker = self._by_partition.get((topic, partition))
        if tracker is None:
            return None
        offset, following = tracker.commit_position(), tracker.next_unstarted()
        if offset is None or following is None:
            return None
        return CommitMark(topic, partition, offset, following)

    @property
    def in_flight(self) -> int:
        """Records polled and not settled, over all partitions."""
        return sum(tracker.in_flight for tracker in self._by_epoch.values())

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(tuple(self._by_partition))

    def __len__(self) -> int:
        return len(self._by_partition)
