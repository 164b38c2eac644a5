"""The lane readers: one consumer and one thread per lane, checked messages into a buffer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import psycopg

from noonmark.core.words import Lane
from noonmark.kafka.consumer import LaneConsumer
from noonmark.kafka.messages import RunMessage, RunMessageError, Signer, UnknownKey, lane_of, open_run
from noonmark.kafka.records import Record
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Service, StartError
from noonmark.service.startup import kafka_config
from noonmark.store.connect import connect
from noonmark.store.keys import read_keys
from noonmark.store.work import Ticket
from noonmark.telemetry.metrics import MESSAGE_REJECTED, OFFSET_COMMIT_ERRORS
from noonmark.worker.hand import Delivery

_POLL_SECONDS = 0.5
_POLL_RECORDS = 1000
_SPARE_SECONDS = 30.0
_COMMIT_SECONDS = 0.5
_KEY_REFRESH_SECONDS = 5.0


class Keyring:
    """The keys that run messages of the pool may be signed with, read anew when one is unknown."""

    def __init__(self, service: Service, pool: str) -> None:
        """Read the keys.

        Raises:
            StartError: the pool is not registered.
        """
        self._service = service
        self._pool = pool
        self._lock = threading.Lock()
        self._read_at = 0.0
        self.signer = self._read()

    def refresh(self) -> None:
        """Read the keys again, at most every few seconds; the old ones stay if Postgres is away."""
        with self._lock:
            if time.monotonic() - self._read_at < _KEY_REFRESH_SECONDS:
                return
            try:
                self.signer = self._read()
            except psycopg.Error as error:
                self._service.log.warning("keys_not_read", error=str(error).strip())

    def _read(self) -> Signer:
        self._read_at = time.monotonic()
        with connect(self._service.settings.dsn, application="worker") as connection:
            keys = read_keys(connection, self._pool)
        if not keys:
            raise StartError(
                f"pool {self._pool!r} is not registered: run `noonmark pool create {self._pool}`"
            )
        return Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)


class LaneReader:
    """Polls one lane for as long as the worker has anything in hand, and moves its offsets."""

    def __init__(
        self,
        service: Service,
        pool: str,
        lane: Lane,
        keyring: Keyring,
        *,
        buffer: int,
        wake: Callable[[], None],
    ) -> None:
        """Join the lane's group.

        Args:
            service: the process.
            pool: whose runs.
            lane: which lane of it.
            keyring: checks signatures.
            buffer: messages held in memory; beyond it the lane is paused.
            wake: told when there is something to start.
        """
        topics = Topics(service.settings.topic_prefix)
        self.name = f"lane_{lane.label}"
        self.lane = lane
        self.buffer: deque[Delivery] = deque()
        self.closed = threading.Event()
        self._service = service
        self._pool = pool
        self._keyring = keyring
        self._capacity = buffer
        self._wake = wake
        self._errors_counted = 0
        self._topic = topics.runs(pool, lane)
        self._progress = service.health.progress(self.name, 15.0)
        service.health.require(self.name, "no partition is assigned yet")
        self.consumer = LaneConsumer(
            kafka_config(service.settings),
            self._topic,
            topics.group_worker(pool, lane),
            max_in_flight=20_000,
            commit_interval_seconds=_COMMIT_SECONDS,
        )

    def run(self, stop: threading.Event) -> None:
        """Poll until `closed`: also while draining, so that membership holds and offsets move."""
        del stop  # the engine decides when nothing is in hand any more
        ready = False
        spare_at = time.monotonic() + _SPARE_SECONDS
        try:
            while not self.closed.is_set():
                records = self.consumer.poll_batch(_POLL_RECORDS, _POLL_SECONDS)
                self._progress.beat()
                self._count_errors()
                if records:
                    self._take(records)
                if len(self.buffer) >= self._capacity:
                    self.consumer.pause()
                # With more workers than partitions some have none: ready to take over is ready as well.
                if ready != (bool(self.consumer.assigned) or time.monotonic() > spare_at):
                    ready = not ready
                    self._service.health.set_ready(self.name, ready=ready, missing="no partition is assigned")
        finally:
            self.consumer.close()
            self._count_errors()

    def taken(self) -> None:
        """Told by the engine after it took from the buffer."""
        if (
            self.consumer.is_paused
            and len(self.buffer) <= self._capacity // 2
            and not self._service.stop.is_set()
        ):
            self.consumer.resume()

    def stop_taking(self) -> None:
        """Take no more messages; what is buffered goes back to Kafka by not being committed."""
        self.consumer.pause()
        self.buffer.clear()

    def _count_errors(self) -> None:
        errors = self.consumer.counters.commit_errors
        if errors > self._errors_counted:
            OFFSET_COMMIT_ERRORS.inc(errors - self._errors_counted)
            self._errors_counted = errors

    def _take(self, records: list[Record]) -> None:
        refused = []
        for record in records:
            ticket = self._check(record)
            if ticket is None:
                refused.append(record)
            else:
                self.buffer.append(Delivery(ticket, record, self.lane))
        if refused:
            # Nothing a forged or broken message says is acted on: its fate is that it was counted.
            self.consumer.settle(refused)
        self._wake()

    def _check(self, record: Record) -> Ticket | None:
        try:
            message = self._open(record.value)
        except RunMessageError as error:
            MESSAGE_REJECTED.labels(error.code).inc()
            self._service.log.warning(
                "message_rejected",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                reason=error.code,
                detail=str(error)[:300],
            )
            return None
        if message.pool != self._pool or lane_of(message) is not self.lane:
            MESSAGE_REJECTED.labels("wrong_topic").inc()
            self._service.log.warning(
                "message_rejected", topic=record.topic, offset=record.offset, reason="wrong_topic"
            )
            return None
        return Ticket(message.run_id, message.scheduled_for, message.fence)

    def _open(self, value: bytes) -> RunMessage:
        try:
            return open_run(value, self._keyring.signer)
        except UnknownKey:
            self._keyring.refresh()
            return open_run(value, self._keyring.signer)
