"""The batch consumer: returns batches, takes marks, commits offsets only past settled records."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, TopicPartition

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers.commits import Committer
from noonmark.kafka.consumers.offsets import OffsetTracker
from noonmark.kafka.consumers.properties import consumer_properties, hint
from noonmark.kafka.consumers.records import (
    ConsumerCounters,
    ConsumerFailed,
    Record,
    drain_marks,
    names_of,
    read_headers,
)
from noonmark.kafka.fatal import fatal_error

_log = logging.getLogger(__name__)

_LOG_EVERY_SECONDS: Final = 10.0
_FLUSH_STEP_SECONDS: Final = 0.05


class BatchConsumer:
    """Consumes topics as a member of a group.

    One thread owns it; any thread may use `settle`, `started`, `pause`, `resume`, `is_current` and the
    properties.

    Records are tracked from the moment they are received. A partition's offset is committed up to its first
    record that is not settled, never further; nothing is committed for a partition that was lost.

    Args:
        config: the cluster; its `group_protocol` chooses between KIP-848 and classic groups.
        topics: one topic or several.
        group: the consumer group.
        max_in_flight: the cap of a partition's window (records polled and not yet passed by the commit
            position): a partition that reaches it is paused until half of it is free. Exceeded by at most
            one batch.
        commit_interval_seconds: at most one commit in this time, if an offset has changed.
        pause_grace_seconds: a shorter pause leaves the records in the client's buffer. A longer one stops
            fetching, which discards the buffer; it is fetched again on resume.
        max_poll_interval_seconds: a consumer that is not polled for this long loses its partitions.
        headers: whether records include their headers.
        properties: additional librdkafka properties.
    """

    def __init__(
        self,
        config: KafkaConfig,
        topics: str | Iterable[str],
        group: str,
        max_in_flight: int = 10_000,
        *,
        commit_interval_seconds: float = 0.2,
        pause_grace_seconds: float = 0.5,
        max_poll_interval_seconds: float = 300.0,
        headers: bool = False,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.topics: Final = (topics,) if isinstance(topics, str) else tuple(topics)
        self.group: Final = group
        self.counters: Final = ConsumerCounters()
        self.last_poll_at = time.monotonic()
        self._tracker = OffsetTracker(max_in_flight)
        self._committer = Committer(self._tracker, self.counters, interval_seconds=commit_interval_seconds)
        self._commit_interval = commit_interval_seconds
        self._with_headers = headers
        self._pause_grace = pause_grace_seconds
        self._settled_queue: deque[Sequence[Record]] = deque()
        self._started_queue: deque[Sequence[Record]] = deque()
        self._running = threading.Event()
        self._running.set()
        self._not_taking_since: float | None = None
        self._fetch_stopped = False
        self._paused: set[tuple[str, int]] = set()
        self._full: set[tuple[str, int]] = set()
        self._full_at = -1
        self._stash: list[Record] = []
        self._logged_at: dict[int, float] = {}
        self._fatal: KafkaError | None = None
        self._closed = False
        callbacks = {"error_cb": self._note_error, "on_commit": self._committer.answered}
        settings = consumer_properties(config, group, max_poll_interval_seconds)
        self._consumer = Consumer(settings | callbacks | dict(properties or {}))
        self._has_left = True
        self.join_group()

    # -- for the owner thread ------------------------------------------------------------------------

    def poll_batch(self, max_records: int, timeout_seconds: float) -> list[Record]:
        """Return available records, at most `max_records`, waiting up to `timeout_seconds` for the first.

        It also applies marks, commits and serves rebalances, so call it often, also while paused or with
        `max_records` 0 (it then returns nothing).

        Raises:
            ConsumerFailed: the client reported a fatal error.
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            self.last_poll_at = time.monotonic()
            self._apply_marks()
            self._committer.commit_due(self._consumer)
            taking = max_records > 0 and self._running.is_set()
            self._pause_and_resume(taking=taking)
            wait_seconds = self._slice_seconds(deadline)
            records = self._receive(max_records, wait_seconds) if taking else self._idle(wait_seconds)
            if self._fatal is not None:
                reason = f"{self._fatal.str().removeprefix('Fatal error: ')} ({self._fatal.name()})"
                remedy = hint(self._fatal, self.topics, self.group)
                raise ConsumerFailed(f"the Kafka client of group {self.group} has ended: {reason}{remedy}")
            if records or time.monotonic() >= deadline:
                self.counters.records += len(records)
                return records

    def leave_group(self) -> None:
        """Leave the group until `join_group`: other members receive all that is not settled."""
        if not self._has_left:
            self._has_left = True
            _log.warning("group %s: leaving it until work is possible again", self.group)
            self._consumer.unsubscribe()

    def join_group(self) -> None:
        """Join the group."""
        if self._has_left:
            self._has_left = False
            _log.info("consumer of %s joins group %s", ", ".join(self.topics), self.group)
            self._consumer.subscribe(
                list(self.topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Apply all marks and commit them now. Return whether the group has accepted them in time."""
        self._apply_marks()
        deadline = time.monotonic() + timeout_seconds
        while not self._committer.commit_all(self._consumer):
            if time.monotonic() >= deadline or self._fatal is not None:
                return False
            # Answers come through the client's poll, which may return a record: it is kept.
            self._take(self._serve(1, _FLUSH_STEP_SECONDS), self._stash)
        return True

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Commit what is settled and leave the group. Later marks are ignored.

        Each of the two steps is given up after `timeout_seconds`: without a coordinator, the client would try
        for minutes. Records that could not be committed are delivered again.
        """
        if self._closed:
            return
        self._closed = True
        if not self.flush(timeout_seconds):
            _log.warning(
                "group %s: closing without the last commit; its records will be delivered again", self.group
            )
        for topic, partition in self._tracker:
            self._drop(topic, partition)
        leaving = threading.Thread(target=self._consumer.close, name=f"leave {self.group}", daemon=True)
        leaving.start()
        leaving.join(timeout_seconds)
        if leaving.is_alive():
            _log.warning("group %s: could not leave in time; its session frees the partitions", self.group)

    def split(self, record: Record, parts: int) -> list[Record]:
        """Track a record by its parts; return a record for each, to be started and settled by itself.

        The record moves the offset once all its parts are settled. Call it before any of them is marked.
        """
        self._tracker.split(record.epoch, record.offset, parts)
        return record.parts(parts)

    # -- for any thread ------------------------------------------------------------------------------

    def settle(self, records: Sequence[Record]) -> None:
        """Mark records whose outcome is durable. The owner thread applies the marks at its next poll."""
        self._settled_queue.append(records)

    def started(self, records: Sequence[Record]) -> None:
        """Mark records that were started. Settled implies started."""
        self._started_queue.append(records)

    def pause(self) -> None:
        """Return no more records from now on; membership and marks continue. It lasts through rebalances."""
        self._running.clear()

    def resume(self) -> None:
        """Return records again. Wakes a poll that waits in a pause."""
        self._running.set()

    @property
    def is_paused(self) -> bool:
        """Whether the consumer is paused."""
        return not self._running.is_set()

    def is_current(self, record: Record) -> bool:
        """Whether the record's assignment is still held. If not, another consumer receives the record."""
        return self._tracker.is_current(record.epoch)

    @property
    def assigned(self) -> frozenset[tuple[str, int]]:
        """The (topic, partition) pairs held now."""
        return frozenset(self._tracker)

    @property
    def in_flight(self) -> int:
        """Records received and not settled (by the marks applied so far)."""
        return self._tracker.in_flight

    # -- receiving -----------------------------------------------------------------------------------

    def _receive(self, max_records: int, timeout_seconds: float) -> list[Record]:
        if self._stash:
            stashed, self._stash = self._stash, []
            return [record for record in stashed if self._tracker.is_current(record.epoch)]
        records: list[Record] = []
        # consume(n, t) would wait for n records or t; poll returns the first as soon as it arrives. It is
        # tracked before the rest is fetched: a rebalance in between must find it.
        self._take(self._serve(1, timeout_seconds), records)
        if records and max_records > 1:
            self._take(self._serve(max_records - 1, 0), records)
        return records

    def _serve(self, max_records: int, timeout_seconds: float) -> Sequence[Any]:
        """Return what the client has received; keep what has ended it."""
        try:
            if max_records > 1:
                return self._consumer.consume(max_records, timeout_seconds)
            message = self._consumer.poll(timeout_seconds)
        except (KafkaException, SystemError) as error:
            self._fatal, message = fatal_error(error), None
        return () if message is None else (message,)

    def _idle(self, timeout_seconds: float) -> list[Record]:
        """Receive nothing, for at most `timeout_seconds`."""
        if self._fetch_stopped:
            # What was received between the pauses of two partitions, or from one just assigned, is kept.
            self._take(self._serve(1, 0), self._stash)
        # In a short pause the client is not polled: its buffer stays, and rebalances wait for a moment.
        if self._running.is_set():
            time.sleep(timeout_seconds)
        else:
            self._running.wait(timeout_seconds)
        return []

    def _take(self, messages: Iterable[Any], records: list[Record]) -> None:
        """Track messages and append their records; messages of one partition are tracked together."""
        topic, partition, epoch = "", -1, 0
        offsets: list[int] = []
        position = 0
        for message in messages:
            error = message.error()
            if error is not None:
                self._note_error(error, message.topic())
                continue
            offset = message.offset()
            if message.partition() != partition or message.topic() != topic or offset < position:
                self._tracker.polled_many(topic, partition, offsets)
                topic, partition, offsets = message.topic(), message.partition(), []
                epoch = self._epoch(topic, partition, offset)
            if not epoch:
                continue
            position = offset + 1
            offsets.append(offset)
            kind, stamp = message.timestamp()
            records.append(
                Record(
                    topic,
                    partition,
                    offset,
                    epoch,
                    message.key(),
                    message.value() or b"",
                    stamp,
                    read_headers(message) if self._with_headers else None,
                    kind == TIMESTAMP_LOG_APPEND_TIME,
                )
            )
        self._tracker.polled_many(topic, partition, offsets)

    def _epoch(self, topic: str, partition: int, offset: int) -> int:
        """Return the epoch that a record belongs to; 0 if the partition is not held."""
        tracker = self._tracker.get(topic, partition)
        if tracker is None:
            return 0
        position = tracker.position
        if position is not None and offset < position:
            # The topic was created again, or its offsets were reset: records in flight belong to the old one.
            where = f"{topic}[{partition}]"
            _log.warning("%s: offsets went back from %d to %d; starting over there", where, position, offset)
            self.counters.rewinds += 1
            self._committer.drop(topic, partition)
            tracker = self._tracker.assign(topic, partition)
        return tracker.epoch

    def _slice_seconds(self, deadline: float) -> float:
        """How long one wait may last: in between, marks and commits of records in flight are processed."""
        left = deadline - time.monotonic()
        # The client waits for whole milliseconds, rounded down: what is left would be spent in a busy loop.
        return min(left, self._commit_interval) + 0.001 if left > 0 else 0.0

    # -- marks and pauses ------------------------------------------------------------------------------

    def _apply_marks(self) -> None:
        # Started first: a record that is both started and settled needs no second check.
        started, settled = self._tracker.started, self._tracker.settled
        for queue, mark in ((self._started_queue, started), (self._settled_queue, settled)):
            for epoch, (offsets, parts) in drain_marks(queue).items() if queue else ():
                if not mark(epoch, offsets, parts):
                    self.counters.late_marks += len(offsets) + len(parts)

    def _pause_and_resume(self, *, taking: bool) -> None:
        """Pause and resume partitions of the client as needed."""
        if taking:
            self._not_taking_since = None
            self._fetch_stopped = False
        else:
            now = time.monotonic()
            if self._not_taking_since is None:
                self._not_taking_since = now
            self._fetch_stopped = now - self._not_taking_since >= self._pause_grace
        if self._full_at != self._tracker.changes:
            self._full_at = self._tracker.changes
            self._full = {partition for partition in self._tracker if self._is_full(partition)}
        to_pause = set(self._tracker) if self._fetch_stopped else self._full
        if to_pause == self._paused:
            return
        if pausing := to_pause - self._paused:
            self._consumer.pause([TopicPartition(*partition) for partition in pausing])
        if resuming := self._paused - to_pause:
            self._consumer.resume([TopicPartition(*partition) for partition in resuming])
        self._paused = set(to_pause)

    def _is_full(self, partition: tuple[str, int]) -> bool:
        tracker = self._tracker.get(*partition)
        if tracker is None:
            return False
        # Half of the window must be free before it opens again: each pause costs a fetch.
        return tracker.is_full or (partition in self._full and tracker.window_size > tracker.window // 2)

    # -- the client's callbacks, all on the owner's thread ---------------------------------------------

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        for tp in partitions:
            self._drop(tp.topic, tp.partition)
            self._tracker.assign(tp.topic, tp.partition)
        self.counters.assigned += len(partitions)
        if not partitions:
            return
        _log.info("group %s: assigned %s", self.group, names_of(partitions))
        # A partition can come back paused as it left, and would never be read again.
        consumer.resume(partitions)
        if self._fetch_stopped:
            consumer.pause(partitions)
            self._paused.update((tp.topic, tp.partition) for tp in partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._apply_marks()
        self._committer.commit_now(consumer, [(tp.topic, tp.partition) for tp in partitions])
        self._forget(partitions)
        self.counters.revoked += len(partitions)
        _log.info("group %s: revoked %s", self.group, names_of(partitions))

    def _on_lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # Another consumer may own them already: nothing of ours may be committed.
        self._forget(partitions)
        self.counters.lost += len(partitions)
        _log.warning("group %s: lost %s", self.group, names_of(partitions))

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._drop(tp.topic, tp.partition)

    def _drop(self, topic: str, partition: int) -> None:
        self._tracker.drop(topic, partition)
        self._committer.drop(topic, partition)
        self._paused.discard((topic, partition))
        self._full.discard((topic, partition))

    def _note_error(self, error: KafkaError, topic: str | None = None) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001
            self._fatal = error
            return
        self.counters.errors += 1
        now = time.monotonic()
        if now - self._logged_at.get(error.code(), -_LOG_EVERY_SECONDS) >= _LOG_EVERY_SECONDS:
            self._logged_at[error.code()] = now
            remedy = hint(error, (topic,) if topic else self.topics, self.group)
            _log.warning("group %s: %s (%s)%s", self.group, error.str(), error.name(), remedy)
