"""Committing offsets: when, with which metadata, and what to do if the group refuses."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from noonmark.kafka.consumers.offsets import CommitMark, OffsetTracker
from noonmark.kafka.consumers.records import ConsumerCounters

_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 60.0
"""A commit without an answer for this long counts as failed; librdkafka answers long before."""

_MOVED_ON: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError._NO_OFFSET,  # noqa: SLF001
    }
)
"""The group's membership changed during the commit. Nothing is lost by dropping it: partitions that are still
ours are committed at the next interval; the records of others are delivered again and recognised as settled.
"""

_NEXT: Final = re.compile(r"(?:^|;)next=(\d{1,18})(?:;|$)")
_READ: Final = re.compile(r"(?:^|;)read=(\d{1,18});waiting=(\d{1,9})(?:;|$)")


class Progress(NamedTuple):
    """What a consumer says in the metadata of a commit.

    Attributes:
        next: the first offset not yet started.
        read: one past the last one that it has polled; None in commits of release 0.2.
        waiting: records and parts of records before `read` that it has not started.
    """

    next: int
    read: int | None = None
    waiting: int = 0


def encode_progress(progress: Progress) -> str:
    """Return commit metadata that carries the progress of a consumer; release 0.2 reads `next` of it."""
    text = f"next={progress.next}"
    return text if progress.read is None else f"{text};read={progress.read};waiting={progress.waiting}"


def decode_progress(metadata: str | None) -> Progress | None:
    """Return the progress in commit metadata; None if there is none."""
    found = _NEXT.search(metadata) if metadata else None
    if found is None or metadata is None:
        return None
    more = _READ.search(metadata)
    return Progress(int(found[1])) if more is None else Progress(int(found[1]), int(more[1]), int(more[2]))


class Committer:
    """Sends commits of a consumer's contiguous marks, one request in flight at a time.

    A partition is committed if its offset has changed since `interval_seconds`, or if only its metadata has
    changed since `metadata_interval_seconds`.
    """

    __slots__ = (
        "_consumer",
        "_counters",
        "_interval",
        "_metadata_interval",
        "_pending",
        "_pending_since",
        "_sent",
        "_sent_at",
        "_sent_at_of",
        "_tracker",
        "_unchanged_at",
    )

    def __init__(
        self,
        tracker: OffsetTracker,
        counters: ConsumerCounters,
        *,
        interval_seconds: float,
        metadata_interval_seconds: float = 1.0,
    ) -> None:
        self._tracker = tracker
        self._counters = counters
        self._interval = interval_seconds
        self._metadata_interval = metadata_interval_seconds
        self._sent: dict[tuple[str, int], CommitMark] = {}
        self._sent_at = 0.0
        self._sent_at_of: dict[tuple[str, int], float] = {}
        self._pending: dict[tuple[str, int, int], CommitMark] = {}
        self._pending_since = 0.0
        self._unchanged_at = -1

    def commit_due(self, consumer: Consumer) -> None:
        """Send what is due, without waiting for the answer."""
        now = time.monotonic()
        if now < self._sent_at + self._interval or self._unchanged_at == self._tracker.changes:
            return
        if self._pending:
            # Two requests in flight could arrive in the wrong order and move an offset back.
            if now - self._pending_since < _TIMEOUT_SECONDS:
                return
            self._forget(self._pending.values())
            self._pending.clear()
        marks = list(self._changed(self._tracker))
        if not marks:
            # A consumer without work comes here several times a second.
            self._unchanged_at = self._tracker.changes
        self._send(consumer, [mark for mark in marks if self._is_due(mark, now)])

    def commit_all(self, consumer: Consumer) -> bool:
        """Send all changes, without regard to intervals. Return whether everything has been accepted."""
        if self._pending:
            return False
        marks = list(self._changed(self._tracker))
        self._send(consumer, marks)
        return not marks

    def _send(self, consumer: Consumer, marks: list[CommitMark]) -> None:
        if not marks:
            return
        now = time.monotonic()
        self._sent_at = now
        try:
            consumer.commit(offsets=_positions(marks), asynchronous=True)
        except KafkaException as error:
            self._refused(error.args[0], marks)
            return
        self._pending = {(mark.topic, mark.partition, mark.offset): mark for mark in marks}
        self._pending_since = now
        self._note_sent(marks, now)

    def commit_now(self, consumer: Consumer, partitions: Iterable[tuple[str, int]]) -> None:
        """Commit these partitions' marks and wait for the answer. Refusals are counted, not raised."""
        marks = list(self._changed(partitions))
        if self._pending:
            # The pending answer may come out of order: send these partitions again in any case.
            included = {(mark.topic, mark.partition) for mark in marks}
            requested = set(partitions)
            marks += [
                mark
                for topic, partition, _ in self._pending
                if (topic, partition) in requested
                and (topic, partition) not in included
                and (mark := self._tracker.mark(topic, partition)) is not None
            ]
        if not marks:
            return
        try:
            results = consumer.commit(offsets=_positions(marks), asynchronous=False)
        except KafkaException as error:
            self._refused(error.args[0], marks)
            return
        refused = {(r.topic, r.partition): r.error for r in results or () if r.error is not None}
        if refused:
            self._refused(
                next(iter(refused.values())), [m for m in marks if (m.topic, m.partition) in refused]
            )
        accepted = [mark for mark in marks if (mark.topic, mark.partition) not in refused]
        self._counters.commits += len(accepted)
        self._note_sent(accepted, time.monotonic())

    def answered(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        """Process the answer to an asynchronous commit (librdkafka's callback, on the owner's thread).

        Matched by offset: the answer to a commit that timed out may arrive after a newer commit was sent.
        """
        refused: list[CommitMark] = []
        reason = error
        for tp in partitions:
            mark = self._pending.pop((tp.topic, tp.partition, tp.offset), None)
            if mark is None:
                continue
            if error is None and tp.error is None:
                self._counters.commits += 1
                continue
            refused.append(mark)
            reason = reason or tp.error
        if reason is not None and refused:
            self._refused(reason, refused)

    def drop(self, topic: str, partition: int) -> None:
        """Forget what was sent for a partition: another assignment starts from nothing."""
        self._sent.pop((topic, partition), None)
        self._sent_at_of.pop((topic, partition), None)
        for key in [key for key in self._pending if key[:2] == (topic, partition)]:
            del self._pending[key]

    def _changed(self, partitions: Iterable[tuple[str, int]]) -> Iterable[CommitMark]:
        for topic, partition in partitions:
            mark = self._tracker.mark(topic, partition)
            if mark is not None and mark != self._sent.get((topic, partition)):
                yield mark

    def _is_due(self, mark: CommitMark, now: float) -> bool:
        sent = self._sent.get((mark.topic, mark.partition))
        if sent is None or sent.offset != mark.offset:
            return True
        return now - self._sent_at_of[mark.topic, mark.partition] >= self._metadata_interval

    def _note_sent(self, marks: Iterable[CommitMark], now: float) -> None:
        for mark in marks:
            self._sent[mark.topic, mark.partition] = mark
            self._sent_at_of[mark.topic, mark.partition] = now

    def _forget(self, marks: Iterable[CommitMark]) -> None:
        for mark in marks:
            if self._sent.get((mark.topic, mark.partition)) == mark:
                del self._sent[mark.topic, mark.partition]
                self._unchanged_at = -1

    def _refused(self, error: KafkaError, marks: Sequence[CommitMark]) -> None:
        self._forget(marks)
        if error.code() in _MOVED_ON:
            self._counters.commits_dropped += len(marks)
            _log.info("commit of %d partitions dropped, the group has moved on: %s", len(marks), error.name())
        else:
            self._counters.commit_errors += len(marks)
            _log.warning("commit of %d partitions failed and is tried again: %s", len(marks), error.str())


def _positions(marks: Iterable[CommitMark]) -> list[TopicPartition]:
    return [TopicPartition(m.topic, m.partition, m.offset, _metadata(m)) for m in marks]


def _metadata(mark: CommitMark) -> str:
    return encode_progress(Progress(mark.next, mark.read, mark.waiting))
