"""The lane readers: one consumer and one thread per lane, checked messages into a buffer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import psycopg
from psycopg import Connection

from noonmark.attempts.running_attempt import Delivery
from noonmark.core.vocabulary import Lane
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.messages import RunMessage, RunMessageError, Signer, UnknownKey, lane_of, open_run
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Service, StartError
from noonmark.service.startup import await_read, kafka_config
from noonmark.store.cluster.pools import read_keys
from noonmark.store.database.connect import connect
from noonmark.store.runs.starts import StartRequest
from noonmark.telemetry.metrics import OFFSET_COMMIT_ERRORS
from noonmark.worker.lanes.rejected_messages import RefusedMessages

_POLL_SECONDS = 0.5
_POLL_RECORDS = 1000
_SPARE_SECONDS = 30.0
_COMMIT_SECONDS = 0.5
_KEY_REFRESH_SECONDS = 1.0
_KEY_LIFE_SECONDS = 60.0
"""A retired key is believed for so long at the most."""

_MOST_UNSURE = 1000
"""Messages with an unknown key that wait for the next look at the keys."""


class Keyring:
    """The keys that run messages of the pool may be signed with, read anew when one is unknown.

    Attributes:
        signer: has the keys.
        known_at: monotonic seconds of when they were last read.
    """

    name = "keys"

    def __init__(self, service: Service, pool: str) -> None:
        """Read the keys, waiting while the database is away.

        Raises:
            StartError: the pool is not registered.
        """
        self._service = service
        self._pool = pool
        self._lock = threading.Lock()
        self._progress = service.health.progress(self.name, 2 * _KEY_LIFE_SECONDS)
        self._read_at = 0.0
        self.known_at = 0.0
        self.signer = await_read(service, self._keys)

    def run(self, stop: threading.Event) -> None:
        """Read the keys now and then, so that one that was retired is not believed for long."""
        while not stop.wait(_KEY_LIFE_SECONDS / 2):
            self._progress.beat()
            self.refresh(older_than=_KEY_LIFE_SECONDS / 2)

    def refresh(self, *, older_than: float = _KEY_REFRESH_SECONDS) -> bool:
        """Read the keys again, at most every second; the old ones stay if Postgres is away.

        Returns:
            Whether they are as Postgres has them now.
        """
        with self._lock:
            if time.monotonic() - self._read_at < older_than:
                return False
            try:
                self.signer = self._read()
            except psycopg.Error as error:
                self._service.log.warning("keys_not_read", error=str(error).strip())
                return False
            return True

    def _read(self) -> Signer:
        with connect(self._service.settings.dsn, application="worker") as connection:
            return self._keys(connection)

    def _keys(self, connection: Connection) -> Signer:
        self._read_at = time.monotonic()
        keys = read_keys(connection, self._pool)
        if not keys:
            raise StartError(
                f"pool {self._pool!r} is not registered: run `noonmark pool create {self._pool}`"
            )
        self.known_at = self._read_at
        return Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)


class LaneReader:
    """Polls one lane for as long as the worker has anything in hand, and moves its offsets."""

    def __init__(
        self,
        service: Service,
        pool: str,
        lane: Lane,
        keyring: Keyring,
        refused: RefusedMessages,
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
            refused: takes messages that are not believed.
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
        self._refused = refused
        self._unsure: list[Record] = []
        self._unsure_since = 0.0
        self._capacity = buffer
        self._wake = wake
        self._errors_counted = 0
        self._topic = topics.runs(pool, lane)
        self._progress = service.health.progress(self.name, 15.0)
        service.health.require(self.name, "no partition is assigned yet")
        self.consumer = BatchConsumer(
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
                self._retry_unsure()
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

    def _retry_unsure(self) -> None:
        """Decide about messages with an unknown key, if the keys were read since they came."""
        if not self._unsure:
            return
        if self._keyring.refresh() or self._keyring.known_at > self._unsure_since:
            unsure, self._unsure = self._unsure, []
            self._take(unsure, sure=True)

    def _take(self, records: list[Record], *, sure: bool = False) -> None:
        """Check messages and buffer the good ones; `sure`: the keys are as new as they can be."""
        signer = self._keyring.signer
        for record in records:
            try:
                message = open_run(record.value, signer)
            except UnknownKey as error:
                if not sure:
                    # Perhaps a new one that was not read yet: no genuine message is lost for that.
                    signer = self._verify_again(record, error, signer)
                    continue
                self._refuse(record, error)
            except RunMessageError as error:
                self._refuse(record, error)
            else:
                self._accept(record, message)
        self._wake()

    def _verify_again(self, record: Record, error: UnknownKey, used: Signer) -> Signer:
        """Look at a message again with the keys that there are now, or as soon as they may be read again."""
        if self._keyring.refresh():
            self._take([record], sure=True)
        elif self._keyring.signer is not used:
            # Another lane has read them in between.
            self._take([record])
        elif len(self._unsure) < _MOST_UNSURE:
            self._unsure.append(record)
            self._unsure_since = time.monotonic()
        else:
            self._refuse(record, error)
        return self._keyring.signer

    def _accept(self, record: Record, message: RunMessage) -> None:
        if message.pool != self._pool or lane_of(message) is not self.lane:
            what = f"it is for pool {message.pool}, lane {message.lane}"
            self._refused.put(record, self.consumer, "wrong_topic", what)
            return
        ticket = StartRequest(message.run_id, message.scheduled_for, message.fence)
        self.buffer.append(Delivery(ticket, record, self.lane, message))

    def _refuse(self, record: Record, error: RunMessageError) -> None:
        self._refused.put(record, self.consumer, error.code, str(error))

    def refuse(self, deliveries: Sequence[Delivery]) -> None:
        """Take back messages of which the ledger knows better; callable from any thread."""
        for delivery in deliveries:
            detail = "the run that it names has another job, version or namespace"
            self._refused.put(delivery.record, self.consumer, "mismatch", detail)
