"""Live events of runs: one consumer of the lifecycle topic per process serves all listeners.

A listener has an offset in every partition of the topic. These offsets are the `id` of its events, with
which a broken stream resumes. The consumer reads from the lowest offset that a listener needs; listeners
that are further ahead skip what they already received.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.refusals import is_refusal, refusal
from noonmark.kafka.rights import Operation
from noonmark.telemetry.logs import get_logger

MOST_WAITING: Final = 1_000
"""Most events waiting for a listener; a slower listener is disconnected."""

RESUMED_MOST: Final = 20_000
"""Most records of a partition that are read again for a listener that resumes."""

_POSITION: Final = re.compile(r"\d{1,6}:\d{1,18}(,\d{1,6}:\d{1,18}){0,999}")
_POLL_SECONDS: Final = 0.2
_ASK_SECONDS: Final = 3.0
_RETRY_SECONDS: Final = 1.0
_BACK_SECONDS: Final = 2.0
"""Shortest time between two seeks to lower offsets."""

_LINGER_SECONDS: Final = 10.0
_METADATA_SECONDS: Final = 30.0

_log = get_logger()

Position = dict[int, int]
"""Next offset by partition."""


class TooManyListeners(Exception):  # noqa: N818 - the name says what is the case
    """The process serves the maximum number of listeners."""


class LiveEvent(NamedTuple):
    """The outcomes of runs in one record, for one listener, and the position after the record."""

    outcomes: list[dict[str, Any]]
    position: str


def parse_position(text: str | None) -> Position | None:
    """Parse the id of an event; None if it is not valid."""
    if text is None or not _POSITION.fullmatch(text):
        return None
    return {int(part): int(offset) for part, _, offset in (one.partition(":") for one in text.split(","))}


def format_position(position: Mapping[int, int]) -> str:
    """Format a position as the id of an event."""
    return ",".join(f"{partition}:{position[partition]}" for partition in sorted(position))


class Listener:
    """One open stream. Its event loop reads it; the consumer's thread delivers events to it."""

    def __init__(self, namespace: str, job: UUID | None, position: Position | None) -> None:
        """Create it in the event loop that will read it.

        Args:
            namespace: namespace of the runs.
            job: only runs of this job; None: of all jobs.
            position: position at which an earlier stream broke; None: start at the end.
        """
        self.key = namespace.encode()
        self.job = str(job) if job is not None else None
        self.asked = position
        self.position: Position = {}
        self.reached = ""
        self.notes: deque[str] = deque(maxlen=20)
        self.waiting: deque[LiveEvent] = deque()
        self.count = 0
        self.end: str | None = None
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def news(self, seconds: float) -> None:
        """Wait for something to send, at most this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    def deliver(
        self, events: Sequence[LiveEvent], reached: str, *, note: str = "", end: str | None = None
    ) -> None:
        """Deliver events, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._take, events, reached, note, end)
        except RuntimeError:
            # Its event loop is closed, and so is the stream.
            self.end = "gone"

    def next(self) -> LiveEvent:
        """Remove and return the oldest waiting event."""
        events = self.waiting.popleft()
        self.count -= len(events.outcomes)
        return events

    def _take(self, events: Sequence[LiveEvent], reached: str, note: str, end: str | None) -> None:
        self.waiting.extend(events)
        self.count += sum(len(one.outcomes) for one in events)
        self.reached = reached or self.reached
        if note:
            self.notes.append(note)
        if self.count > MOST_WAITING and end is None:
            end = "slow"
        if end is not None and self.end is None:
            self.end = end
        if events or note or self.end:
            self._news.set()


class LiveRuns:
    """Consumes the lifecycle topic while there are listeners. Thread-safe."""

    def __init__(self, config: KafkaConfig, topic: str, *, most: int) -> None:
        """Create it; it connects for the first listener.

        Args:
            config: the cluster.
            topic: topic of lifecycle events.
            most: most listeners at once.
        """
        self._config = config
        self._topic = topic
        self._most = most
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._joining: list[Listener] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wake = threading.Event()

    def join(self, listener: Listener) -> None:
        """Add a listener, which receives events from now on, or from its position on.

        Raises:
            TooManyListeners: if the maximum number of listeners is reached.
        """
        with self._lock:
            if len(self._listeners) + len(self._joining) >= self._most:
                raise TooManyListeners
            self._joining.append(listener)
            if self._closed:
                listener.deliver((), "", end="shutdown")
            elif self._thread is None:
                self._thread = threading.Thread(target=self._run, name="api-live", daemon=True)
                self._thread.start()

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        with self._lock:
            self._listeners = [one for one in self._listeners if one is not listener]
            self._joining = [one for one in self._joining if one is not listener]

    def close(self) -> None:
        """Stop all streams and the consumer."""
        with self._lock:
            self._closed = True
            thread = self._thread
            for listener in (*self._listeners, *self._joining):
                listener.deliver((), "", end="shutdown")
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _ASK_SECONDS)

    # -- the consumer's thread -------------------------------------------------------------------------

    def _run(self) -> None:
        reader = _Reader(self._config, self._topic)
        idle_since = time.monotonic()
        try:
            while True:
                with self._lock:
                    joining, self._joining = self._joining, []
                    self._listeners += joining
                    listeners = list(self._listeners)
                    if listeners:
                        idle_since = time.monotonic()
                    if self._closed or time.monotonic() - idle_since > _LINGER_SECONDS:
                        self._thread = None
                        return
                self._step(reader, listeners)
        except Exception:  # noqa: BLE001 - an error stops the streams, not the process
            _log.exception("live_reader_failed")
            with self._lock:
                self._thread = None
                for listener in (*self._listeners, *self._joining):
                    listener.deliver((), "", end="failed")
        finally:
            reader.close()

    def _reported(self, error: KafkaException) -> str:
        reason = error.args[0]
        missing = refusal(reason, Operation.READ, topic=self._topic) if is_refusal(reason) else None
        return missing or str(error)

    def _step(self, reader: _Reader, listeners: Sequence[Listener]) -> None:
        try:
            reader.open()
            goes_back = reader.may_go_back()
            for listener in listeners:
                if not listener.position and (goes_back or listener.asked is None):
                    listener.deliver(
                        (), format_position(reader.admit(listener)), note=reader.note_for(listener)
                    )
            messages = reader.read()
        except KafkaException as error:
            reader.close()
            _log.warning("live_reader_without_kafka", error=self._reported(error))
            for listener in listeners:
                listener.deliver((), "", note="Kafka does not respond; the stream resumes when it does")
            self._wake.wait(_RETRY_SECONDS)
            return
        for listener in listeners:
            if messages and listener.position:
                events = events_of(listener, messages)
                listener.deliver(events, format_position(listener.position))


