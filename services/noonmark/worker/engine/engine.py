"""The engine: takes messages high first, starts as many runs as can run, and keeps books on all in hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from noonmark.attempts.outcomes import unfinished
from noonmark.attempts.running_attempt import Delivery, RunningAttempt
from noonmark.attempts.traces import AttemptTrace, record_spans
from noonmark.core.faults import hit
from noonmark.core.vocabulary import DeliverySemantics, Lane
from noonmark.kafka.consumers.records import Record
from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify
from noonmark.service.database_loop import Pace
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.database.hints import HintSender
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.outcomes.notes import checkpoints
from noonmark.store.runs import finish, held_runs, starts, worker_lease
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.held_runs import LiveRun
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import ATTEMPT_DURATION, HANDED_BACK, HEARTBEAT_AGE, WORKER_SLOTS
from noonmark.telemetry.verdicts import count_start_deadline
from noonmark.worker.engine.recorder import RecorderLoop
from noonmark.worker.engine.slots import SlotPlanner, records_by_lane
from noonmark.worker.engine.start_batches import StartBatches
from noonmark.worker.engine.start_metrics import measure_starts
from noonmark.worker.engine.stop_requests import StopRequests
from noonmark.worker.handlers.executors import Executors
from noonmark.worker.lanes.reader import LaneReader
from noonmark.worker.lanes.unconfirmed_messages import count_duplicates, drop_forged
from noonmark.worker.leases.lease import Lease

_IDLE_SECONDS = 0.25
_START_PAUSE_SECONDS = 0.005
"""Messages of one relay batch arrive partition by partition: a moment's patience starts them together."""

_TEND_SECONDS = 0.005
_RECONCILE_SECONDS = 2.0
_OVERDUE_SECONDS = 1.0
_LAST_OUTCOMES_SECONDS = 5.0


