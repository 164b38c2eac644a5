"""The read loop: polls the submission topics, bulk only when the others are empty, and checks the records."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import psycopg

from noonmark.intake.authorization import Authorizer
from noonmark.intake.batch_checks import check
from noonmark.intake.write_loop import BatchQueue
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.topics import Topics
from noonmark.service.inability import Inability
from noonmark.service.partitions import PartitionReadiness
from noonmark.service.runner import Service
from noonmark.service.startup import kafka_config
from noonmark.store.schedules.time_facts import DatabaseClock, Moment

_WAIT_SECONDS = 0.1
_LEAVE_SECONDS = 5.0
_CONDITION = "partitions"


class ReadLoop:
    """Owns both consumers. While the writer's queue is full, it fetches nothing but stays in the group."""

    name = "read"

    def __init__(
        self,
        service: Service,
        topics: Topics,
        handover: BatchQueue,
        clock: DatabaseClock,
        authorizer: Authorizer,
        *,
        further: Sequence[str] = (),
    ) -> None:
        """Register the loop; the consumers join the group when it runs.

        Args:
            service: the service that the loop runs in.
            topics: the installation's topics.
            handover: the queue for checked batches.
            clock: the database's time.
            authorizer: authorizes the events.
            further: topics that are read together with the submissions topic, before the bulk topic.
        """
        self._service = service
        self._topics = topics
        self._handover = handover
        self._clock = clock
        self._authorizer = authorizer
        self._further = further
        self._unchecked: tuple[BatchConsumer, list[Record]] | None = None
        self._key_missing = False
        self._progress = service.health.progress(self.name, 30.0)
        self._inability = Inability(service.settings.lease_seconds)
        self._partitions = PartitionReadiness(service.health, _CONDITION)

    def run(self, stop: threading.Event) -> None:
        """Read until `stop` is set, then commit the settled records and leave the group."""
        main = self._consumer(self._topics.submissions, *self._further)
        bulk = self._consumer(self._topics.submissions_bulk)
        try:
            while not stop.is_set():
                self._yield_partitions(main, bulk)
                self._turn(main, bulk)
                self._progress.beat()
                self._partitions.report(main)
            # The batch being written settles its records. The waiting one is delivered again, which is safe:
            # the inbox recognises its events.
            self._handover.close(_LEAVE_SECONDS)
        finally:
            main.close()
            bulk.close()

    def _yield_partitions(self, main: BatchConsumer, bulk: BatchConsumer) -> None:
        """Leave the group while nothing can be written for long: other processes take the submissions in."""
        if not self._inability.is_long():
            main.join_group()
            bulk.join_group()
            return
        main.leave_group()
        bulk.leave_group()
        if self._unchecked is not None and not self._unchecked[0].assigned:
            self._unchecked = None  # others receive them

    def _turn(self, main: BatchConsumer, bulk: BatchConsumer) -> None:
        moment = self._clock.moment()
        if moment is None or not self._handover.wait_for_slot(_WAIT_SECONDS):
            waited = _WAIT_SECONDS if moment is None else 0.0
            main.poll_batch(0, waited)
            bulk.poll_batch(0, 0)
            return
        if self._unchecked is not None:
            main.poll_batch(0, _WAIT_SECONDS)
            bulk.poll_batch(0, 0)
            self._enqueue(*self._unchecked, moment)
            return
        self._inability.mark_able()
        most = self._service.settings.intake_batch
        records = main.poll_batch(most, 0)
        if records:
            bulk.poll_batch(0, 0)
            self._enqueue(main, records, moment)
            return
        records = bulk.poll_batch(most, 0)
        if records:
            self._enqueue(bulk, records, moment)
            return
        records = main.poll_batch(most, _WAIT_SECONDS)
        if records:
            self._enqueue(main, records, moment)

    def _enqueue(self, consumer: BatchConsumer, records: list[Record], moment: Moment) -> None:
        most = self._service.settings.max_submission_bytes
        try:
            checked = check(consumer, records, moment, authorizer=self._authorizer, max_bytes=most)
        except psycopg.OperationalError as error:
            # A key must be read first. The writer also waits, and reports that the database is unavailable.
            if not self._key_missing:
                self._service.log.warning("publisher_key_not_read", error=str(error).strip())
            self._unchecked, self._key_missing = (consumer, records), True
            return
        self._key_missing = False
        rest = records[len(checked.records) :]
        self._unchecked = (consumer, rest) if rest else None
        self._handover.offer(checked)

    def _consumer(self, *topics: str) -> BatchConsumer:
        settings = self._service.settings
        return BatchConsumer(
            kafka_config(settings),
            topics,
            self._topics.group_intake,
            max_in_flight=4 * settings.intake_batch,
            headers=True,
        )