class _Reader:
    """The consumer, without a consumer group; it tracks its offset in every partition."""

    def __init__(self, config: KafkaConfig, topic: str) -> None:
        self._config = config
        self._topic = topic
        self._consumer: Consumer | None = None
        self._position: Position = {}
        self._checked_at = 0.0
        self._gaps: set[int] = set()
        self._went_back_at = -math.inf
        self._failed: KafkaError | None = None

    def open(self) -> None:
        """Connect if needed, and resume at the known offsets, or start at the end.

        Raises:
            KafkaException: if no broker responds, or the topic does not exist.
        """
        if self._consumer is not None and time.monotonic() - self._checked_at < _METADATA_SECONDS:
            return
        is_new = self._consumer is None
        if self._consumer is None:
            self._consumer = Consumer(self._properties())
        described = self._consumer.list_topics(self._topic, timeout=_ASK_SECONDS).topics[self._topic]
        if described.error is not None:
            raise KafkaException(described.error)
        fresh = set(described.partitions) - set(self._position)
        if fresh:
            # At first, existing records are history; later, a new partition is read from its beginning.
            first = not self._position
            self._position |= {partition: self._bounds(partition)[1 if first else 0] for partition in fresh}
        if fresh or is_new:
            self._assign()
        self._checked_at = time.monotonic()

    def may_go_back(self) -> bool:
        """Return whether listeners with lower offsets can be admitted now.

        The consumer reads again for them what all others already received. It does so rarely, and for all of
        them at once, so that a listener that reconnects again and again does not delay the others.
        """
        return time.monotonic() - self._went_back_at >= _BACK_SECONDS

    def admit(self, listener: Listener) -> Position:
        """Set the position of a listener, and seek back to it if it is lower."""
        position: Position = {}
        for partition, at in self._position.items():
            start = at if listener.asked is None else min(listener.asked.get(partition, at), at)
            if start < at:
                least = max(self._bounds(partition)[0], at - RESUMED_MOST)
                if start < least:
                    self._gaps.add(id(listener))
                    start = least
            position[partition] = start
        if position != self._position:
            # None of the listener's offsets is ahead of the consumer.
            self._position = dict(position)
            self._went_back_at = time.monotonic()
            self._assign()
        listener.position = position
        return position

    def note_for(self, listener: Listener) -> str:
        """Return the comment at the start of a stream."""
        if id(listener) in self._gaps:
            self._gaps.discard(id(listener))
            return "gap: earlier events are no longer available; read the missed ones from /v1/runs"
        return "following"

    def read(self) -> list[Message]:
        """Return new records, after a short wait at most.

        Raises:
            KafkaException: if Kafka is not available.
        """
        assert self._consumer is not None
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise KafkaException(failed)
        read = []
        for message in self._consumer.consume(500, timeout=_POLL_SECONDS):
            error = message.error()
            if error is not None:
                # Raised with the next call: the records next to it were read and must be delivered first.
                self._failed = error
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._position[partition] = offset + 1
            read.append(message)
        return read

    def close(self) -> None:
        """Disconnect; keep the offsets."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._checked_at = 0.0

    def _assign(self) -> None:
        assert self._consumer is not None
        self._consumer.assign([TopicPartition(self._topic, p, at) for p, at in self._position.items()])

    def _bounds(self, partition: int) -> tuple[int, int]:
        assert self._consumer is not None
        found = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), timeout=_ASK_SECONDS
        )
        if found is None:
            raise KafkaException(f"Kafka did not return the offsets of {self._topic}/{partition} in time")
        return int(found[0]), int(found[1])

    def _properties(self) -> dict[str, Any]:
        return self._config.client(client_id="noonmark-api-live") | {
            # librdkafka requires a name; without a subscription it joins no group.
            "group.id": f"{self._config.topic_prefix}.api-live",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "latest",
            "queued.max.messages.kbytes": 16_384,
            "fetch.wait.max.ms": 100,
        }


def events_of(listener: Listener, messages: Sequence[Message]) -> list[LiveEvent]:
    """Return the events that records contain for a listener, and advance its position."""
    events = []
    for message in messages:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if offset < listener.position.get(partition, 0):
            continue
        listener.position[partition] = offset + 1
        if message.key() != listener.key:
            continue
        outcomes = _outcomes(message.value(), listener.job)
        if outcomes:
            events.append(LiveEvent(outcomes, format_position(listener.position)))
    return events


def _outcomes(value: bytes | str | None, job: str | None) -> list[dict[str, Any]]:
    try:
        found = orjson.loads(value or b"null")["data"]["outcomes"]
        return [one for one in found if job is None or one["job_id"] == job]
    except (ValueError, KeyError, TypeError):
        # Not a record of noonmark: ignore it.
        return []
