"""Reads the messages of a backlog: when the first was appended, and how many runs all of them have.

A record says neither its age nor its runs in an offset, so both are read, and kept while the backlog stays.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.messages import count_runs

READ_RECORDS: Final = 500
"""Maximum number of records of a partition that one measurement reads."""

_READ_SECONDS: Final = 2.0
_KEPT: Final = 10_000

Place = tuple[str, int]
"""A topic and a partition."""


class Waiting(NamedTuple):
    """A partition with a backlog.

    Attributes:
        topic: the topic.
        topic_id: its id; a topic that was deleted and created again has another.
        partition: the partition.
        first: first offset that is not started; its record says how old the backlog is.
        next: first offset whose runs are not known from the consumer.
        end: one past its last offset.
        has_runs: whether its messages can have several runs; otherwise each is one.
    """

    topic: str
    topic_id: str
    partition: int
    first: int
    next: int
    end: int
    has_runs: bool


class Found(NamedTuple):
    """What was read of a backlog.

    Attributes:
        stamp: when its first record was appended, milliseconds since 1970; None if it was not read in time.
        runs: the runs from `Waiting.next` on.
    """

    stamp: int | None
    runs: int


@dataclass(slots=True)
class Backlog:
    """What is known of a partition's backlog: of its first messages, by offset.

    Attributes:
        next: first offset of the backlog.
        upto: the messages before this offset were read.
        stamp: when the record at `next` was appended, milliseconds since 1970; None if it was not read in
            time.
        counts: offset, runs and stamp of each message that was read.
        runs: sum of these runs.
    """

    next: int
    upto: int
    stamp: int | None = None
    counts: deque[tuple[int, int, int]] = field(default_factory=deque)
    runs: int = 0

    def move(self, offset: int) -> None:
        """Drop what lies before an offset; without a message at or after it, start again there."""
        if offset == self.next:
            return
        while self.counts and self.counts[0][0] < offset:
            self.runs -= self.counts.popleft()[1]
        is_known = self.next < offset < self.upto
        self.next, self.stamp = offset, self.counts[0][2] if self.counts else None
        if not is_known:
            self.stamp = None
            self.upto = offset
            self.counts.clear()
            self.runs = 0

    def add(self, offset: int, stamp: int, runs: int) -> None:
        """Add a message that was read."""
        if offset >= self.upto:
            self.upto = offset + 1
            self.counts.append((offset, runs, stamp))
            self.runs += runs
        if self.stamp is None:
            self.stamp = stamp

    def total(self, end: int) -> int:
        """Return the runs up to `end`; beyond what was read, as many per message as before it."""
        unread = max(0, end - self.upto)
        if not self.counts:
            return unread
        return self.runs + round(unread * self.runs / len(self.counts))


class BacklogReader:
    """Reads backlogs with a consumer that joins no group. One thread owns it."""

    def __init__(self, config: KafkaConfig) -> None:
        """The client is created when something is read."""
        self._config = config
        self._reader: Consumer | None = None
        self._known: dict[tuple[str, int, bool], Backlog] = {}

    def read(self, waiting: Sequence[Waiting]) -> list[Found]:
        """Return what is known of each backlog, after reading what is missing, for a few seconds at most."""
        if len(self._known) > _KEPT:
            # Topics that were created again leave entries behind.
            wanted = {(one.topic_id, one.partition) for one in waiting}
            self._known = {key: backlog for key, backlog in self._known.items() if key[:2] in wanted}
        unread = [self._backlog(one, one.next) for one in waiting]
        self._fill(
            (one, backlog)
            for one, backlog in zip(waiting, unread, strict=True)
            if one.next < one.end and (backlog.stamp is None or (one.has_runs and backlog.upto < one.end))
        )
        # What the consumer has read is not counted again: only its first record that waits is read.
        firsts = [one._replace(next=one.first, has_runs=False) for one in waiting]
        stamped = [self._backlog(one, one.first, only_first=True) for one in firsts]
        self._fill(
            (first, backlog)
            for one, first, backlog in zip(waiting, firsts, stamped, strict=True)
            if one.first < one.next and backlog.stamp is None
        )
        return [
            Found(
                (first if one.first < one.next else backlog).stamp,
                backlog.total(one.end) if one.next < one.end else 0,
            )
            for one, backlog, first in zip(waiting, unread, stamped, strict=True)
        ]

    def _backlog(self, one: Waiting, offset: int, *, only_first: bool = False) -> Backlog:
        key = (one.topic_id, one.partition, only_first)
        backlog = self._known.setdefault(key, Backlog(offset, offset))
        backlog.move(offset)
        return backlog

    def close(self) -> None:
        """Release the client."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _fill(self, missing: Iterable[tuple[Waiting, Backlog]]) -> None:
        unread = {(one.topic, one.partition): (one, backlog) for one, backlog in missing}
        if not unread:
            return
        reader = self._reader = self._reader or self._new_reader()
        starts = [
            TopicPartition(*place, one.next if backlog.stamp is None else backlog.upto)
            for place, (one, backlog) in unread.items()
        ]
        reader.assign(starts)
        # A partition stays paused across assignments: without this each would be read only once.
        reader.resume(starts)
        left = dict.fromkeys(unread, READ_RECORDS)
        deadline = time.monotonic() + _READ_SECONDS
        try:
            while left and (seconds := deadline - time.monotonic()) > 0:
                for place in self._take(reader.consume(READ_RECORDS, min(seconds, 0.1)), unread, left):
                    # The other records of this partition would only delay those of the others.
                    reader.pause([TopicPartition(*place)])
        finally:
            reader.unassign()

    def _take(
        self,
        messages: Iterable[Any],
        unread: dict[Place, tuple[Waiting, Backlog]],
        left: dict[Place, int],
    ) -> list[Place]:
        """Add messages to their backlogs; return the partitions that need no more."""
        done = []
        for message in messages:
            place = (message.topic(), message.partition())
            if place not in left:
                continue
            one, backlog = unread[place]
            error = message.error()
            if error is None:
                runs = count_runs(message.value() or b"") if one.has_runs else 1
                backlog.add(message.offset(), message.timestamp()[1], runs)
                left[place] -= 1
            elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
                continue
            if error is not None or not one.has_runs or left[place] <= 0 or backlog.upto >= one.end:
                del left[place]
                done.append(place)
        return done

    def _new_reader(self) -> Consumer:
        return Consumer(
            self._config.client(client_id="noonmark-lag-reader")
            | {
                # librdkafka requires a group id; without a subscription it joins no group.
                "group.id": f"{self._config.topic_prefix}.lag-probe",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                # A backlog is read in small steps, and most have one message.
                "fetch.message.max.bytes": 65_536,
                "queued.min.messages": 1,
                # Without this, the client waits for a second once it has one message.
                "fetch.queue.backoff.ms": 1,
                "fetch.wait.max.ms": 100,
            }
        )