class Engine:
    """One thread that starts runs and looks after them.

    The executors, the recorder and the readers talk to it through `wake`, `settled` and their buffers.
    """

    name = "engine"

    def __init__(
        self,
        service: Service,
        pool: str,
        topics: EventTopics,
        hints: HintSender,
        lease: Lease,
        *,
        shards: int,
    ) -> None:
        """Make the engine; `attach` gives it its parts, which need it in turn."""
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._pool = pool
        self._topics = topics
        self._hints = hints
        self._lease = lease
        self._shards = shards
        self._wake = threading.Event()
        self._progress = service.health.progress(self.name, 30.0)
        self._held: dict[Any, RunningAttempt] = {}
        self._pace = Pace(_START_PAUSE_SECONDS)
        self._reconcile_at = 0.0
        self._overdue_at = 0.0
        self._stops = StopRequests()
        self.batches = StartBatches()
        self.slots = SlotPlanner(service.settings)
        self.readers: Sequence[LaneReader] = ()
        self.executors: Executors
        self.recorder: RecorderLoop
        service.health.require("lease", "no lease yet")

    def attach(self, readers: Sequence[LaneReader], executors: Executors, recorder: RecorderLoop) -> None:
        """Give the engine the parts that it works with."""
        self.readers, self.executors, self.recorder = readers, executors, recorder

    def wake(self) -> None:
        """Tell the engine that there is something to start, or room for it."""
        self._wake.set()

    def settled(self, outcomes: Sequence[Outcome]) -> None:
        """Told by the recorder: these outcomes' fate is in Postgres, so their records may be committed."""
        now = time.monotonic()
        ended: list[RunningAttempt] = []
        durations: dict[tuple[str, str], list[float]] = {}
        for outcome in outcomes:
            attempt = self._held.pop((outcome.run.id, outcome.fence), None)
            if attempt is None:
                continue
            ended.append(attempt)
            if attempt.began_at:
                labels = (attempt.run.kind or "", outcome.attempt_outcome.value)
                durations.setdefault(labels, []).append(now - attempt.began_at)
            if attempt.trace is not None and self._service.traces is not None:
                record_spans(self._service.traces.tracer, attempt, outcome)
        self._settle(records_by_lane(ended))
        self.slots.completed(len(outcomes))
        for (kind, result), seconds in durations.items():
            ATTEMPT_DURATION.labels(kind, result).observe_many(seconds)
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Start and look after runs until stopped, then drain."""
        backoff = Backoff(first_seconds=0.1, cap_seconds=1.0)
        drained = False
        while not drained:
            try:
                with connect(self._service.settings.dsn, application="worker", autocommit=True) as connection:
                    drained = self._work(connection, stop, backoff)
            except psycopg.Error as error:
                if classify(error) is DbFault.PERMANENT:
                    raise
                self._log.warning("database_unavailable", error=str(error).strip())
                self._service.health.set_ready("lease", ready=False, missing="the database is unreachable")
                self._progress.beat()
                drained = stop.is_set() and backoff.failures > 20
                backoff.wait(threading.Event())
        self._close()

    def _work(self, connection: psycopg.Connection, stop: threading.Event, backoff: Backoff) -> bool:
        while not stop.is_set():
            if self._lease.identity.worker == 0 or self._lease.lost.is_set():
                self._renew(connection)
            self._progress.beat()
            started = self._start_some(connection)
            if backoff.failures:
                backoff.reset()
            self._service.health.set_ready("lease", ready=True)
            self._supervise(connection)
            if not started:
                self._wake.wait(_TEND_SECONDS if self.executors.threads.waiting else _IDLE_SECONDS)
                self._wake.clear()
        return self._drain(connection)

    def _start_some(self, connection: psycopg.Connection) -> bool:
        """Start one batch, taken from the lanes by their shares; tell whether there was one."""
        if not any(reader.buffer for reader in self.readers):
            return False
        self._pace.hold(self._service.stop)
        in_hand = list(self._held.values())
        lower = sum(1 for attempt in in_hand if attempt.lane is not Lane.HIGH)
        picked = self.slots.pick(self.readers, in_flight=len(in_hand), lower_in_flight=lower)
        if not picked:
            return False
        fresh = self._without_duplicates(picked)
        if not fresh:
            return True
        hit("worker.before_start")
        try:
            runs, refused = starts.start(
                connection, self._lease.identity, self._pool, [delivery.start_request for delivery in fresh]
            )
            again = [delivery.start_request.run_id for delivery in fresh if delivery.start_request.fence > 1]
            kept = checkpoints(connection, again) if again else {}
            lapsed = bool(refused) and not worker_lease.beat(connection, self._lease.identity)
        except psycopg.Error:
            self._put_back(fresh)
            raise
        if lapsed:
            # Refused because we are nobody any more: the messages are good, and wait for the next lease.
            self._lease.lost.set()
            self._put_back(fresh)
            return False
        hit("worker.after_start")
        gone = {(ticket.run_id, ticket.fence) for ticket in refused}
        begun = {
            d.start_request.run_id: d
            for d in fresh
            if (d.start_request.run_id, d.start_request.fence) not in gone
        }
        runs = drop_forged(connection, self._lease.identity, self.readers, begun, runs)
        self._begin(begun, runs, kept)
        if refused:
            for lane, count in starts.expire(connection, self._topics, refused, shards=self._shards).items():
                count_start_deadline(lane, count)
            over = [d for d in fresh if (d.start_request.run_id, d.start_request.fence) in gone]
            self._settle(records_by_lane(over))
            count_duplicates(over)
        return True

    def _without_duplicates(self, picked: Sequence[Delivery]) -> list[Delivery]:
        """Drop copies of messages whose run is in hand already."""
        fresh: dict[Any, Delivery] = {}
        twice: list[Delivery] = []
        for delivery in picked:
            key = (delivery.start_request.run_id, delivery.start_request.fence)
            if key in self._held or key in fresh:
                twice.append(delivery)
            else:
                fresh[key] = delivery
        self._settle(records_by_lane(twice))
        count_duplicates(twice)
        return list(fresh.values())

    def _begin(
        self, deliveries: Mapping[UUID, Delivery], runs: Sequence[StartedRun], kept: Mapping[UUID, bytes]
    ) -> None:
        attempts = [RunningAttempt.of(run, deliveries[run.id], self._pool) for run in runs]
        if kept:
            for attempt in attempts:
                attempt.checkpoint = kept.get(attempt.run.id)
        if self._service.traces is not None:
            for attempt in attempts:
                attempt.trace = AttemptTrace.of(attempt.record.value, attempt.run.id, attempt.fence)
        self._held.update((attempt.key, attempt) for attempt in attempts)
        self.batches.started(runs)
        self.executors.submit(attempts)
        measure_starts(attempts, self._service.settings.start_objective_seconds)
        for lane, begun in records_by_lane(deliveries.values()).items():
            self.readers[lane].consumer.started(begun)

    def _put_back(self, deliveries: Sequence[Delivery]) -> None:
        """Return messages to the front of their buffers: nothing is known about their start."""
        for delivery in reversed(deliveries):
            self.readers[delivery.lane].buffer.appendleft(delivery)

    def _settle(self, records: dict[Lane, list[Record]]) -> None:
        for lane, done in records.items():
            self.readers[lane].consumer.settle(done)

    def _supervise(self, connection: psycopg.Connection) -> None:
        """Do what is due besides starting: stuck queues, overdue handlers, the books in Postgres."""
        self.executors.threads.tend()
        now = time.monotonic()
        if waiting := self.executors.waiting_too_long(now):
            self._hand_back(connection, waiting, "no process was free")
        if now >= self._overdue_at:
            self._overdue_at = now + _OVERDUE_SECONDS
            self.executors.end_overdue(now)
            busy = len(self._held)
            WORKER_SLOTS.labels("busy").set(busy)
            WORKER_SLOTS.labels("free").set(max(0, self._service.settings.worker_slots - busy))
            HEARTBEAT_AGE.set(self._lease.age_seconds())
        if unwanted := self._stops.poll(connection, self._lease.identity, self._held):
            self.executors.cancel(unwanted)
        if now >= self._reconcile_at:
            self._reconcile_at = now + _RECONCILE_SECONDS
            self._reconcile(connection)

    def _reconcile(self, connection: psycopg.Connection) -> None:
        """Compare what Postgres believes that we run with what we do run."""
        identity = self._lease.identity
        known = self.batches.known()
        held = held_runs.read_worker_runs(connection, identity)
        if not held.batches:
            return
        mine = {attempt.run.id: attempt for attempt in list(self._held.values())}
        unwanted = [
            mine[run_id].key
            for run_id, live in held.live.items()
            if live.state == "cancelling" and run_id in mine and not mine[run_id].stop_requested
        ]
        if unwanted:
            self.executors.cancel(unwanted)
        unheld = [(run_id, live) for run_id, live in held.live.items() if run_id not in mine]
        if unheld:
            self._forget_lost_lease(connection, identity, unheld)
        done = [
            batch
            for batch, run_ids in held.batches.items()
            if batch not in known and not any(run_id in held.live for run_id in run_ids)
        ]
        if done:
            finish.delete_batches(connection, done)

    def _forget_lost_lease(
        self, connection: psycopg.Connection, identity: Identity, unheld: Sequence[tuple[UUID, LiveRun]]
    ) -> None:
        """Part with runs whose start we never heard of: nothing of them runs here."""
        orphans = [(run_id, live.scheduled_for) for run_id, live in unheld if live.state == "running"]
        ended = [(run_id, live.scheduled_for) for run_id, live in unheld if live.state == "cancelling"]
        if orphans:
            count = held_runs.requeue_unfinished(connection, identity, orphans)
            HANDED_BACK.inc(count)
            self._log.warning("runs_handed_back", count=count, why="not held in memory")
            self._hints.outbox()
        if ended:
            held_runs.cancel_unowned(connection, identity, self._topics, ended, shards=self._shards)

    def _renew(self, connection: psycopg.Connection) -> None:
        """Take a lease; after a lost one, first drop everything: it belongs to somebody else now."""
        if self._lease.identity.worker:
            dropped = records_by_lane(list(self._held.values()))
            self._log.error("runs_abandoned", count=len(self._held), worker=self._lease.identity.worker)
            self.executors.abandon()
            self.recorder.forget()
            self.batches.clear()
            self._held.clear()
        else:
            dropped = {}
        self._lease.take(connection)
        # Their fate is in Postgres: the lapse takes them up from their start batches.
        self._settle(dropped)

    def _drain(self, connection: psycopg.Connection) -> bool:
        """Finish what fits into the grace, hand back the rest, leave in good order."""
        for reader in self.readers:
            reader.stop_taking()
        held_runs.drain(connection, self._lease.identity)
        settings, hurry = self._service.settings, self._service.hurry
        until = time.monotonic() + settings.drain_seconds
        # Children that will not be through by then get their grace before it, so that all is over in time.
        children_until = until - min(settings.kill_grace_seconds, settings.drain_seconds / 2)
        self._hand_back(connection, self.executors.withdraw())
        while self._held and not self._lease.lost.is_set() and not hurry.is_set():
            now = time.monotonic()
            if now >= until:
                break
            self._progress.beat()
            if now >= children_until:
                self._hand_back(connection, self.executors.children())
            self.executors.threads.tend()
            self.executors.end_overdue(now)
            self._wake.wait(0.05)
            self._wake.clear()
        self.executors.kill_children()
        if not self._lease.lost.is_set():
            if self._held:
                self.executors.save_notes()
            self._hand_back(connection, list(self._held.values()))
            self._lease.leave(connection)
        return True

    def _hand_back(
        self, connection: psycopg.Connection, attempts: Sequence[RunningAttempt], why: str = "drain"
    ) -> None:
        """Hand runs back: the fence rises, the attempt is not burnt, and another worker takes them."""
        keys = [attempt.key for attempt in attempts]
        unfinished_ones = self.executors.release(keys)
        self._await_end(keys)
        attempts = self._without_begun(connection, attempts, unfinished_ones)
        if not attempts:
            return
        count = held_runs.requeue_unfinished(
            connection, self._lease.identity, [(h.run.id, h.run.scheduled_for) for h in attempts]
        )
        HANDED_BACK.inc(count)
        self._log.info("runs_handed_back", count=count, why=why)
        self._hints.outbox()
        for attempt in attempts:
            self._held.pop(attempt.key, None)
        self._settle(records_by_lane(attempts))

    def _await_end(self, keys: Sequence[Any]) -> None:
        """Wait until no child of released runs is left: whoever takes them must not meet their old selves."""
        until = time.monotonic() + self._service.settings.kill_grace_seconds + _LAST_OUTCOMES_SECONDS
        while self.executors.are_ending(keys) and time.monotonic() < until:
            if self._service.hurry.is_set():
                self.executors.kill_children()
            self._progress.beat()
            self._wake.wait(0.02)
            self._wake.clear()

    def _without_begun(
        self,
        connection: psycopg.Connection,
        attempts: Sequence[RunningAttempt],
        unfinished_ones: Sequence[RunningAttempt],
    ) -> list[RunningAttempt]:
        """Sort out what may not be begun a second time: it ends as `unknown`, or as the recorder has it."""
        once = [h for h in attempts if h.began_at and h.delivery is DeliverySemantics.AT_MOST_ONCE]
        outcomes = [unfinished(attempt) for attempt in once if attempt in unfinished_ones]
        if outcomes:
            with connection.transaction():
                recorded = self.recorder.record_in(connection, self._lease.identity, outcomes, unsure=False)
            self.recorder.committed(outcomes, recorded)
        until = time.monotonic() + _LAST_OUTCOMES_SECONDS
        while any(attempt.key in self._held for attempt in once) and time.monotonic() < until:
            self._wake.wait(0.05)
            self._wake.clear()
        return [attempt for attempt in attempts if attempt not in once]

    def _close(self) -> None:
        """End the parts in their order: executors, recorder, consumers with a last commit, heartbeat."""
        self.executors.close()
        self.recorder.close()
        for reader in self.readers:
            reader.closed.set()
        self._lease.close()
