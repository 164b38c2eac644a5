"""Live events of runs: one reader of the lifecycle topic for a process, whoever listens.

A listener has a place in every partition of the topic: its `id`, from which a stream that broke goes on. The
reader stands at the lowest place that anybody needs; who is further ahead passes over what it has had.
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
from noonmark.telemetry.logs import get_logger

MOST_WAITING: Final = 1_000
"""Events that wait for a listener; who is slower than that is cut off."""

RESUMED_MOST: Final = 20_000
"""Records of a partition that are read again for a listener that comes back."""

_PLACE: Final = re.compile(r"\d{1,6}:\d{1,18}(,\d{1,6}:\d{1,18}){0,999}")
_POLL_SECONDS: Final = 0.2
_ASK_SECONDS: Final = 3.0
_RETRY_SECONDS: Final = 1.0
_BACK_SECONDS: Final = 2.0
"""Between two times that the reader goes back."""

_LINGER_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 30.0

_log = get_logger()

Place = dict[int, int]
"""Next offset by partition."""


class TooManyListeners(Exception):  # noqa: N818 - it names what is so
    """As many listen as one process serves."""


class LiveEvent(NamedTuple):
    """What a record tells a listener: outcomes of runs, and the place behind it."""

    outcomes: list[dict[str, Any]]
    place: str


def read_place(text: str | None) -> Place | None:
    """Read the id of an event; None where it is none of ours."""
    if text is None or not _PLACE.fullmatch(text):
        return None
    return {int(part): int(offset) for part, _, offset in (one.partition(":") for one in text.split(","))}


def place_text(place: Mapping[int, int]) -> str:
    """Write a place as the id of an event."""
    return ",".join(f"{partition}:{place[partition]}" for partition in sorted(place))


class Listener:
    """One open stream. Its loop reads it; the reader's thread hands it what there is."""

    def __init__(self, namespace: str, job: UUID | None, place: Place | None) -> None:
        """Make it in the loop that will read it.

        Args:
            namespace: whose runs.
            job: only runs of this job.
            place: where an earlier stream broke off.
        """
        self.key = namespace.encode()
        self.job = str(job) if job is not None else None
        self.asked = place
        self.place: Place = {}
        self.reached = ""
        self.notes: deque[str] = deque(maxlen=20)
        self.waiting: deque[LiveEvent] = deque()
        self.count = 0
        self.end: str | None = None
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def news(self, seconds: float) -> None:
        """Wait until there is something to tell, for so long at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    def deliver(
        self, events: Sequence[LiveEvent], reached: str, *, note: str = "", end: str | None = None
    ) -> None:
        """Give it events, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._take, events, reached, note, end)
        except RuntimeError:
            # Its loop is closed, and so is the stream.
            self.end = "gone"

    def next(self) -> LiveEvent:
        """Take the oldest event that waits."""
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
    """Reads the lifecycle topic while anybody listens. Safe to use from many threads."""

    def __init__(self, config: KafkaConfig, topic: str, *, most: int) -> None:
        """Connect when somebody listens.

        Args:
            config: the cluster.
            topic: of lifecycle events.
            most: listeners at a time.
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
        """Let a listener hear what comes from now on, or from its place on.

        Raises:
            TooManyListeners: there are as many as may be.
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
        """Forget a listener."""
        with self._lock:
            self._listeners = [one for one in self._listeners if one is not listener]
            self._joining = [one for one in self._joining if one is not listener]

    def close(self) -> None:
        """End all streams, and the reader."""
        with self._lock:
            self._closed = True
            thread = self._thread
            for listener in (*self._listeners, *self._joining):
                listener.deliver((), "", end="shutdown")
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _ASK_SECONDS)

    # -- the reader's thread -------------------------------------------------------------------------

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
        except Exception:  # noqa: BLE001 - a fault ends the streams, not the process
            _log.exception("live_reader_failed")
            with self._lock:
                self._thread = None
                for listener in (*self._listeners, *self._joining):
                    listener.deliver((), "", end="failed")
        finally:
            reader.close()

    def _step(self, reader: _Reader, listeners: Sequence[Listener]) -> None:
        try:
            reader.open()
            goes_back = reader.may_go_back()
            for listener in listeners:
                if not listener.place and (goes_back or listener.asked is None):
                    listener.deliver((), place_text(reader.admit(listener)), note=reader.note_for(listener))
            messages = reader.read()
        except KafkaException as error:
            reader.close()
            _log.warning("live_reader_without_kafka", error=str(error))
            for listener in listeners:
                listener.deliver((), "", note="Kafka does not answer; the stream goes on when it does")
            self._wake.wait(_RETRY_SECONDS)
            return
        for listener in listeners:
            if messages and listener.place:
                events = events_of(listener, messages)
                listener.deliver(events, place_text(listener.place))


