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
    not. A record that was split counts in it as often as it has parts.
    """

    __slots__ = (
        "_order",
        "_position",
        "_sizes",
        "_start_order",
        "_unsettled",
        "_unsettled_parts",
        "_unstarted",
        "_unstarted_parts",
        "_window_size",
        "epoch",
        "window",
    )

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
        # Of records that were split: the parts left, and the number of parts.
        self._unsettled_parts: dict[int, set[int]] = {}
        self._unstarted_parts: dict[int, set[int]] = {}
        self._sizes: dict[int, int] = {}
        self._window_size = 0

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
        self._window_size += len(offsets)

    def split(self, offset: int, parts: int) -> None:
        """Track a record by its parts: it is started, or settled, once all of them are.

        A record without unsettled parts is left as it is.
        """
        if offset not in self._unsettled or offset in self._sizes:
            return
        self._unsettled_parts[offset] = set(range(parts))
        self._unstarted_parts[offset] = set(range(parts))
        self._sizes[offset] = parts
        self._window_size += parts - 1

    def started(self, offset: int) -> None:
        """Mark one record as started; see `started_many`."""
        self.started_many((offset,))

    def started_many(self, offsets: Collection[int]) -> None:
        """Mark records as started, in any order. Unknown ones are ignored."""
        self._unstarted.difference_update(offsets)
        if self._unstarted_parts:
            for offset in offsets:
                self._unstarted_parts.pop(offset, None)
        order, unstarted = self._start_order, self._unstarted
        while order and order[0] not in unstarted:
            order.popleft()

    def started_parts(self, parts: Iterable[tuple[int, int]]) -> None:
        """Mark parts, as (offset, part), as started, in any order. Unknown ones are ignored."""
        if whole := _taken(self._unstarted_parts, parts):
            self.started_many(whole)

    def settled(self, offset: int) -> None:
        """Mark one record as settled; see `settled_many`."""
        self.settled_many((offset,))

    def settled_many(self, offsets: Collection[int]) -> None:
        """Mark records as settled (their outcome is durable), in any order.

        Settled implies started. Unknown records are ignored.
        """
        self._unsettled.difference_update(offsets)
        if self._unsettled_parts:
            for offset in offsets:
                self._unsettled_parts.pop(offset, None)
        order, unsettled, sizes = self._order, self._unsettled, self._sizes
        while order and order[0] not in unsettled:
            self._window_size -= sizes.pop(order.popleft(), 1)
        self.started_many(offsets)

    def settled_parts(self, parts: Collection[tuple[int, int]]) -> None:
        """Mark parts, as (offset, part), as settled, in any order. Unknown ones are ignored."""
        self.started_parts(parts)
        if whole := _taken(self._unsettled_parts, parts):
            self.settled_many(whole)

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
    def waiting(self) -> int:
        """Records and parts of records that were polled and not started."""
        return len(self._unstarted) + sum(len(parts) - 1 for parts in self._unstarted_parts.values())

    @property
    def window_size(self) -> int:
        """Records and parts of records polled that the commit position has not passed."""
        return self._window_size

    @property
    def is_full(self) -> bool:
        """Whether the window has reached its cap: no more records should be polled."""
        return self._window_size >= self.window


def _taken(left: dict[int, set[int]], parts: Iterable[tuple[int, int]]) -> list[int]:
    """Take parts out of what is left of their records; return the records of which nothing is left."""
    whole = []
    for offset, part in parts:
        rest = left.get(offset)
        if rest is not None:
            rest.discard(part)
            if not rest:
                del left[offset]
                whole.append(offset)
    return whole


class CommitMark(NamedTuple):
    """What to commit for one partition.

    Attributes:
        topic: its topic.
        partition: its number.
        offset: the first offset not yet settled.
        next: the first one not yet started.
        read: one past the last one that was polled.
        waiting: records and parts of records before `read` that are not started.
    """

    topic: str
    partition: int
    offset: int
    next: int
    read: int
    waiting: int


class OffsetTracker:
    """The trackers of all partitions that one consumer holds, by partition or by epoch.

    Epochs rise by one with each assignment of any partition and are never used twice, so an epoch alone shows
    whether a record in flight still counts.

    Attributes:
        changes: rises with every change of any partition. While it is the same, so are all marks.
    """

    __slots__ = ("_by_epoch", "_by_partition", "_last_epoch", "_window", "changes")

    def __init__(self, window: int) -> None:
        self._window = window
        self._last_epoch = 0
        self.changes = 0
        self._by_partition: dict[tuple[str, int], PartitionTracker] = {}
        self._by_epoch: dict[int, PartitionTracker] = {}

    def assign(self, topic: str, partition: int) -> PartitionTracker:
        """Begin a new epoch for a partition. Records of an earlier epoch are forgotten."""
        self.drop(topic, partition)
        self.changes += 1
        self._last_epoch += 1
        tracker = PartitionTracker(self._last_epoch, self._window)
        self._by_partition[topic, partition] = tracker
        self._by_epoch[tracker.epoch] = tracker
        return tracker

    def drop(self, topic: str, partition: int) -> None:
        """Forget a partition: marks under its epoch are ignored from now on."""
        tracker = self._by_partition.pop((topic, partition), None)
        if tracker is not None:
            self.changes += 1
            del self._by_epoch[tracker.epoch]

    def get(self, topic: str, partition: int) -> PartitionTracker | None:
        """Return the partition's tracker, to read from; None if the partition is not held."""
        return self._by_partition.get((topic, partition))

    def polled_many(self, topic: str, partition: int, offsets: Collection[int]) -> None:
        """Add records of a partition in the order in which they were polled, unless it is not held."""
        tracker = self._by_partition.get((topic, partition)) if offsets else None
        if tracker is not None:
            self.changes += 1
            tracker.polled_many(offsets)

    def is_current(self, epoch: int) -> bool:
        """Whether the assignment with this epoch is still held. Any thread may call this."""
        return epoch in self._by_epoch

    def split(self, epoch: int, offset: int, parts: int) -> None:
        """Track a record by its parts, unless its epoch is over."""
        tracker = self._by_epoch.get(epoch)
        if tracker is not None:
            self.changes += 1
            tracker.split(offset, parts)

    def started(self, epoch: int, offsets: Collection[int], parts: Collection[tuple[int, int]] = ()) -> bool:
        """Mark records, and parts of records, as started; False (and nothing done) if the epoch is over."""
        tracker = self._by_epoch.get(epoch)
        if tracker is None:
            return False
        self.changes += 1
        tracker.started_many(offsets)
        tracker.started_parts(parts)
        return True

    def settled(self, epoch: int, offsets: Collection[int], parts: Collection[tuple[int, int]] = ()) -> bool:
        """Mark records, and parts of records, as settled; False (and nothing done) if the epoch is over."""
        tracker = self._by_epoch.get(epoch)
        if tracker is None:
            return False
        self.changes += 1
        tracker.settled_many(offsets)
        tracker.settled_parts(parts)
        return True

    def mark(self, topic: str, partition: int) -> CommitMark | None:
        """Return what can be committed for a partition; None if nothing was polled."""
        tracker = self._by_partition.get((topic, partition))
        if tracker is None:
            return None
        offset, following = tracker.commit_position(), tracker.next_unstarted()
        if offset is None or following is None:
            return None
        return CommitMark(topic, partition, offset, following, tracker.position or offset, tracker.waiting)

    @property
    def in_flight(self) -> int:
        """Records polled and not settled, over all partitions."""
        return sum(tracker.in_flight for tracker in self._by_epoch.values())

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(tuple(self._by_partition))

    def __len__(self) -> int:
        return len(self._by_partition)
