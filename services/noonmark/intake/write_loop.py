"""The write loop and its queue: it writes each checked batch in one transaction, then settles its records."""

from __future__ import annotations

import threading
import time
from collections import Counter

import psycopg

from noonmark.core.faults import hit
from noonmark.intake.audit_entries import audit_entries
from noonmark.intake.authorization import Authorizer
from noonmark.intake.batch_checks import CheckedBatch, check, rejected_record
from noonmark.intake.event_traces import read_traces
from noonmark.kafka.topics import Topics
from noonmark.service.acceptor import Acceptor
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.access.audit import write_entries
from noonmark.store.database.hints import HintSender
from noonmark.store.jobs.rejections import Place, RejectedRecord, record_rejections
from noonmark.store.jobs.submit import Status, Taken
from noonmark.store.schedules.time_facts import DatabaseClock, facts_number, share_time_facts
from noonmark.telemetry.metrics import REJECTIONS, SUBMISSIONS

_REFRESH_SECONDS = 5.0
_CHECK_VALID_SECONDS = 1.0
"""A signed batch whose check is older is checked again, because its key may have been revoked."""


class BatchQueue:
    """Passes checked batches from the reader to the writer: at most one being written and one waiting.

    A batch being written stays until it is committed, through database outages.
    """

    def __init__(self, wake: threading.Event) -> None:
        """Create an empty queue.

        Args:
            wake: the event to set when a batch is offered.
        """
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: CheckedBatch | None = None
        self._writing: CheckedBatch | None = None
        self._closed = False

    def offer(self, batch: CheckedBatch) -> None:
        """Add a batch. The waiting slot must be free, and only one thread may call this."""
        with self._changed:
            assert self._waiting is None, "a batch was offered while another one waits"
            self._waiting = batch
        self._wake.set()

    def wait_for_slot(self, timeout_seconds: float) -> bool:
        """Wait until the slot is free; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting is None, timeout_seconds)

    def begin(self) -> CheckedBatch | None:
        """Return the batch to write: the unfinished one, else the next one; None if there is neither."""
        with self._changed:
            if self._writing is None and not self._closed:
                self._writing, self._waiting = self._waiting, None
                self._changed.notify_all()
            return self._writing

    def done(self) -> None:
        """Forget the batch being written, because it is committed."""
        with self._changed:
            self._writing = None
            self._changed.notify_all()

    def close(self, timeout_seconds: float) -> None:
        """Stop handing out batches, and wait for the one being written."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._writing is None, timeout_seconds)

    def abandon(self) -> None:
        """Stop waiting for the batch being written, because the writer has stopped. Kafka redelivers it."""
        self._closed = True
        self.done()


class WriteLoop(DatabaseLoop):
    """Commits checked batches.

    If the transaction of a batch fails, or its COMMIT gets no answer, the whole batch is written again. The
    inbox recognises its events, and the rejections their offsets, so the second write adds nothing twice.
    """

    def __init__(
        self,
        service: Service,
        topics: Topics,
        clock: DatabaseClock,
        hints: HintSender,
        authorizer: Authorizer,
        *,
        shards: int,
    ) -> None:
        """Register the loop; `handover` is its queue of batches."""
        super().__init__(service, "write", max_age_seconds=60.0)
        self.handover = BatchQueue(self.wake)
        self._topics = topics
        self._acceptor = Acceptor(topics, hints, shards=shards, traces=service.traces)
        self._clock = clock
        self._authorizer = authorizer
        self._refresh_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Write until `stop` is set; the batch in flight is finished if the database answers."""
        try:
            super().run(stop)
        finally:
            self.handover.abandon()

    def run_once(self, connection: psycopg.Connection) -> float:
        """Write one batch."""
        self._refresh_clock(connection)
        batch = self.handover.begin()
        if batch is None:
            return 1.0
        batch, taken, rejected = self._write(connection, batch)
        hit("intake.after_commit")
        batch.consumer.settle(batch.records)
        self.handover.done()
        if taken is not None:
            self._clock.observe(taken.now)
            self._acceptor.record_accepted(taken)
        _count(batch, taken, rejected)
        return 0.0

    def _write(
        self, connection: psycopg.Connection, batch: CheckedBatch
    ) -> tuple[CheckedBatch, Taken | None, list[RejectedRecord]]:
        # The batch may have waited while the database was unavailable.
        if batch.signers and time.monotonic() - batch.checked_at > _CHECK_VALID_SECONDS:
            batch = self._check_again(connection, batch)
        while True:
            with connection.transaction():
                share_time_facts(connection, wait=True)
                if facts_number(connection) == batch.moment.facts.number:
                    taken, rejected = self._write_checked(connection, batch)
                    return batch, taken, rejected
            # A calendar or a namespace has changed since: check again, outside any transaction.
            batch = self._check_again(connection, batch)

    def _check_again(self, connection: psycopg.Connection, batch: CheckedBatch) -> CheckedBatch:
        self._clock.refresh(connection)
        moment = self._clock.moment()
        assert moment is not None
        most = self._service.settings.max_submission_bytes
        return check(
            batch.consumer,
            batch.records,
            moment,
            authorizer=self._authorizer,
            max_bytes=most,
            context=batch.context,
        )

    def _write_checked(
        self, connection: psycopg.Connection, batch: CheckedBatch
    ) -> tuple[Taken | None, list[RejectedRecord]]:
        taken = None
        rejected = [record for record, _ in batch.refused]
        if batch.requests:
            if self._service.traces is not None:
                read_traces(batch, self._topics.group_intake)
            taken = self._acceptor.accept(connection, batch.requests, batch.moment.facts)
            rejected += _rejected_results(batch, taken)
        new: set[Place] = set()
        if rejected:
            new = record_rejections(
                connection,
                rejected,
                topic=self._topics.rejections,
                cap_bytes=self._service.settings.rejection_bytes,
                shards=self._acceptor.shards,
            )
        if batch.signers or batch.denied:
            write_entries(connection, audit_entries(batch, taken, new))
        hit("intake.before_commit")
        return taken, rejected

    def _refresh_clock(self, connection: psycopg.Connection) -> None:
        """Read the database's time regularly, even with nothing to write, which also detects an outage."""
        now = time.monotonic()
        if now >= self._refresh_at:
            self._clock.refresh(connection)
            self._refresh_at = now + _REFRESH_SECONDS


def _rejected_results(batch: CheckedBatch, taken: Taken) -> list[RejectedRecord]:
    rejected = []
    for (record, _), request, result in zip(batch.sources, batch.requests, taken.results, strict=True):
        if result.status is Status.REJECTED:
            assert result.refused is not None
            assert result.reason is not None
            refused = result.refused.below("/data")
            rejected.append(rejected_record(record, result.reason.value, refused, request.event))
    return rejected


def _count(batch: CheckedBatch, taken: Taken | None, rejected: list[RejectedRecord]) -> None:
    kinds: Counter[tuple[str, Status]] = Counter((word, Status.REJECTED) for _, word in batch.refused)
    if taken is not None:
        kinds.update(
            (word, result.status) for (_, word), result in zip(batch.sources, taken.results, strict=True)
        )
    for (word, status), count in kinds.items():
        SUBMISSIONS.labels(word, status.value).inc(count)
    for reason, count in Counter(record.reason for record in rejected).items():
        REJECTIONS.labels(reason).inc(count)
