"""The relay of run messages: the outbox rows of runs, signed and sent to the lanes of their pools."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, cast
from uuid import UUID

import psycopg

from noonmark.core.states import Lane
from noonmark.dispatcher.relay_loop import STRUCTURED, RelayLoop
from noonmark.kafka.messages import Signer, encode_run
from noonmark.kafka.producers.delivery import OutboundMessage
from noonmark.kafka.producers.producer import BatchResult, RelayProducer
from noonmark.kafka.topics import Topics
from noonmark.service.run_traces import Root, relay_context
from noonmark.service.runner import Service
from noonmark.service.startup import kafka_config
from noonmark.store.cluster.members import Membership
from noonmark.store.cluster.pools import read_keys
from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox import relay
from noonmark.store.outbox.relay import Parked
from noonmark.telemetry.metrics import PARKED_RUNS

_KEYS_SECONDS: Final = 2.0
_PARKED_RETRY_SECONDS: Final = 60.0
_NO_KEY: Final = "pool {pool} has no signing key: run `noonmark pool create {pool}`"


class RunRelay(RelayLoop):
    """Sends run messages as soon as a hint says that there are some."""

    def __init__(self, service: Service, membership: Membership, topics: Topics) -> None:
        """Create the loop and its producer."""
        super().__init__(service, "relay", membership, condition="kafka")
        self._topics = topics
        self._signers = PoolSigners()
        self._routes: dict[tuple[str, int], tuple[str, Lane]] = {}
        self._traces: Mapping[UUID, Root] = {}
        self._began = 0.0
        self._producer = RelayProducer(
            kafka_config(service.settings),
            should_stop=service.stop.is_set,
            on_wait=self.while_waiting,
            hold_unseen=False,
        )

    def read(self, connection: psycopg.Connection, owned: Sequence[int]) -> list[OutboxRow]:
        """Read the next messages of every lane."""
        return relay.read(connection, owned, self._service.settings.relay_batch, [*Lane])

    def send(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow]
    ) -> tuple[Sequence[OutboxRow], BatchResult]:
        """Sign and send messages; those of a pool without a key are parked."""
        signers = self._signers.read(connection, {cast("str", row.pool) for row in rows})
        sendable = [row for row in rows if row.pool in signers]
        if len(sendable) < len(rows):
            unsigned = [row for row in rows if row.pool not in signers]
            self._park(connection, [(row, _NO_KEY.format(pool=row.pool)) for row in unsigned])
        self._traces = self._traced(connection, sendable) if self._service.traces is not None else {}
        self._began = time.time()
        return sendable, self._producer.send_batch([self._message(row, signers) for row in sendable])

    def acknowledged(self, rows: Sequence[OutboxRow]) -> str | None:
        """Record the spans of messages whose runs are traced."""
        if not self._traces:
            return None
        assert self._service.traces is not None
        traced = self._traces
        self._service.traces.relayed(
            (
                (row.run_id, row.job_id, row.fence or 1, traced[row.run_id], self._topic_of(row))
                for row in rows
                if row.run_id in traced and row.run_id is not None and row.job_id is not None
            ),
            began=self._began,
            ended=time.time(),
        )
        return next(root.trace_id for root in traced.values())

    def deal_with_failures(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow], result: BatchResult
    ) -> None:
        """Park the runs whose message Kafka refuses permanently."""
        refused = [(rows[i], failure.reason) for i, failure in result.failed.items() if failure.is_permanent]
        if refused:
            self._park(connection, refused)

    def ending(self, connection: psycopg.Connection) -> None:
        """Release the client; nothing is in flight between batches."""
        del connection
        self._producer.close()

    def _message(self, row: OutboxRow, signers: Mapping[str, Signer]) -> OutboundMessage:
        # The table's check constraint and the row's run guarantee that all of these are set.
        pool, job_id, run_id = cast("str", row.pool), cast("UUID", row.job_id), cast("UUID", row.run_id)
        topic, lane = self._route_of(pool, row.lane)
        root = self._traces.get(run_id) if self._traces else None
        value = encode_run(
            signers[pool],
            run_id=run_id,
            job_id=job_id,
            namespace=cast("str", row.namespace),
            pool=pool,
            lane=lane,
            scheduled_for=cast("datetime", row.scheduled_for),
            fence=cast("int", row.fence),
            job_version=cast("int", row.job_version),
            traceparent=None
            if root is None
            else relay_context(root, run_id, cast("int", row.fence)).traceparent,
        )
        return OutboundMessage(topic, job_id.bytes, value, STRUCTURED)

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


def _parked(row: OutboxRow, reason: str) -> Parked:
    assert row.run_id is not None
    assert row.scheduled_for is not None
    assert row.fence is not None
    return Parked(row.run_id, row.scheduled_for, row.fence, reason)
