"""What all relaying has in common: read the outbox, send, wait, delete exactly what was acknowledged."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

import psycopg

from noonmark.core.faults import hit
from noonmark.kafka.producers.delivery import (
    INVALID_TIMESTAMP,
    UNACKNOWLEDGED_TOPIC,
    UNCONFIRMED_TOPIC,
    DeliveryFailure,
    Header,
)
from noonmark.kafka.producers.producer import BatchResult
from noonmark.service.database_errors import log_fault
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.cluster.members import Membership
from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox import relay
from noonmark.store.runs.locked_runs import LOCK_WAIT_SECONDS, is_lock_timeout
from noonmark.telemetry.declared.instruments import exemplar_of
from noonmark.telemetry.metrics import RELAY_BATCH_SIZE, RELAY_SECONDS

STRUCTURED: Final[list[Header]] = [("content-type", b"application/cloudevents+json; charset=utf-8")]

RETRY_SECONDS: Final = 0.2
"""The wait after a pass in which nothing was sent."""

_LOCKED_SECONDS: Final = 1.0

_OF_THE_TOPIC: Final = frozenset({UNCONFIRMED_TOPIC, UNACKNOWLEDGED_TOPIC})
"""Codes of transient failures that do not indicate a problem of the cluster."""

_OF_A_JOBS_TOPIC: Final = _OF_THE_TOPIC | {INVALID_TIMESTAMP}
"""Those of events for a topic that a job names: its owner decides which times it accepts."""


class RelayLoop(DatabaseLoop):
    """Sends outbox rows of the owned slices, a batch at a time.

    After a crash before the delete they are sent again; workers drop the copy of a run message, and consumers
    detect that of an event by its id.
    """

    def __init__(self, service: Service, name: str, membership: Membership, *, condition: str) -> None:
        """Register the loop.

        Args:
            service: the process.
            name: name of the loop in logs, health and metrics.
            membership: knows the owned slices.
            condition: name of the condition of /readyz that says whether the brokers accept its messages.
        """
        super().__init__(service, name, max_age_seconds=30.0, lock_timeout_seconds=LOCK_WAIT_SECONDS)
        self.locked: dict[int, OutboxRow] = {}
        """Rows by sequence that are sent, and that another session has locked: not to be read again."""
        self._unlocked_at = 0.0
        self._membership = membership
        self._condition = condition
        service.health.require(condition, "no request sent yet")
        service.health.set_ready(condition, ready=True)

    @abstractmethod
    def read(self, connection: psycopg.Connection, owned: Sequence[int]) -> list[OutboxRow]:
        """Read what must be sent next."""

    @abstractmethod
    def send(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow]
    ) -> tuple[Sequence[OutboxRow], BatchResult]:
        """Send rows; return those of them that could be sent at all, and the result for each of these."""

    @abstractmethod
    def deal_with_failures(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow], result: BatchResult
    ) -> None:
        """Remove what Kafka refuses permanently from the lane; the rest stays, and is sent again."""

    def acknowledged(self, rows: Sequence[OutboxRow]) -> str | None:
        """Do what follows once rows are acknowledged and deleted; return a trace id of the batch, if any."""

    def pause(self, rows: Sequence[OutboxRow], sent: int) -> float:
        """Return the seconds until the next pass, after one that read these rows and completed so many."""
        if not rows:
            return 1.0  # a hint ends this wait
        return 0.0 if sent else RETRY_SECONDS

    def run_once(self, connection: psycopg.Connection) -> float:
        """Relay one batch."""
        owned = self._membership.owned
        if not owned:
            return RETRY_SECONDS
        began = time.perf_counter()
        if self.locked:
            self._take_up_locked(connection, owned)
        rows = self.read(connection, owned)
        if not rows:
            return self.pause(rows, 0)
        sent, trace_id = self._relay(connection, rows)
        RELAY_BATCH_SIZE.observe(sum(1 if row.run_ids is None else len(row.run_ids) for row in rows))
        RELAY_SECONDS.observe(time.perf_counter() - began, exemplar_of(trace_id))
        return self.pause(rows, sent)

    def _relay(self, connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> tuple[int, str | None]:
        """Send a batch; return how many rows were deleted, parked or refused, and a trace id of the batch."""
        hit("dispatcher.before_produce")
        sendable, result = self.send(connection, rows)
        hit("dispatcher.after_produce")
        acknowledged = sendable if result.all_acknowledged else [sendable[i] for i in result.acknowledged()]
        trace_id = None
        if acknowledged:
            self._delete(connection, acknowledged)
            hit("dispatcher.after_delete")
            trace_id = self.acknowledged(acknowledged)
        if not result.all_acknowledged:
            self._unless_locked(lambda: self.deal_with_failures(connection, sendable, result))
        outages = [
            failure.reason
            for index, failure in result.failed.items()
            if is_broker_outage(failure) and not is_settled(sendable[index], failure)
        ]
        if outages:
            self._log.warning("messages_not_acknowledged", count=len(outages), reason=outages[0])
        self._service.health.set_ready(self._condition, ready=not outages, missing="not accepting messages")
        left = sum(not is_settled(sendable[i], failure) for i, failure in result.failed.items())
        return len(rows) - left, trace_id

    def _delete(self, connection: psycopg.Connection, acknowledged: Sequence[OutboxRow]) -> None:
        """Delete acknowledged rows; those that another session has locked are not sent again."""
        if not self.locked:
            try:
                relay.delete(connection, acknowledged)
            except psycopg.Error as error:
                if not is_lock_timeout(error):
                    raise
            else:
                return
        # While some are locked, no batch waits for them.
        left = relay.delete_unlocked(connection, acknowledged)
        if left:
            self._log.warning("outbox_rows_locked", count=len(left), seq=min(left))
            self.locked.update((row.seq, row) for row in acknowledged if row.seq in left)

    def _take_up_locked(self, connection: psycopg.Connection, owned: Sequence[int]) -> None:
        """Delete rows that were locked as soon as they are not. Those of lost slices are sent by others."""
        if (now := time.monotonic()) < self._unlocked_at:
            return
        self._unlocked_at = now + _LOCKED_SECONDS
        mine = [row for row in self.locked.values() if row.slice in owned]
        left = relay.delete_unlocked(connection, mine) if mine else set()
        self.locked = {row.seq: row for row in mine if row.seq in left}

    def _unless_locked(self, change: Callable[[], None]) -> None:
        """Make a change unless another session has locked a row of it: the next pass tries again."""
        try:
            change()
        except psycopg.Error as error:
            if not is_lock_timeout(error):
                raise
            log_fault(self._log, error)

    def while_waiting(self, seconds: float) -> None:
        """Report that the loop is alive while the brokers are away; it continues as soon as they are back."""
        self._progress.beat()
        if seconds > 5:
            self._service.health.set_ready(self._condition, ready=False, missing="not accepting messages")


def is_broker_outage(failure: DeliveryFailure) -> bool:
    """Return whether a failure may be over soon, and is not that of one topic."""
    return not failure.is_permanent and failure.code not in _OF_THE_TOPIC


def is_settled(row: OutboxRow, failure: DeliveryFailure) -> bool:
    """Return whether a failed message no longer blocks its slice: it was parked or refused."""
    # A job's topic that was never seen, acknowledges nothing or refuses the time: no slice waits for it.
    of_the_topic = row.headers is not None and failure.code in _OF_A_JOBS_TOPIC
    return failure.is_permanent or of_the_topic