class _Reader:
    """The consumer, without a group of its own; it knows its place in every partition."""

    def __init__(self, config: KafkaConfig, topic: str) -> None:
        self._config = config
        self._topic = topic
        self._consumer: Consumer | None = None
        self._place: Place = {}
        self._checked_at = 0.0
        self._gaps: set[int] = set()
        self._went_back_at = -math.inf
        self._failed: KafkaError | None = None

    def open(self) -> None:
        """Connect, if that is not so; go on where it was, else at the end.

        Raises:
            KafkaException: no broker answers, or there is no such topic.
        """
        if self._consumer is not None and time.monotonic() - self._checked_at < _LOOK_SECONDS:
            return
        is_new = self._consumer is None
        if self._consumer is None:
            self._consumer = Consumer(self._properties())
        described = self._consumer.list_topics(self._topic, timeout=_ASK_SECONDS).topics[self._topic]
        if described.error is not None:
            raise KafkaException(described.error)
        fresh = set(described.partitions) - set(self._place)
        if fresh:
            # The first time, what is there is history; later, what is new is news from its beginning.
            first = not self._place
            self._place |= {partition: self._bounds(partition)[1 if first else 0] for partition in fresh}
        if fresh or is_new:
            self._assign()
        self._checked_at = time.monotonic()

    def may_go_back(self) -> bool:
        """Tell whether listeners may be admitted that may lie behind.

        For them everything is read again that all others have had: seldom, and then for all of them at once,
        so that nobody who comes back again and again keeps the others from what is new.
        """
        return time.monotonic() - self._went_back_at >= _BACK_SECONDS

    def admit(self, listener: Listener) -> Place:
        """Give a listener its place, and go back to it where it lies behind."""
        place: Place = {}
        for partition, at in self._place.items():
            start = at if listener.asked is None else min(listener.asked.get(partition, at), at)
            if start < at:
                least = max(self._bounds(partition)[0], at - RESUMED_MOST)
                if start < least:
                    self._gaps.add(id(listener))
                    start = least
            place[partition] = start
        if place != self._place:
            # None of them lies ahead.
            self._place = dict(place)
            self._went_back_at = time.monotonic()
            self._assign()
        listener.place = place
        return place

    def note_for(self, listener: Listener) -> str:
        """Say how a stream begins."""
        if id(listener) in self._gaps:
            self._gaps.discard(id(listener))
            return "gap: the events up to here are not kept any more; read what you missed from /v1/runs"
        return "following"

    def read(self) -> list[Message]:
        """Return what came, within a moment.

        Raises:
            KafkaException: Kafka is away.
        """
        assert self._consumer is not None
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise KafkaException(failed)
        read = []
        for message in self._consumer.consume(500, timeout=_POLL_SECONDS):
            error = message.error()
            if error is not None:
                # Told once the records beside it are handed on: their place is behind us by now.
                self._failed = error
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._place[partition] = offset + 1
            read.append(message)
        return read

    def close(self) -> None:
        """Disconnect; the place is kept."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._checked_at = 0.0

    def _assign(self) -> None:
        assert self._consumer is not None
        self._consumer.assign([TopicPartition(self._topic, p, at) for p, at in self._place.items()])

    def _bounds(self, partition: int) -> tuple[int, int]:
        assert self._consumer is not None
        found = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), timeout=_ASK_SECONDS
        )
        if found is None:
            raise KafkaException(f"the bounds of {self._topic}/{partition} are not told in time")
        return int(found[0]), int(found[1])

    def _properties(self) -> dict[str, Any]:
        return self._config.client(client_id="noonmark-api-live") | {
            # librdkafka wants a name; without a subscription it joins no group.
            "group.id": f"{self._config.topic_prefix}.api-live",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "latest",
            "queued.max.messages.kbytes": 16_384,
            "fetch.wait.max.ms": 100,
        }


def events_of(listener: Listener, messages: Sequence[Message]) -> list[LiveEvent]:
    """Return what records tell a listener, and move its place behind them."""
    events = []
    for message in messages:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if offset < listener.place.get(partition, 0):
            continue
        listener.place[partition] = offset + 1
        if message.key() != listener.key:
            continue
        outcomes = _outcomes(message.value(), listener.job)
        if outcomes:
            events.append(LiveEvent(outcomes, place_text(listener.place)))
    return events


def _outcomes(value: bytes | str | None, job: str | None) -> list[dict[str, Any]]:
    try:
        found = orjson.loads(value or b"null")["data"]["outcomes"]
        return [one for one in found if job is None or one["job_id"] == job]
    except (ValueError, KeyError, TypeError):
        # Somebody else's record: it tells nothing, and stops nobody.
        return []
