"""Rejected run messages, stored for people: a few per second, so that a flood cannot fill the table.

Each is counted. A stored one is settled when its row is committed, any other at once.
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
"""Number of messages that can be stored in one burst."""

PER_SECOND: Final = 1.0
"""Messages stored per second after that: at most about 86,000 rows per worker and day."""

_KEPT_BYTES: Final = 1024
"""Bytes of a message's value that are stored."""

_POLL_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 2.0


class _Kept(NamedTuple):
    message: RefusedMessage
    record: Record
    consumer: BatchConsumer


class Allowance:
    """A token bucket of size `burst`, refilled by `per_second`. Used by one thread at a time."""

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Take a token; False if there is none at this monotonic time, in seconds."""
        if self._at is not None:
            self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class RefusedMessages:
    """Writes rejected messages in batches, so that the lanes do not wait for Postgres."""

    name = "refused_messages"

    def __init__(self, service: Service) -> None:
        """Create the loop."""
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._progress = service.health.progress(self.name, 60.0)
        self._lock = threading.Lock()
        self._allowance = Allowance(BURST, PER_SECOND)
        self._waiting: deque[_Kept] = deque()
        self._wake = threading.Event()

    def put(self, record: Record, consumer: BatchConsumer, reason: str, detail: str) -> None:
        """Count a rejected message, and store it if the allowance permits; callable from any thread.

        Args:
            record: its record, which is settled here: now, or once the message is stored.
            consumer: the consumer that received it.
            reason: one of `MESSAGE_REJECTION_REASONS`.
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
            # Nothing in a forged or broken message has an effect, so it is settled by being counted.
            consumer.settle([record])

    def run(self, stop: threading.Event) -> None:
        """Write messages until stopped. Those that are not written are delivered to another worker."""
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
