"""Which runs share a message: those of one relay batch, lane and partition, if all workers can read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, cast
from uuid import UUID

from noonmark.core.states import Lane
from noonmark.dispatcher.pool_signers import PoolState
from noonmark.dispatcher.relay_loop import STRUCTURED
from noonmark.kafka.messages import RUNS_PER_MESSAGE, QueuedRun, encode_run, encode_runs
from noonmark.kafka.producers.delivery import DeliveryFailure, OutboundMessage
from noonmark.kafka.producers.producer import BatchResult
from noonmark.kafka.topics import Topics
from noonmark.store.database.row_types import OutboxRow
from noonmark.store.outbox.relay import ARRAYS

_APART_SECONDS: Final = 60.0
"""A topic that refused a message with several runs gets messages with one for this time."""


class Unsent(NamedTuple):
    """A run of an outbox row.

    Attributes:
        row: position of the row in the relay batch.
        pool: the pool that the run is queued for.
        lane: its lane there.
        run: what its message says of it.
        spread: it is a task's: it may be in any partition.
    """

    row: int
    pool: str
    lane: int
    run: QueuedRun
    spread: bool = False


def unsent_runs(rows: Sequence[OutboxRow]) -> list[Unsent]:
    """Return the runs of outbox rows, in order; a row has one or several."""
    runs: list[Unsent] = []
    for index, row in enumerate(rows):
        # The table's check constraint and the row's runs guarantee that all of these are set.
        namespace, pool, fence = cast("str", row.namespace), cast("str", row.pool), cast("int", row.fence)
        if row.run_ids is None:
            run = QueuedRun(
                cast("UUID", row.run_id),
                cast("UUID", row.job_id),
                namespace,
                cast("datetime", row.scheduled_for),
                fence,
                cast("int", row.job_version),
            )
            runs.append(Unsent(index, pool, row.lane, run, row.key is not None))
            continue
        lane = row.lane % ARRAYS
        facts = zip(row.run_ids, row.job_ids or (), row.instants or (), row.job_versions or (), strict=True)
        runs += [
            Unsent(
                index,
                pool,
                lane,
                QueuedRun(run_id, job_id, namespace, at, fence, version),
                row.key is not None,
            )
            for run_id, job_id, at, version in facts
        ]
    return runs


class Packed(NamedTuple):
    """Messages, and for each the positions of its runs among those that were packed."""

    messages: list[OutboundMessage]
    runs: list[list[int]]

    def by_run(self, result: BatchResult) -> dict[int, DeliveryFailure]:
        """Return what a result for the messages means for each run: the failures by position."""
        if result.all_acknowledged:
            return {}
        return {run: failure for index, failure in result.failed.items() for run in self.runs[index]}

    def refused_together(self, result: BatchResult) -> Packed:
        """Return the messages with several runs that were refused permanently."""
        refused = [
            index
            for index, failure in result.failed.items()
            if failure.is_permanent and len(self.runs[index]) > 1
        ]
        return Packed([self.messages[index] for index in refused], [self.runs[index] for index in refused])


class _Route(NamedTuple):
    """A lane of a pool: its topic, and by partition the message that takes further runs."""

    topic: str
    pool: str
    lane: Lane
    partitions: int
    state: PoolState
    filling: dict[int, list[int]]


class MessagePacker:
    """Makes messages of outbox rows. The order of the rows is kept in each partition.

    The partition follows from the job alone, so all runs of a job stay in order, with one run in a message or
    with several.
    """

    def __init__(
        self, topics: Topics, partitions: Callable[[str], int], *, most: int = RUNS_PER_MESSAGE
    ) -> None:
        """Create the packer.

        Args:
            topics: names of the topics.
            partitions: returns the number of a topic's partitions; 0 if it is not known.
            most: the most runs in a message.
        """
        self._most = most
        self._topics = topics
        self._partitions = partitions
        self._apart_until: dict[str, float] = {}

    def topic_of(self, unsent: Unsent) -> str:
        """Return the topic of a run."""
        return self._topics.runs(unsent.pool, Lane(unsent.lane))

    def pack(
        self, runs: Sequence[Unsent], pools: Mapping[str, PoolState], traced: Mapping[UUID, str]
    ) -> Packed:
        """Return the messages for runs of pools with a key, in order.

        Args:
            runs: those of a relay batch.
            pools: the key of each pool, and whether its workers read messages with several runs.
            traced: the `traceparent` of traced runs; such a run has a message of its own.
        """
        routes: dict[tuple[str, int], _Route] = {}
        groups: list[tuple[_Route, int, list[int]]] = []
        for index, (_, pool, lane, run, spread) in enumerate(runs):
            where = (pool, lane)
            route = routes.get(where) or routes.setdefault(where, self._route(*where, pools))
            partition = (
                (run.run_id if spread else run.job_id).int % route.partitions if route.partitions else -1
            )
            filling = route.filling.get(partition)
            is_traced = bool(traced) and run.run_id in traced
            if is_traced or filling is None or len(filling) >= self._most:
                filling = [index]
                groups.append((route, partition, filling))
                if is_traced or not route.state.reads_batches or partition < 0:
                    route.filling.pop(partition, None)
                else:
                    route.filling[partition] = filling
            else:
                filling.append(index)
        return Packed(
            [self._message(runs, *group, traced) for group in groups], [group[2] for group in groups]
        )

    def unpack(self, runs: Sequence[Unsent], pools: Mapping[str, PoolState], refused: Packed) -> Packed:
        """Return a message for each run of refused ones: one run may be the reason, and harms no other.

        Messages to their topics have one run for a while.
        """
        until = time.monotonic() + _APART_SECONDS
        self._apart_until.update((message.topic, until) for message in refused.messages)
        alone = [index for group in refused.runs for index in group]
        packed = self.pack([runs[index] for index in alone], pools, {})
        return Packed(packed.messages, [[alone[at] for at in group] for group in packed.runs])

    def _route(self, pool: str, lane: int, pools: Mapping[str, PoolState]) -> _Route:
        topic = self._topics.runs(pool, Lane(lane))
        state = pools[pool]
        if time.monotonic() < self._apart_until.get(topic, 0.0):
            state = state._replace(reads_batches=False)
        return _Route(topic, pool, Lane(lane), self._partitions(topic), state, {})

    def _message(
        self,
        runs: Sequence[Unsent],
        route: _Route,
        partition: int,
        group: Sequence[int],
        traced: Mapping[UUID, str],
    ) -> OutboundMessage:
        signer, pool, lane = route.state.signer, route.pool, route.lane
        if len(group) > 1:
            value = encode_runs(signer, [runs[index].run for index in group], pool=pool, lane=lane)
            return OutboundMessage(route.topic, None, value, STRUCTURED, partition)
        run = runs[group[0]].run
        value = encode_run(signer, run, pool=pool, lane=lane, traceparent=traced.get(run.run_id))
        return OutboundMessage(route.topic, run.job_id.bytes, value, STRUCTURED, partition)
