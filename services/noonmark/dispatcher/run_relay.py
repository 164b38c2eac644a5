"""The relay of run messages: the outbox rows of runs, signed and sent to the lanes of their pools."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, cast
from uuid import UUID

import psycopg

from noonmark.core.ids import shard_of
from noonmark.core.states import Lane
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.dispatcher.pool_signers import PoolSigners, PoolState
from noonmark.dispatcher.relay_loop import RelayLoop
from noonmark.dispatcher.run_messages import MessagePacker, Packed, Unsent, unsent_runs
from noonmark.kafka.messages import QueuedRun
from noonmark.kafka.producers.delivery import DeliveryFailure
from noonmark.kafka.producers.producer import BatchResult, RelayProducer
from noonmark.kafka.topics import Topics
from noonmark.service.gathering import Gathering
from noonmark.service.run_traces import Root, relay_context
from noonmark.service.runner import Service
from noonmark.service.startup import kafka_config
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox import relay
from noonmark.store.outbox.relay import Parked
from noonmark.store.workflows.facts import WorkflowTimer, insert_workflow_timers
from noonmark.telemetry.metrics import PARKED_RUNS, RUN_MESSAGES

_PARKED_RETRY_SECONDS: Final = 60.0
_NEARLY_FULL: Final = 0.75
"""While many runs are queued, a batch waits for more, unless the one before it was as full as this."""

_SMOOTHING: Final = 0.3
"""Weight of a batch in the mean number of runs per row."""

_NO_KEY: Final = "pool {pool} has no signing key: run `noonmark pool create {pool}`"


class RunRelay(RelayLoop):
    """Sends run messages as soon as a hint says that there are some."""

    def __init__(
        self, service: Service, membership: Membership, topics: Topics, hints: HintSender, *, shards: int
    ) -> None:
        """Create the loop and its producer.

        Args:
            service: the process.
            membership: knows the owned slices.
            topics: names of the topics.
            hints: wakes the triggers.
            shards: the number of shards of the installation.
        """
        super().__init__(service, "relay", membership, condition="kafka")
        self._hints = hints
        self._shards = shards
        self._pools = PoolSigners()
        self._traces: Mapping[UUID, Root] = {}
        self._runs_per_row = float(relay.RUNS_PER_ROW)
        self._refused: dict[int, list[tuple[QueuedRun, str]]] = {}
        self._began = 0.0
        self._gathering = Gathering(1)
        self._is_full = False
        self._producer = RelayProducer(
            kafka_config(service.settings),
            should_stop=service.stop.is_set,
            on_wait=self.while_waiting,
            hold_unseen=False,
        )
        self._packer = MessagePacker(
            topics, self._producer.partitions, most=service.settings.runs_per_message
        )

    def run_once(self, connection: psycopg.Connection) -> float:
        """Relay one batch."""
        self._gathering.hold(self._service.stop, lambda: self._is_full)
        return super().run_once(connection)

    def read(self, connection: psycopg.Connection, owned: Sequence[int]) -> list[OutboxRow]:
        """Read the next rows of every lane."""
        limit = self._service.settings.relay_batch
        rows = relay.read_runs(connection, owned, limit, runs_per_row=self._runs_per_row, without=self.locked)
        if sizes := [len(row.run_ids) for row in rows if row.run_ids is not None]:
            self._runs_per_row += (sum(sizes) / len(sizes) - self._runs_per_row) * _SMOOTHING
        count = sum(sizes) + len(rows) - len(sizes)
        self._gathering.took(count)
        # Of the low lane half as many are read at once.
        has_low = any(row.lane % relay.ARRAYS == Lane.LOW for row in rows)
        self._is_full = count >= _NEARLY_FULL * limit / (2 if has_low else 1)
        return rows

    def send(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow]
    ) -> tuple[Sequence[OutboxRow], BatchResult]:
        """Sign and send runs; those of a pool without a key are parked, workflow runs go to the triggers."""
        if workflows := [row for row in rows if row.pool == WORKFLOW_POOL]:
            self._unless_locked(lambda: self._hand_over(connection, workflows))
            rows = [row for row in rows if row.pool != WORKFLOW_POOL]
        pools = self._pools.read(connection, {cast("str", row.pool) for row in rows})
        sendable = [row for row in rows if row.pool in pools]
        if len(sendable) < len(rows):
            unsigned = [row for row in rows if row.pool not in pools]
            reasons = ((unsent.run, _NO_KEY.format(pool=unsent.pool)) for unsent in unsent_runs(unsigned))
            self._unless_locked(lambda: self._park(connection, unsigned, list(reasons)))
        runs = unsent_runs(sendable)
        self._traces = self._traced(connection, runs) if self._service.traces is not None else {}
        self._began = time.time()
        return sendable, self._by_row(len(sendable), runs, self._send_runs(runs, pools))

    def acknowledged(self, rows: Sequence[OutboxRow]) -> str | None:
        """Record the spans of messages whose runs are traced."""
        if not self._traces:
            return None
        assert self._service.traces is not None
        traced = self._traces
        self._service.traces.relayed(
            (
                (run.run_id, run.job_id, run.fence, traced[run.run_id], self._packer.topic_of(unsent))
                for unsent in unsent_runs(rows)
                if (run := unsent.run).run_id in traced
            ),
            began=self._began,
            ended=time.time(),
        )
        return next(root.trace_id for root in traced.values())

    def deal_with_failures(
        self, connection: psycopg.Connection, rows: Sequence[OutboxRow], result: BatchResult
    ) -> None:
        """Park the runs whose message Kafka refuses permanently."""
        refused = [index for index, failure in result.failed.items() if failure.is_permanent]
        if refused:
            runs = [each for index in refused for each in self._refused[index]]
            self._park(connection, [rows[index] for index in refused], runs)

    def ending(self, connection: psycopg.Connection) -> None:
        """Release the client; nothing is in flight between batches."""
        del connection
        self._producer.close()

    def _send_runs(
        self, runs: Sequence[Unsent], pools: Mapping[str, PoolState]
    ) -> dict[int, DeliveryFailure]:
        """Send runs; return the failures by position."""
        packed = self._packer.pack(runs, pools, self._traceparents(runs) if self._traces else {})
        result = self._send(packed)
        failed = packed.by_run(result)
        refused = packed.refused_together(result)
        if refused.messages:
            for index in (index for group in refused.runs for index in group):
                del failed[index]
            apart = self._packer.unpack(runs, pools, refused)
            failed.update(apart.by_run(self._send(apart)))
        return failed

    def _by_row(
        self, count: int, runs: Sequence[Unsent], failed: Mapping[int, DeliveryFailure]
    ) -> BatchResult:
        """Return the result of each row. One with a run that must be sent again is sent again as a whole."""
        by_row: dict[int, DeliveryFailure] = {}
        self._refused = defaultdict(list)
        for index, failure in failed.items():
            row = runs[index].row
            if row not in by_row or by_row[row].is_permanent:
                by_row[row] = failure
            if failure.is_permanent:
                self._refused[row].append((runs[index].run, failure.reason))
        return BatchResult(count, by_row)

    def _send(self, packed: Packed) -> BatchResult:
        result = self._producer.send_batch(packed.messages)
        RUN_MESSAGES.inc(len(packed.messages) - len(result.failed))
        return result

    def _traceparents(self, runs: Sequence[Unsent]) -> dict[UUID, str]:
        """Return what the messages of traced runs carry."""
        return {
            run.run_id: relay_context(root, run.run_id, run.fence).traceparent
            for run in (unsent.run for unsent in runs)
            if (root := self._traces.get(run.run_id)) is not None
        }

    def _traced(self, connection: psycopg.Connection, runs: Sequence[Unsent]) -> Mapping[UUID, Root]:
        """Return the traces of those runs of a batch that are traced."""
        assert self._service.traces is not None
        return self._service.traces.roots(
            connection, [(unsent.run.run_id, unsent.run.job_id) for unsent in runs]
        )

    def _hand_over(self, connection: psycopg.Connection, rows: Sequence[OutboxRow]) -> None:
        """Have triggers open workflow runs: no worker executes them."""
        handed_over = [
            WorkflowTimer(
                *(run.run_id, run.scheduled_for, run.job_id, run.job_version),
                shard_of(run.run_id, self._shards),
                *(unsent.lane, run.namespace, unsent.pool),
            )
            for unsent in unsent_runs(rows)
            for run in (unsent.run,)
        ]
        with connection.transaction():
            insert_workflow_timers(connection, handed_over)
            relay.delete(connection, rows)
        self._hints.ended()

    def _park(
        self,
        connection: psycopg.Connection,
        rows: Sequence[OutboxRow],
        refused: Sequence[tuple[QueuedRun, str]],
    ) -> None:
        """Delete rows, and let those of their runs wait whose message cannot be sent at the moment."""
        parked = relay.park(
            connection,
            rows,
            [Parked(run.run_id, run.scheduled_for, run.fence, reason) for run, reason in refused],
            retry_seconds=_PARKED_RETRY_SECONDS,
        )
        PARKED_RUNS.inc(parked)
        self._log.warning("runs_parked", count=parked, reason=refused[0][1])
