"""Run messages that were not believed, kept for people: a few a second, so that a flood fills nothing.

Every one is counted. Those that are kept are settled once their row is committed, the others at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final, NamedTuple

import psycopg

from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import Record
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.jobs.rejections import RefusedMessage, keep_messages
from noonmark.telemetry.metrics import MESSAGE_REJECTED

BURST: Final = 100
"""Messages that are kept in a row."""

PER_SECOND: Final = 1.0
"""What is kept of a flood after that: some 86,000 rows of a worker and day at the very most."""

_KEPT_BYTES: Final = 1024
"""Of a message's value."""

_POLL_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 2.0


class _Kept(NamedTuple):
    message: RefusedMessage
    record: Record
    consumer: BatchConsumer


class Allowance:
    """A bucket of `burst` that fills again by `per_second`. Used by one thread at a time."""

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Take one out, if there is one at this monotonic second."""
        if self._at is not None:
            self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class RefusedMessages:
    """Takes refused messages from the lanes, which do not wait for Postgres, and writes them in batches."""

    name = "refused_messages"

    def __init__(self, service: Service) -> None:
        """Make the loop."""
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._progress = service.health.progress(self.name, 60.0)
        self._lock = threading.Lock()
        self._allowance = Allowance(BURST, PER_SECOND)
        self._waiting: deque[_Kept] = deque()
        self._wake = threading.Event()

    def put(self, record: Record, consumer: BatchConsumer, reason: str, detail: str) -> None:
        """Count a message that was refused, and keep it if there is room; callable from any thread.

        Args:
            record: that held it; it is settled here, now or once it is kept.
            consumer: that it came from.
            reason: a word of `MESSAGE_REJECTION_REASONS`.
            detail: what is wrong, for people.
        """
        MESSAGE_REJECTED.labels(reason).inc()
        with self._lock:
            kept = len(self._waiting) < BURST and self._allowance.take(time.monotonic())
            if kept:
                message = RefusedMessage(
                    record.topic,
                    record.partition,
                    record.offset,
                    reason,
                    detail[:300],
                    record.value[:_KEPT_BYTES],
                    truncated=len(record.value) > _KEPT_BYTES,
                )
                self._waiting.append(_Kept(message, record, consumer))
        if kept:
            place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
            self._log.warning("message_rejected", **place, reason=reason, detail=detail[:300])
            self._wake.set()
        else:
            # Nothing a forged or broken message says is acted on: its fate is that it was counted.
            consumer.settle([record])

    def run(self, stop: threading.Event) -> None:
        """Write what comes until stopped. What is not written then is delivered again to another worker."""
        while not stop.is_set():
            self._progress.beat()
            self._wake.wait(_POLL_SECONDS)
            self._wake.clear()
            if self._waiting and not self._write():
                stop.wait(_RETRY_SECONDS)
        self._write()

    def _write(self) -> bool:
        some = list(self._waiting)
        if not some:
            return True
        try:
            with connect(self._service.settings.dsn, application="worker") as connection:
                keep_messages(connection, [kept.message for kept in some])
        except psycopg.Error as error:
            self._log.warning("rejections_not_kept_yet", count=len(some), error=str(error).strip())
            return False
        for kept in some:
            self._waiting.popleft()
            kept.consumer.settle([kept.record])
        return True
