"""The relay of events: lifecycle, dead letters, rejections, and events for topics that jobs name.

It has a loop, a connection and producers of its own, so that no run message waits for the acknowledgement of
an event.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

import psycopg

from noonmark.dispatcher.job_events import ACKNOWLEDGE_SECONDS, JobEventSender
from noonmark.dispatcher.refused_events import RefusedRound
from noonmark.dispatcher.relay_loop import RETRY_SECONDS, STRUCTURED, RelayLoop, is_settled
from noonmark.kafka.producers.delivery import DeliveryFailure, OutboundMessage
from noonmark.kafka.producers.producer import BatchResult, RelayProducer
from noonmark.service.runner import Service
from noonmark.service.startup import kafka_config
from noonmark.store.cluster.members import Membership
from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox import relay
from noonmark.store.outcomes.emitted_events import headers_of

_ROUND_SECONDS: Final = 0.2
"""Events are sent together, five times a second: more rounds would double the cost of a light load."""


class EventRelay(RelayLoop):
    """Sends the events of the owned slices, and tries those again that Kafka refused."""

    def __init__(self, service: Service, membership: Membership) -> None:
        """Create the loop and its producers."""
        super().__init__(service, "events", membership, condition="kafka_events")
        self._refused = RefusedRound()
        self._next_at = 0.0
        self._full = False
        config, stopped = kafka_config(service.settings), service.stop.is_set
        self._producer = RelayProducer(
            config, should_stop=stopped, on_wait=self.while_waiting, hold_unseen=False
        )
        # Jobs name topics: one that does not exist, or that nothing acknowledges, must not delay the others.
        self._job_events = JobEventSender(
            RelayProducer(
                config,
                delivery_timeout_seconds=ACKNOWLEDGE_SECONDS,
                should_stop=stopped,
                on_wait=self.while_waiting,
                hold_unseen=False,
                blame_topics=True,
            )
        )

    def read(self, connection: psycopg.Connection, owned: Sequence[int]) -> list[OutboxRow]:
        """Read the next events, and some that were refused if their round is due."""
        limit = self._service.settings.relay_batch
        self._next_at = time.perf_counter() + _ROUND_SECONDS
        rows = relay.read(connection, owned, limit, [relay.EVENT_LANE], without=self.locked)
        self._full = _any_slice_full(rows, max(1, limit // len(owned)))
        return rows + self._refused.read(connection, owned)

    def pause(self, rows: Sequence[OutboxRow], sent: int) -> float:
        """Continue at once if a slice has more events than were read."""
        if rows and not sent:
            return RETRY_SECONDS
        return 0.0 if self._full else max(0.001, self._next_at - time.perf_counter())

    def send(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow]
    ) -> tuple[Sequence[OutboxRow], BatchResult]:
        """Send noonmark's own events first, then those for topics of jobs."""
        # Topics that date records as their producer says refuse the time of a host whose clock is wrong.
        now_ms = relay.server_time_ms(connection)
        messages = [_message(row, now_ms) for row in rows]
        theirs = [index for index, row in enumerate(rows) if row.headers is not None]
        ours = [index for index, row in enumerate(rows) if row.headers is None]
        failed: dict[int, DeliveryFailure] = {}
        for sender, indexes in ((self._producer, ours), (self._job_events, theirs)):
            if indexes:
                result = sender.send_batch([messages[index] for index in indexes])
                failed |= {indexes[index]: failure for index, failure in result.failed.items()}
        return rows, BatchResult(len(messages), failed)

    def deal_with_failures(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow], result: BatchResult
    ) -> None:
        """Move refused events to the lane of refused events; they have no run to park."""
        events = [
            (rows[index], failure.reason)
            for index, failure in result.failed.items()
            if rows[index].lane == relay.EVENT_LANE and is_settled(rows[index], failure)
        ]
        if events:
            relay.refuse(connection, events)
            self._refused.soon()
            topics = sorted({str(row.topic) for row, _ in events})
            self._log.error("events_refused", count=len(events), topics=topics[:20], reason=events[0][1])

    def ending(self, connection: psycopg.Connection) -> None:
        """Release the clients; nothing is in flight between batches."""
        del connection
        self._producer.close()
        self._job_events.close()


def _message(row: OutboxRow, now_ms: int) -> OutboundMessage:
    assert row.topic is not None
    assert row.value is not None
    headers = STRUCTURED if row.headers is None else headers_of(row.headers)
    return OutboundMessage(row.topic, row.key, row.value, headers, timestamp_ms=now_ms)


def _any_slice_full(rows: Sequence[OutboxRow], most: int) -> bool:
    """Return whether a slice may have more events than were read."""
    slices = [row.slice for row in rows]
    return len(slices) >= most and max(Counter(slices).values()) >= most
