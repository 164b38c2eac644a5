"""Stores the statistics of a batch of records in Postgres, in one transaction with the new offsets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

import psycopg

from noonmark.core.faults import hit
from noonmark.core.monitoring.statistics import Outcome, fold
from noonmark.observer.event_parsing import HeardEvent, read_event
from noonmark.observer.records import Record
from noonmark.service.backoff import retry_transient
from noonmark.service.database_errors import DbFault, log_fault, missing_because
from noonmark.service.runner import Service
from noonmark.store.alerts import statistics
from noonmark.store.alerts.statistics import Move, Place
from noonmark.store.database.connect import connect

T = TypeVar("T")

_JOBS_KEPT: Final = 50_000
_PRESENT_SECONDS: Final = 30.0
"""A partition whose last read record is younger than this has caught up, even if more records follow."""

_IDLE_SECONDS: Final = 5.0
_SEEK_SECONDS: Final = 2.0
_SEEKS: Final = 5
"""After this number of seeks, a gap must be in the topic itself."""

_MOST_BYTES: Final = 400_000
"""Records that are stored in one transaction, about 1,600 outcomes. While one is open, Postgres keeps the old
versions of all rows: updates of runs then find no room in their pages, and cost three times the WAL."""


@dataclass(slots=True)
class _Gap:
    """A gap in a partition: the record read is not the one at the stored offset."""

    at: int
    seeks: int = 0
    sought_at: float = 0.0


class OutcomeStore:
    """Stores batches, one at a time, and retries while the database is unavailable.

    A record below the stored offset is dropped, so a record that is read twice (after a crash, a rebalance or
    by a second observer) counts once. A record above it is not stored either: the gap is read first.
    """

    def __init__(self, service: Service, topic: str, *, waits: Callable[[], None] = lambda: None) -> None:
        """Create a store for the records of a topic; `waits` is called at each failed attempt."""
        self._service = service
        self._topic = topic
        self._waits = waits
        self._log = service.log.bind(loop="outcomes")
        self._connection: psycopg.Connection | None = None
        self._lock = threading.Lock()
        self._kinds: dict[int, str] = {}
        self._gaps: dict[int, _Gap] = {}
        self._behind: set[int] = set()
        self._lag, self._lag_at = 0.0, time.monotonic()
        self._storing_from: float | None = None

    @property
    def lag(self) -> float:
        """How many seconds the last outcomes, or those after them, waited to be read; 0 if none wait."""
        first = self._storing_from
        if first is not None:
            # As long as the database does not take a batch, its outcomes wait.
            return max(0.0, time.time() - first)
        since = time.monotonic() - self._lag_at
        if self._behind:
            return self._lag + since
        return self._lag if since < _IDLE_SECONDS else 0.0

    def places(self, places: Sequence[Place]) -> dict[int, int]:
        """Return the offset from which to read each partition.

        Raises:
            StoppedError: the service was stopped while the database was unavailable.
        """

        def attempt() -> dict[int, int]:
            stored = statistics.lock(self._open(), self._topic, [one.partition for one in places])
            for one in places:
                if not one.first <= stored.get(one.partition, one.first) <= one.end:
                    self._log.warning(
                        "records_missing",
                        partition=one.partition,
                        first=stored[one.partition],
                        found=one.first,
                    )
            found = statistics.place(self._open(), self._topic, places)
            # Another observer inserted a row at the same moment: the second read finds it.
            return found if len(found) == len(places) else statistics.place(self._open(), self._topic, places)

        found = self._retried(attempt)
        self._lag, self._lag_at = 0.0, time.monotonic()
        self._behind = {one.partition for one in places if found.get(one.partition, one.end) < one.end}
        return found

    def take(self, records: Sequence[Record]) -> list[int]:
        """Store a batch; return the partitions that must seek to the stored offset again.

        A large batch is stored in several transactions, in the order of its records.

        Raises:
            StoppedError: the service was stopped while the database was unavailable; nothing is lost.
        """
        self._storing_from = records[0].timestamp if records else None
        try:
            to_seek = [
                partition
                for some in _in_steps(records)
                for partition in self._retried(partial(self._take, some))
            ]
        finally:
            self._storing_from = None
        if records:
            self._lag, self._lag_at = max(0.0, time.time() - records[-1].timestamp), time.monotonic()
            last = {record.partition: record for record in records}
            behind = {
                partition
                for partition, one in last.items()
                if one.end is not None and one.offset + 1 < one.end
            }
            self._behind = (self._behind - last.keys()) | behind
        return list(dict.fromkeys(to_seek))

    def close(self) -> None:
        """Release the connection."""
        with self._lock:
            self._drop()

    def _retried(self, attempt: Callable[[], T]) -> T:
        with self._lock:
            done = retry_transient(attempt, self._service.stop, on_fault=self._fault)
        self._service.health.set_ready("outcomes_database", ready=True)
        return done

    def _fault(self, error: Exception, _fault: DbFault) -> None:
        log_fault(self._log, error)
        self._waits()
        self._service.health.set_ready("outcomes_database", ready=False, missing=missing_because(error))
        # The cached kinds of jobs stay: they are true even if their transaction was rolled back.
        self._drop()

    def _open(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = connect(self._service.settings.dsn, application="observer", autocommit=True)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _take(self, records: Sequence[Record]) -> list[int]:
        connection = self._open()
        by_partition: dict[int, list[Record]] = {}
        for record in records:
            by_partition.setdefault(record.partition, []).append(record)
        to_seek: list[int] = []
        with connection.transaction():
            stored = statistics.lock(connection, self._topic, by_partition)
            fresh = {
                partition: next_ones
                for partition, mine in by_partition.items()
                if (next_ones := self._next_ones(partition, mine, stored.get(partition), to_seek))
            }
            if fresh:
                self._store(connection, fresh)
                hit("observer.before_commit")
        if fresh:
            hit("observer.after_commit")
        return to_seek

    def _next_ones(
        self, partition: int, records: Sequence[Record], stored: int | None, to_seek: list[int]
    ) -> list[Record]:
        """Return the records from the stored offset on, or none if there is a gap before them."""
        mine = [record for record in records if stored is None or record.offset >= stored]
        if not mine:
            end = records[-1].end
            if stored is not None and end is not None and end < stored:
                # The topic ends before the stored offset: it was recreated, and is read from its beginning.
                to_seek.append(partition)
            return []
        if stored is not None and mine[0].offset == stored:
            self._gaps.pop(partition, None)
            return mine
        gap = self._gaps.get(partition)
        if gap is None or gap.at != (stored or 0):
            gap = self._gaps[partition] = _Gap(stored or 0)
        if gap.seeks >= _SEEKS and stored is not None:
            self._log.warning("records_missing", partition=partition, first=stored, found=mine[0].offset)
            del self._gaps[partition]
            return mine
        if time.monotonic() - gap.sought_at >= _SEEK_SECONDS:
            gap.seeks += 1
            gap.sought_at = time.monotonic()
            to_seek.append(partition)
        return []

    def _store(self, connection: psycopg.Connection, fresh: Mapping[int, Sequence[Record]]) -> None:
        events = [event for records in fresh.values() for event in self._events(records)]
        new = statistics.new_events(connection, {event.id for event in events})
        outcomes = list(_of_new(events, new))
        kinds = self._kinds_of(connection, outcomes)
        recurring = {one.job_id.int: one.job_id for one in outcomes if one.job_id.int in kinds}
        if recurring:
            stored = statistics.stats_of(connection, recurring.values())
            changed = fold(outcomes, kinds, stored.by_job, stored.hour)
            statistics.write_stats(connection, changed, stored.places)
        statistics.move(
            connection, self._topic, [_move(partition, rows) for partition, rows in fresh.items()]
        )
        # What the trigger writes without a worker would hide that no worker works.
        if by_workers := [event.published_at for event in events if event.is_of_worker]:
            statistics.heard(connection, max(by_workers))

    def _events(self, records: Sequence[Record]) -> Iterable[HeardEvent]:
        for record in records:
            try:
                event = read_event(record.value, _published_at(record))
            except ValueError as error:
                self._log.warning(
                    "record_not_read", partition=record.partition, offset=record.offset, error=str(error)
                )
            else:
                if event is not None:
                    yield event

    def _kinds_of(self, connection: psycopg.Connection, outcomes: Iterable[Outcome]) -> Mapping[int, str]:
        """Return the kinds of all recurring jobs among others. They never change and are cached."""
        if len(self._kinds) > _JOBS_KEPT:
            self._kinds.clear()
        unknown = {one.job_id.int: one.job_id for one in outcomes if one.job_id.int not in self._kinds}
        if unknown:
            self._kinds.update(statistics.recurring_kinds(connection, unknown.values()))
        return self._kinds


def _in_steps(records: Sequence[Record]) -> Iterable[Sequence[Record]]:
    """Divide a batch into parts of at most `_MOST_BYTES`; a record that is larger is a part by itself."""
    some: list[Record] = []
    held = 0
    for record in records:
        size = len(record.value or b"")
        if some and held + size > _MOST_BYTES:
            yield some
            some, held = [], 0
        some.append(record)
        held += size
    yield some


def _published_at(record: Record) -> datetime:
    try:
        return datetime.fromtimestamp(record.timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        # The producer set an impossible timestamp.
        return datetime.fromtimestamp(0, UTC)


def _of_new(events: Iterable[HeardEvent], new: set[UUID]) -> Iterable[Outcome]:
    """Return the outcomes of events that are new; of two equal events in a batch, the first counts."""
    left = set(new)
    for event in events:
        if event.id in left:
            left.discard(event.id)
            yield from event.outcomes


def _move(partition: int, records: Sequence[Record]) -> Move:
    last = records[-1]
    caught_up = last.end is not None and last.offset + 1 >= last.end
    return Move(partition, last.offset + 1, caught_up or time.time() - last.timestamp < _PRESENT_SECONDS)
