"""The relay loop: read the outbox, send, wait for acknowledgements, delete exactly what was acknowledged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, cast
from uuid import UUID

import psycopg

from noonmark.core.faults import hit
from noonmark.core.states import Lane
from noonmark.dispatcher.job_events import ACKNOWLEDGE_SECONDS, JobEventSender
from noonmark.dispatcher.refused_events import RefusedRound
from noonmark.kafka.messages import Signer, encode_run
from noonmark.kafka.producers.delivery import (
    UNACKNOWLEDGED_TOPIC,
    UNCONFIRMED_TOPIC,
    DeliveryFailure,
    Header,
    OutboundMessage,
)
from noonmark.kafka.producers.producer import BatchResult, RelayProducer
from noonmark.kafka.topics import Topics
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.run_traces import Root, relay_context
from noonmark.service.runner import Service
from noonmark.service.startup import kafka_config
from noonmark.store.cluster.members import Membership
from noonmark.store.cluster.pools import read_keys
from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox import relay
from noonmark.store.outbox.relay import Parked
from noonmark.store.outcomes.emitted_events import headers_of
from noonmark.telemetry.declared.instruments import exemplar_of
from noonmark.telemetry.metrics import PARKED_RUNS, RELAY_BATCH_SIZE, RELAY_SECONDS

_EVENTS_SECONDS = 0.2
"""Run messages are sent at once, on a hint; events are sent together, five times a second: separate cycles
for them would double the cost of a light load.
"""

_OF_THE_TOPIC: Final = frozenset({UNCONFIRMED_TOPIC, UNACKNOWLEDGED_TOPIC})
"""Codes of transient failures that do not indicate a problem of the cluster."""

_KEYS_SECONDS = 2.0
_PARKED_RETRY_SECONDS = 60.0
_NO_KEY = "pool {pool} has no signing key: run `noonmark pool create {pool}`"
_STRUCTURED: list[Header] = [("content-type", b"application/cloudevents+json; charset=utf-8")]


class RelayLoop(DatabaseLoop):
    """Sends the outbox rows of the owned slices.

    After a crash before the delete they are sent again; workers drop the copy.
    """

    def __init__(self, service: Service, membership: Membership, topics: Topics) -> None:
        """Create the loop and its producer."""
        super().__init__(service, "relay", max_age_seconds=30.0)
        self._membership = membership
        self._topics = topics
        self._signers = PoolSigners()
        self._refused = RefusedRound()
        self._events_at = 0.0
        self._routes: dict[tuple[str, int], tuple[str, Lane]] = {}
        config, stopped = kafka_config(service.settings), service.stop.is_set
        self._producer = RelayProducer(
            config, should_stop=stopped, on_wait=self._while_waiting, hold_unseen=False
        )
        # Jobs name topics: one that does not exist, or that nothing acknowledges, must not delay the others.
        self._job_events = JobEventSender(
            RelayProducer(
                config,
                delivery_timeout_seconds=ACKNOWLEDGE_SECONDS,
                should_stop=stopped,
                on_wait=self._while_waiting,
                hold_unseen=False,
                blame_topics=True,
            )
        )
        service.health.require("kafka", "no request sent yet")
        service.health.set_ready("kafka", ready=True)

    def run_once(self, connection: psycopg.Connection) -> float:
        """Relay one batch; return at once for more if the batch was full."""
        owned = self._membership.owned
        if not owned:
            return 0.2
        began = time.perf_counter()
        limit = self._service.settings.relay_batch
        events = began >= self._events_at
        if events:
            self._events_at = began + _EVENTS_SECONDS
        rows = relay.read(connection, owned, limit, events=events)
        if events:
            if _any_slice_full(rows, max(1, limit // len(owned))):
                self._events_at = began
            rows += self._refused.read(connection, owned)
        if not rows:
            return max(0.001, self._events_at - time.perf_counter())
        sent, trace_id = self._send(connection, rows)
        RELAY_BATCH_SIZE.observe(len(rows))
        RELAY_SECONDS.observe(time.perf_counter() - began, exemplar_of(trace_id))
        return 0.0 if sent else 0.2

    def ending(self, connection: psycopg.Connection) -> None:
        """Release the client; nothing is in flight between batches."""
        del connection
        self._producer.close()
        self._job_events.close()

    def _send(self, connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> tuple[int, str | None]:
        """Send a batch; return how many rows were deleted, parked or refused, and a trace id of the batch."""
        signers = self._signers.read(connection, {row.pool for row in rows if row.pool is not None})
        sendable = [row for row in rows if row.pool is None or row.pool in signers]
        if len(sendable) < len(rows):
            unsigned = [row for row in rows if row.pool is not None and row.pool not in signers]
            self._park(connection, [(row, _NO_KEY.format(pool=row.pool)) for row in unsigned])
        traced = self._traced(connection, sendable) if self._service.traces is not None else {}
        messages = [self._message(row, signers, traced) for row in sendable]
        began = time.time()
        hit("dispatcher.before_produce")
        result = self._send_messages(sendable, messages)
        hit("dispatcher.after_produce")
        acknowledged = sendable if result.all_acknowledged else [sendable[i] for i in result.acknowledged()]
        if acknowledged:
            relay.delete(connection, acknowledged)
            hit("dispatcher.after_delete")
            if traced:
                self._record_spans(acknowledged, traced, began)
        if not result.all_acknowledged:
            self._deal_with_failures(connection, sendable, result)
        transient = any(map(_is_broker_outage, result.failed.values()))
        self._service.health.set_ready("kafka", ready=not transient, missing="not accepting messages")
        left = sum(not _is_settled(sendable[i], f) for i, f in result.failed.items())
        return len(rows) - left, next((root.trace_id for root in traced.values()), None)

    def _send_messages(self, rows: Sequence[OutboxRow], messages: Sequence[OutboundMessage]) -> BatchResult:
        """Send the run messages and noonmark's own events first, then the events for topics of jobs."""
        theirs = [index for index, row in enumerate(rows) if row.headers is not None]
        if not theirs:
            return self._producer.send_batch(messages)
        ours = [index for index, row in enumerate(rows) if row.headers is None]
        failed: dict[int, DeliveryFailure] = {}
        for sender, indexes in ((self._producer, ours), (self._job_events, theirs)):
            if indexes:
                result = sender.send_batch([messages[index] for index in indexes])
                failed |= {indexes[index]: failure for index, failure in result.failed.items()}
        return BatchResult(len(messages), failed)

    def _message(
        self, row: OutboxRow, signers: Mapping[str, Signer], traced: Mapping[UUID, Root]
    ) -> OutboundMessage:
        if row.run_id is None:
            assert row.topic is not None
            assert row.value is not None
            headers = _STRUCTURED if row.headers is None else headers_of(row.headers)
            return OutboundMessage(row.topic, row.key, row.value, headers)
        # The table's check constraint and the row's run guarantee that all of these are set.
        pool, job_id = cast("str", row.pool), cast("UUID", row.job_id)
        topic, lane = self._route_of(pool, row.lane)
        root = traced.get(row.run_id) if traced else None
        value = encode_run(
            signers[pool],
            run_id=row.run_id,
            job_id=job_id,
            namespace=cast("str", row.namespace),
            pool=pool,
            lane=lane,
            scheduled_for=cast("datetime", row.scheduled_for),
            fence=cast("int", row.fence),
            job_version=cast("int", row.job_version),
            traceparent=None
            if root is None
            else relay_context(root, row.run_id, cast("int", row.fence)).traceparent,
        )
        return OutboundMessage(topic, job_id.bytes, value, _STRUCTURED)

    def _route_of(self, pool: str, lane: int) -> tuple[str, Lane]:
        """Return the topic and the lane of a pool's run messages."""
        route = self._routes.get((pool, lane))
        if route is None:
            route = self._routes[pool, lane] = (self._topics.runs(pool, Lane(lane)), Lane(lane))
        return route

    def _topic_of(self, row: OutboxRow) -> str:
        return self._route_of(cast("str", row.pool), row.lane)[0]

    def _traced(self, connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> Mapping[UUID, Root]:
        """Return the traces of those runs of a batch that are traced."""
        assert self._service.traces is not None
        runs = [(row.run_id, row.job_id) for row in rows if row.run_id is not None and row.job_id is not None]
        return self._service.traces.roots(connection, runs)

    def _record_spans(self, rows: Sequence[OutboxRow], traced: Mapping[UUID, Root], began: float) -> None:
        """Record the spans of messages that Kafka has acknowledged."""
        assert self._service.traces is not None
        self._service.traces.relayed(
            (
                (
                    row.run_id,
                    row.job_id,
                    row.fence or 1,
                    traced[row.run_id],
                    self._topic_of(row),
                )
                for row in rows
                if row.run_id in traced and row.run_id is not None and row.job_id is not None
            ),
            began=began,
            ended=time.time(),
        )

    def _park(self, connection: psycopg.Connection, refused: Sequence[tuple[OutboxRow, str]]) -> None:
        """Let runs wait whose message cannot be sent at the moment."""
        parked = relay.park(
            connection,
            [row for row, _ in refused],
            [_parked(row, reason) for row, reason in refused],
            retry_seconds=_PARKED_RETRY_SECONDS,
        )
        PARKED_RUNS.inc(parked)
        self._log.warning("runs_parked", count=parked, reason=refused[0][1])

    def _deal_with_failures(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow], result: BatchResult
    ) -> None:
        """Park or move what Kafka refuses permanently; leave the rest in place, to be sent again."""
        permanent = [(rows[i], failure) for i, failure in result.failed.items() if failure.is_permanent]
        runs = [(row, failure) for row, failure in permanent if row.run_id is not None]
        if runs:
            self._park(connection, [(row, failure.reason) for row, failure in runs])
        self._refuse_failed(connection, [(rows[i], failure) for i, failure in result.failed.items()])
        transient = [f.reason for f in result.failed.values() if _is_broker_outage(f)]
        if transient:
            self._log.warning("messages_not_acknowledged", count=len(transient), reason=transient[0])

    def _refuse_failed(
        self, connection: psycopg.Connection, failed: Sequence[tuple[OutboxRow, DeliveryFailure]]
    ) -> None:
        """Move refused events to the lane of refused events; they have no run to park."""
        events = [
            (row, failure.reason)
            for row, failure in failed
            if row.lane == relay.EVENT_LANE and _is_settled(row, failure)
        ]
        if events:
            relay.refuse(connection, events)
            self._refused.soon()
            topics = sorted({str(row.topic) for row, _ in events})
            self._log.error("events_refused", count=len(events), topics=topics[:20], reason=events[0][1])

    def _while_waiting(self, seconds: float) -> None:
        """Report that the loop is alive while the brokers are away; it continues as soon as they are back."""
        self._progress.beat()
        if seconds > 5:
            self._service.health.set_ready("kafka", ready=False, missing="not accepting messages")


