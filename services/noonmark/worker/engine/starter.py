"""Starts batches of runs: from the buffers of the lanes, by a statement, on to the executors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import psycopg

from noonmark.attempts.running_attempt import AttemptTrace, Delivery, RunningAttempt, contradicted
from noonmark.core.attempt_key import AttemptKey
from noonmark.core.faults import hit
from noonmark.service.database_loop import Pace
from noonmark.service.gathering import Gathering
from noonmark.service.runner import Service
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.earlier_attempts import EarlierAttempts, read_earlier_attempts
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import held_runs, starts, worker_lease
from noonmark.store.runs.locked_runs import find_locked, is_lock_timeout
from noonmark.store.runs.starts import StartPointer
from noonmark.telemetry.metrics import DUPLICATE_MESSAGES, HANDED_BACK
from noonmark.telemetry.verdicts import count_start_deadline
from noonmark.worker.engine.slot_planner import SlotPlanner
from noonmark.worker.engine.start_delays import measure_starts
from noonmark.worker.handlers.executors import Executors
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.lanes.reader import LaneReader, records_by_lane, settle_records
from noonmark.worker.leases.lease import Lease

_PAUSE_SECONDS: Final = 0.005
"""The messages of one relay batch arrive partition by partition: after this pause they start together."""

_ENOUGH: Final = 800
"""While many runs arrive, a start waits for so many."""

_WORTH_A_WAIT: Final = 100
"""A start that cannot have more runs than this does not wait for them."""

_LOCKED_SECONDS: Final = 1.0


class Starter:
    """Starts as many runs as have a slot. Used by the engine's thread."""

    def __init__(
        self,
        service: Service,
        lease: Lease,
        executors: Executors,
        *,
        readers: Sequence[LaneReader],
        slots: SlotPlanner,
        in_flight: RunsInFlight,
        topics: EventTopics,
        shards: int,
    ) -> None:
        """Create the starter.

        Args:
            service: the process.
            lease: the worker's lease.
            executors: execute what was started.
            readers: one per lane, in the order of the lanes.
            slots: decides how many runs to start, and from which lane.
            in_flight: the runs in flight.
            topics: where verdicts are announced.
            shards: number of shards of the installation.
        """
        self._service = service
        self._log = service.log.bind(loop="engine")
        self._pool = service.settings.pool
        self._topics = topics
        self._lease = lease
        self._readers = readers
        self._executors = executors
        self._slots = slots
        self._in_flight = in_flight
        self._shards = shards
        self._pace = Pace(_PAUSE_SECONDS)
        self._gathering = Gathering(_ENOUGH)
        self._locked: list[Delivery] = []
        self._locked_until = 0.0

    def start_batch(self, connection: psycopg.Connection) -> bool:
        """Start one batch, taken from the lanes by their shares; return whether there was one."""
        self._take_up_locked(connection)
        if not any(reader.buffer for reader in self._readers):
            return False
        self._pace.hold(self._service.stop)
        load = self._in_flight.load()
        if self._gathers(self._slots.free(load)):
            return True
        picked = self._slots.pick(self._readers, load)
        if not picked:
            return False
        self._gathering.took(len(picked))
        return self._start_picked(connection, picked)

    def _gathers(self, free: int) -> bool:
        """Return whether the next start waits for more runs; it does not if there is one of the high lane."""
        high, normal, low = self._readers
        waiting = len(normal.buffer) + len(low.buffer)
        if high.buffer or free <= max(waiting, _WORTH_A_WAIT):
            return False
        return self._gathering.left_seconds(waiting) > 0

    def _start_picked(self, connection: psycopg.Connection, picked: Sequence[Delivery]) -> bool:
        """Start runs that were taken; return False if they must wait for the next lease."""
        fresh = self._without_duplicates(picked)
        if not fresh:
            return True
        hit("worker.before_start")
        if self._locked:
            # While a run is locked, each batch is checked first: to wait every time would be slow.
            fresh = self._without_locked(connection, fresh)
        started = self._request(connection, fresh) if fresh else None
        if started is None:
            return True
        if started.lapsed:
            # The messages are good: they wait for the next lease.
            self._lease.lapse(self._lease.identity.worker)
            self._put_back(fresh)
            return False
        refused = set(started.refused)
        accepted = [d for d in fresh if d.start_request not in refused] if refused else fresh
        begun = {delivery.start_request.run_id.int: delivery for delivery in accepted}
        try:
            hit("worker.after_start")
            runs = self._without_forged(connection, begun, started.runs)
        except psycopg.Error:
            self._put_back(fresh)  # the start statement returns those that it has started again
            raise
        self._begin(begun, runs, started.earlier)
        if refused:
            self._expire(connection, started.refused, [d for d in fresh if d.start_request in refused])
        return True

    def _without_duplicates(self, picked: Sequence[Delivery]) -> list[Delivery]:
        """Drop copies of messages whose run is in flight already."""
        # A call of `attempt_key` costs more than the look-ups.
        keys = [((said := each.start_request).run_id.int, said.fence) for each in picked]
        if self._in_flight.has_none(keys) and len(set(keys)) == len(keys):
            return list(picked)
        fresh: dict[AttemptKey, Delivery] = {}
        twice: list[Delivery] = []
        for key, delivery in zip(keys, picked, strict=True):
            if key in fresh or key in self._in_flight:
                twice.append(delivery)
            else:
                fresh[key] = delivery
        self._settle_unstarted(twice)
        return list(fresh.values())

    def _request(self, connection: psycopg.Connection, fresh: Sequence[Delivery]) -> _Started | None:
        """Run the start statement. If it fails, put the messages back; None: others than these are locked."""
        requests = [delivery.start_request for delivery in fresh]
        try:
            runs, refused = starts.start(connection, self._lease.identity, self._pool, requests)
            again = [request.run_id for request in requests if request.fence > 1]
            earlier = read_earlier_attempts(connection, again) if again else {}
            lapsed = bool(refused) and not worker_lease.beat(connection, self._lease.identity)
        except psycopg.Error as error:
            self._recover(connection, fresh, error)
            return None
        return _Started(runs, refused, earlier, lapsed)

    def _recover(
        self, connection: psycopg.Connection, deliveries: Sequence[Delivery], error: psycopg.Error
    ) -> None:
        """Put messages back after a failed statement about them; set aside those whose runs are locked.

        Raises:
            psycopg.Error: the error, if it has another reason than a locked run.
        """
        others = list(deliveries)
        if is_lock_timeout(error):
            others = self._without_locked(connection, deliveries)
        self._put_back(others)
        if len(others) == len(deliveries):
            raise error

    def _without_locked(
        self, connection: psycopg.Connection, deliveries: Sequence[Delivery]
    ) -> list[Delivery]:
        """Set aside messages whose runs another session has locked, such as a person's; return the others.

        Raises:
            psycopg.Error: it is not known which; all messages were put back.
        """
        try:
            locked = _find_locked(connection, deliveries)
        except psycopg.Error:
            self._put_back(deliveries)
            raise
        if locked:
            self._log.warning("starts_locked", count=len(locked), run_id=str(min(locked)))
            self._locked += [d for d in deliveries if d.start_request.run_id in locked]
            self._locked_until = time.monotonic() + _LOCKED_SECONDS
        return [d for d in deliveries if d.start_request.run_id not in locked]

    def _take_up_locked(self, connection: psycopg.Connection) -> None:
        """Buffer messages again that were set aside, once their runs are not locked any more."""
        now = time.monotonic()
        if not self._locked or now < self._locked_until:
            return
        self._locked_until = now + _LOCKED_SECONDS
        locked = _find_locked(connection, self._locked)
        self._put_back([d for d in self._locked if d.start_request.run_id not in locked])
        self._locked = [d for d in self._locked if d.start_request.run_id in locked]

    def _put_back(self, deliveries: Sequence[Delivery]) -> None:
        """Return messages to the front of their buffers: whether they were started is unknown."""
        for delivery in reversed(deliveries):
            self._readers[delivery.lane].buffer.appendleft(delivery)

    def _without_forged(
        self, connection: psycopg.Connection, deliveries: Mapping[int, Delivery], runs: list[StartedRun]
    ) -> list[StartedRun]:
        """Return the runs whose message agrees with the ledger; hand back the others.

        A signed message that names another job, version or namespace was created by someone who has the
        pool's key. It is rejected as `mismatch`, and its run is queued again under a higher fence, with a
        message created from its row: nothing of it was executed, and no attempt is used up.

        Args:
            connection: in autocommit mode.
            deliveries: by run id, as a number.
            runs: that are running now.
        """
        forged = contradicted(deliveries, runs)
        if not forged:
            return runs
        count = held_runs.requeue_unfinished(
            connection,
            self._lease.identity,
            [(run.id, run.scheduled_for, deliveries[run.id.int].start_request.fence) for run in forged],
        ).requeued
        HANDED_BACK.inc(count)
        self._log.error("messages_forged", count=len(forged), run_id=str(forged[0].id))
        for run in forged:
            delivery = deliveries[run.id.int]
            self._readers[delivery.lane].refuse([delivery])
        unfit = {run.id for run in forged}
        return [run for run in runs if run.id not in unfit]

    def _begin(
        self,
        deliveries: Mapping[int, Delivery],
        runs: Sequence[StartedRun],
        earlier: Mapping[UUID, EarlierAttempts],
    ) -> None:
        """Pass started runs to the executors."""
        of, pool = RunningAttempt.of, self._pool
        attempts = [of(run, deliveries[run.id.int], pool) for run in runs]
        for attempt in attempts if earlier else ():
            if (left := earlier.get(attempt.run.id)) is not None:
                attempt.checkpoint, attempt.rejections = left.checkpoint, left.rejections
        if self._service.traces is not None:
            for attempt in attempts:
                attempt.trace = AttemptTrace.of(attempt.record.value, attempt.run.id, attempt.fence)
        self._in_flight.add(attempts)
        self._executors.submit(attempts)
        measure_starts(attempts, self._service.settings.start_objective_seconds)
        for reader, begun in zip(self._readers, records_by_lane(deliveries.values()), strict=True):
            if begun:
                reader.consumer.started(begun)

    def _expire(
        self, connection: psycopg.Connection, refused: Sequence[StartPointer], over: Sequence[Delivery]
    ) -> None:
        """Record the verdict of runs whose start deadline has passed, and settle all refused messages."""
        try:
            expired = starts.expire(connection, self._topics, refused, shards=self._shards)
        except psycopg.Error as error:
            self._recover(connection, over, error)
            return
        for lane, count in expired.items():
            count_start_deadline(lane, count)
        self._settle_unstarted(over)

    def _settle_unstarted(self, deliveries: Sequence[Delivery]) -> None:
        """Count messages that started nothing, and let their offsets move."""
        settle_records(self._readers, deliveries)
        for lane, count in Counter(delivery.lane for delivery in deliveries).items():
            DUPLICATE_MESSAGES.labels(lane.label).inc(count)


@dataclass(frozen=True, slots=True)
class _Started:
    """The reply to a start statement.

    Attributes:
        runs: that are running now.
        refused: requests whose start deadline has passed or whose lease is not live.
        earlier: what earlier attempts left, by run id.
        lapsed: the requests were refused because this worker's lease has lapsed.
    """

    runs: list[StartedRun]
    refused: Sequence[StartPointer]
    earlier: Mapping[UUID, EarlierAttempts]
    lapsed: bool


def _find_locked(connection: psycopg.Connection, deliveries: Sequence[Delivery]) -> set[UUID]:
    requests = [delivery.start_request for delivery in deliveries]
    return find_locked(connection, [(request.run_id, request.scheduled_for) for request in requests])
