"""The lane readers: one consumer and one thread per lane, which check messages and buffer them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import psycopg
from psycopg import Connection

from noonmark.attempts.running_attempt import Delivery, RunningAttempt
from noonmark.core.states import Lane
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.messages import RunBatch, RunMessageError, Signer, UnknownKey, lane_of, open_runs
from noonmark.kafka.topics import Topics
from noonmark.service.inability import Inability
from noonmark.service.partitions import PartitionReadiness
from noonmark.service.runner import Service, StartError
from noonmark.service.startup import await_read, kafka_config
from noonmark.store.cluster.pools import read_keys
from noonmark.store.database.connect import connect
from noonmark.telemetry.metrics import OFFSET_COMMIT_ERRORS
from noonmark.worker.lanes.rejected_messages import RefusedMessages

_POLL_SECONDS = 0.5
_POLL_RECORDS = 1000
_SMOOTHING = 0.1
"""Weight of a message in the mean number of runs per message."""

_DRAINED_SECONDS = 1.0
_COMMIT_SECONDS = 0.5
_KEY_REFRESH_SECONDS = 1.0
_KEY_LIFE_SECONDS = 60.0
"""A retired key is accepted for at most this time."""

_MAX_UNVERIFIED = 1000
"""Messages with an unknown key that wait until the keys are read again."""


class Keyring:
    """The keys with which run messages of the pool are signed; read again when a key is unknown.

    They are read in a thread of its own: a lane reader that waited for Postgres would look as if it hung.

    Attributes:
        signer: verifies signatures with the keys.
        known_at: monotonic time of the last read, in seconds.
    """

    name = "keys"

    def __init__(self, service: Service, pool: str) -> None:
        """Read the keys, waiting while the database is down.

        Raises:
            StartError: the pool is not registered.
        """
        self._service = service
        self._pool = pool
        self._wanted = threading.Event()
        self._progress = service.health.progress(self.name, 2 * _KEY_LIFE_SECONDS)
        self._tried_at = time.monotonic()
        self.known_at = 0.0
        self.signer = await_read(service, self._keys)

    def run(self, stop: threading.Event) -> None:
        """Read the keys when they are wanted, and so often that a retired key is not accepted for long."""
        while not stop.is_set():
            self._progress.beat()
            wanted = self._wanted.wait(_POLL_SECONDS)
            age = time.monotonic() - self._tried_at
            if age >= (_KEY_REFRESH_SECONDS if wanted else _KEY_LIFE_SECONDS / 2):
                self._wanted.clear()
                self._refresh()
            elif wanted:
                stop.wait(_KEY_REFRESH_SECONDS - age)

    def want(self) -> None:
        """Have the keys read again soon, at most every second; callable from any thread."""
        self._wanted.set()

    def _refresh(self) -> None:
        """Read the keys again; keep the old ones if Postgres is down."""
        self._tried_at = time.monotonic()
        try:
            self.signer = self._read()
        except psycopg.Error as error:
            self._service.log.warning("keys_not_read", error=str(error).strip())

    def _read(self) -> Signer:
        with connect(self._service.settings.dsn, application="worker") as connection:
            return self._keys(connection)

    def _keys(self, connection: Connection) -> Signer:
        read_at = time.monotonic()
        keys = read_keys(connection, self._pool)
        if not keys:
            raise StartError(
                f"pool {self._pool!r} is not registered: run `noonmark pool create {self._pool}`"
            )
        self.known_at = read_at
        return Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)


class LaneReader:
    """Polls one lane as long as the worker has runs in flight, and moves its offsets."""

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
        """Join the consumer group of the lane.

        Args:
            service: the process.
            pool: the worker's pool.
            lane: the lane to read.
            keyring: checks signatures.
            refused: keeps messages that fail their checks.
            buffer: number of runs kept in memory; when it is reached, the lane is paused.
            wake: called when there are runs to start.
        """
        topics = Topics(service.settings.topic_prefix)
        self.name = f"lane_{lane.label}"
        self.lane = lane
        self.buffer: deque[Delivery] = deque()
        self.left = threading.Event()
        """Set once the group was left, or could not be left in time."""
        self.closed = threading.Event()
        self._leaving = threading.Event()
        self._service = service
        self._pool = pool
        self._keyring = keyring
        self._refused = refused
        self._unverified: list[Record] = []
        self._unverified_since = 0.0
        self._capacity = buffer
        self._per_message = 1.0
        self._wake = wake
        self._errors_counted = 0
        self._topic = topics.runs(pool, lane)
        self._progress = service.health.progress(self.name, 15.0)
        self.inability = Inability(service.settings.lease_seconds)
        """For how long the worker could start nothing; the engine marks when it can."""
        self._partitions = PartitionReadiness(service.health, self.name)
        self.consumer = BatchConsumer(
            kafka_config(service.settings),
            self._topic,
            topics.group_worker(pool, lane),
            max_in_flight=20_000,
            commit_interval_seconds=_COMMIT_SECONDS,
        )

    def run(self, stop: threading.Event) -> None:
        """Poll until the engine leaves the group, which it does when a drain begins, or closes the reader."""
        del stop  # the engine sets `closed` when no run is in flight any more
        try:
            while not (self._leaving.is_set() or self.closed.is_set()):
                most = max(1, min(_POLL_RECORDS, int(self._capacity / self._per_message)))
                records = self.consumer.poll_batch(most, _POLL_SECONDS)
                self._progress.beat()
                self._count_errors()
                self._yield_partitions()
                self._retry_unverified()
                if records:
                    self._check(records)
                if len(self.buffer) >= self._capacity:
                    self.consumer.pause()
                self._partitions.report(self.consumer)
        finally:
            self.consumer.close()
            self._count_errors()
            self.left.set()
        while not self.closed.wait(_DRAINED_SECONDS):
            self._progress.beat()

    def taken(self) -> None:
        """Resume a paused lane if the buffer is half empty; called by the engine after it took messages."""
        if (
            self.consumer.is_paused
            and len(self.buffer) <= self._capacity // 2
            and not self._service.stop.is_set()
        ):
            self.consumer.resume()

    def leave(self) -> None:
        """Commit what is settled and leave the group: other workers get the partitions at once.

        Messages that were not started are delivered to them. Those of runs in flight are too, but these are
        running, so they are not started again.
        """
        self.consumer.pause()
        self._leaving.set()
        self.buffer.clear()

    def _yield_partitions(self) -> None:
        """Leave the group while the worker can start nothing for long: other workers start its messages."""
        if not self.inability.is_long():
            self.consumer.join_group()
            return
        self.consumer.leave_group()
        if not self.consumer.assigned:
            # What is buffered was delivered to others; a full buffer would keep the lane paused.
            self.buffer.clear()
            self._unverified.clear()
            self.taken()

    def _count_errors(self) -> None:
        errors = self.consumer.counters.commit_errors
        if errors > self._errors_counted:
            OFFSET_COMMIT_ERRORS.inc(errors - self._errors_counted)
            self._errors_counted = errors

    def _retry_unverified(self) -> None:
        """Check messages with an unknown key again, if the keys were read since they arrived."""
        if not self._unverified:
            return
        if self._keyring.known_at <= self._unverified_since:
            self._keyring.want()
            return
        waiting, self._unverified = self._unverified, []
        self._check(waiting, keys_current=True)

    def _check(self, records: list[Record], *, keys_current: bool = False) -> None:
        """Check messages and buffer the valid ones; `keys_current`: the keys were just read."""
        signer = self._keyring.signer
        for record in records:
            try:
                message = open_runs(record.value, signer)
            except UnknownKey as error:
                if not keys_current:
                    # The key can be new and not read yet: no genuine message may be rejected for that.
                    signer = self._verify_again(record, error, signer)
                    continue
                self._refuse(record, error)
            except RunMessageError as error:
                self._refuse(record, error)
            else:
                self._accept(record, message)
        self._wake()

    def _verify_again(self, record: Record, error: UnknownKey, used: Signer) -> Signer:
        """Check a message again with the current keys, or as soon as they have been read again."""
        if self._keyring.signer is not used:
            # They were read meanwhile.
            self._check([record])
        elif len(self._unverified) < _MAX_UNVERIFIED:
            self._unverified.append(record)
            self._unverified_since = time.monotonic()
            self._keyring.want()
        else:
            self._refuse(record, error)
        return self._keyring.signer

    def _accept(self, record: Record, batch: RunBatch) -> None:
        if batch.pool != self._pool or lane_of(batch) is not self.lane:
            what = f"it is for pool {batch.pool}, lane {batch.lane}"
            self._refused.put(record, self.consumer, "wrong_topic", what)
            return
        runs, lane = batch.runs, self.lane
        self._per_message += (len(runs) - self._per_message) * _SMOOTHING
        # With several runs, each is started and settled by itself: none waits for another.
        parts = [record] if len(runs) == 1 else self.consumer.split(record, len(runs))
        self.buffer.extend(Delivery(run, part, lane, run) for run, part in zip(runs, parts, strict=True))

    def _refuse(self, record: Record, error: RunMessageError) -> None:
        self._refused.put(record, self.consumer, error.code, str(error))

    def refuse(self, deliveries: Sequence[Delivery]) -> None:
        """Reject messages that contradict the ledger; callable from any thread."""
        for delivery in deliveries:
            run_id = delivery.start_request.run_id
            detail = f"the run {run_id} that it names has another job, version or namespace"
            self._refused.put(delivery.record, self.consumer, "mismatch", detail)


def records_by_lane(items: Iterable[Delivery | RunningAttempt]) -> Sequence[list[Record]]:
    """Sort the records of messages or runs by lane, for their consumers."""
    # An index by lane costs a quarter of a dict's look-up, which calls the hash of an enum.
    records: Sequence[list[Record]] = [[] for _ in Lane]
    for item in items:
        records[item.lane].append(item.record)
    return records


def settle_records(readers: Sequence[LaneReader], items: Iterable[Delivery | RunningAttempt]) -> None:
    """Let the offsets of these messages or runs move; `readers` has one reader per lane, in their order."""
    for reader, records in zip(readers, records_by_lane(items), strict=True):
        if records:
            reader.consumer.settle(records)