class PoolSigners:
    """Caches the signer of each pool, and reads its keys every two seconds so that new keys are used soon."""

    def __init__(self) -> None:
        self._signers: dict[str, Signer] = {}
        self._read_at: dict[str, float] = {}

    def read(self, connection: psycopg.Connection, pools: Iterable[str]) -> Mapping[str, Signer]:
        """Return the signers; a pool without one has no key, so nothing can be sent to it.

        Reads the keys of those of the pools that are not cached or were read too long ago.
        """
        now = time.monotonic()
        for pool in pools:
            if now - self._read_at.get(pool, -_KEYS_SECONDS) < _KEYS_SECONDS:
                continue
            keys = read_keys(connection, pool)
            self._read_at[pool] = now
            if keys:
                self._signers[pool] = Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)
            else:
                self._signers.pop(pool, None)
        return self._signers


def _any_slice_full(rows: Sequence[OutboxRow], most: int) -> bool:
    """Return whether a slice has more events than were read."""
    slices = [row.slice for row in rows if row.lane == relay.EVENT_LANE]
    return len(slices) >= most and max(Counter(slices).values()) >= most


def _is_broker_outage(failure: DeliveryFailure) -> bool:
    return not failure.is_permanent and failure.code not in _OF_THE_TOPIC


def _is_settled(row: OutboxRow, failure: DeliveryFailure) -> bool:
    """Return whether a failed message no longer blocks the slice: it was parked or refused."""
    return failure.is_permanent or _is_fault_of_topic(row, failure)


def _is_fault_of_topic(row: OutboxRow, failure: DeliveryFailure) -> bool:
    """Return whether a job named a topic that was never seen, or acknowledges nothing: no slice waits."""
    return row.headers is not None and failure.code in _OF_THE_TOPIC


def _parked(row: OutboxRow, reason: str) -> Parked:
    assert row.run_id is not None
    assert row.scheduled_for is not None
    assert row.fence is not None
    return Parked(row.run_id, row.scheduled_for, row.fence, reason)
