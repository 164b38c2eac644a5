"""What a consumer returns: records, counters, errors."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

import msgspec
from confluent_kafka import Message, TopicPartition

Headers = list[tuple[str, bytes | str | None]]

UNREADABLE_HEADERS: Final[Headers] = [("", None)]
"""Replaces headers that the client cannot decode: a key that is not UTF-8. Compare by identity."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One consumed record.

    Attributes:
        topic: its topic.
        partition: its partition.
        offset: its offset there.
        epoch: the assignment under which it was polled; unique within a process's consumer.
        key: its key, if any.
        value: its body; empty for a tombstone.
        timestamp_ms: milliseconds since 1970 as the broker stamped it; 0 if there is no timestamp.
        headers: its headers, if the consumer reads headers and there are any; `UNREADABLE_HEADERS` if they
            cannot be decoded.
        is_stamped: whether the timestamp is the broker's (LogAppendTime), not the publisher's.
        part: which part of the record this is, if the consumer was told that it has several; else -1.
    """

    topic: str
    partition: int
    offset: int
    epoch: int
    key: bytes | None
    value: bytes
    timestamp_ms: int
    headers: Headers | None = None
    is_stamped: bool = False
    part: int = -1

    def parts(self, count: int) -> list[Record]:
        """Return a record for each of `count` parts; each is started and settled by itself."""
        topic, partition, offset, epoch = self.topic, self.partition, self.offset, self.epoch
        value, at = self.value, self.timestamp_ms
        # By position, without unpacking: for every run.
        return [
            Record(topic, partition, offset, epoch, None, value, at, None, False, part)
            for part in range(count)
        ]


Marks = tuple[list[int], list[tuple[int, int]]]
"""Offsets of whole records, and (offset, part) of parts of records."""


def drain_marks(queue: deque[Sequence[Record]]) -> dict[int, Marks]:
    """Take all records from a queue and return their marks by epoch."""
    by_epoch: defaultdict[int, Marks] = defaultdict(lambda: ([], []))
    while queue:
        for record in queue.popleft():
            offsets, parts = by_epoch[record.epoch]
            if record.part < 0:
                offsets.append(record.offset)
            else:
                parts.append((record.offset, record.part))
    return by_epoch


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """Return the names of partitions, for logs."""
    return ", ".join(f"{one.topic}[{one.partition}]" for one in partitions) or "nothing"


class ConsumerFailed(Exception):  # noqa: N818 - the name says what happened, like the domain's other conditions
    """The client has a fatal error; the process must create a new one, or stop."""


@dataclass(slots=True)
class ConsumerCounters:
    """What a consumer has counted since it was created. Written by its owner thread, read by any.

    Attributes:
        records: records returned.
        commits: commits that the group accepted.
        commits_dropped: commits refused because membership had changed; sent again if still ours.
        commit_errors: commits that failed otherwise; sent again.
        assigned: partitions assigned.
        revoked: partitions revoked in order.
        lost: partitions lost without notice.
        late_marks: settled or started marks for records of a past assignment.
        rewinds: partitions whose offsets went backwards (topic created again, or offsets reset).
        errors: other errors that the client reported.
    """

    records: int = 0
    commits: int = 0
    commits_dropped: int = 0
    commit_errors: int = 0
    assigned: int = 0
    revoked: int = 0
    lost: int = 0
    late_marks: int = 0
    rewinds: int = 0
    errors: int = 0


def read_headers(message: Message) -> Headers | None:
    """Return a record's headers; any publisher can send a key that the client cannot decode."""
    try:
        return cast("Headers | None", message.headers())
    except (UnicodeDecodeError, SystemError):
        return UNREADABLE_HEADERS
