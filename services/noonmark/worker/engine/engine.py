"""The engine: starts runs, the high lane first, supervises those in flight, and drains the worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg

from noonmark.attempts.live_logs import LogWriter
from noonmark.attempts.outcomes import unfinished
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.attempt_key import attempt_key
from noonmark.core.states import DeliverySemantics
from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify, log_fault, missing_because
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.database.hints import HintSender
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import finish, held_runs, starts
from noonmark.store.runs.held_runs import LiveRun
from noonmark.store.runs.locked_runs import LOCK_WAIT_SECONDS, find_locked
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import HANDED_BACK, WORKER_SLOTS
from noonmark.worker.engine.late_starts import LateStarts
from noonmark.worker.engine.process_resources import ProcessResources, UnusableProcessError
from noonmark.worker.engine.recorder import RecorderLoop
from noonmark.worker.engine.slot_planner import SlotPlanner
from noonmark.worker.engine.starter import Starter
from noonmark.worker.engine.stop_requests import StopRequests
from noonmark.worker.handlers.executors import Executors
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.lanes.reader import LaneReader, settle_records
from noonmark.worker.leases.lease import Lease

_IDLE_SECONDS = 0.25
_TEND_SECONDS = 0.005
_RECONCILE_SECONDS = 2.0
_OVERDUE_SECONDS = 1.0
_LAST_OUTCOMES_SECONDS = 5.0
_LOCKED_SECONDS = 1.0
_LEAVE_SECONDS = 1.0


class Engine:
    """One thread that starts runs, supervises them, and drains the worker."""

    name = "engine"

    def __init__(
        self,
        service: Service,
        lease: Lease,
        executors: Executors,
        recorder: RecorderLoop,
        *,
        readers: Sequence[LaneReader],
        slots: SlotPlanner,
        in_flight: RunsInFlight,
        logs: LogWriter,
        topics: EventTopics,
        hints: HintSender,
        wake: threading.Event,
        catalogue: str,
        shards: int,
    ) -> None:
        """Create the engine.

        Args:
            service: the process.
            lease: the worker's lease; the engine takes it.
            executors: execute the runs.
            recorder: records outcomes.
            readers: one per lane, in the order of the lanes.
            slots: decides how many runs to start, and from which lane.
            in_flight: the runs in flight.
            logs: stores the output of attempts while they run.
            topics: where verdicts are announced.
            hints: wakes dispatcher and trigger.
            wake: set when there are messages to start, or slots for them.
            catalogue: what the worker can run, for its registration.
            shards: number of shards of the installation.
        """
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._topics = topics
        self._hints = hints
        self._lease = lease
        self._starter = Starter(
            service,
            lease,
            executors,
            readers=readers,
            slots=slots,
            in_flight=in_flight,
            topics=topics,
            shards=shards,
        )
        self._readers = readers
        self._executors = executors
        self._recorder = recorder
        self._in_flight = in_flight
        self._logs = logs
        self._wake = wake
        self._catalogue = catalogue
        self._shards = shards
        self._progress = service.health.progress(self.name, 30.0)
        self._reconcile_at = 0.0
        self._overdue_at = 0.0
        self._stops = StopRequests()
        self._released: dict[Any, RunningAttempt] = {}
        self._requeue_at = 0.0
        self._late_starts = LateStarts()
        self._resources = ProcessResources()

    def run(self, stop: threading.Event) -> None:
        """Start and supervise runs until stopped, then drain."""
        backoff = Backoff(first_seconds=0.1, cap_seconds=1.0)
        drained = False
        while not drained:
            try:
                with connect(
                    self._service.settings.dsn,
                    application="worker",
                    autocommit=True,
                    lock_timeout_seconds=LOCK_WAIT_SECONDS,
                ) as connection:
                    drained = self._work(connection, stop, backoff)
            except (psycopg.Error, OSError) as error:
                if classify(error) is DbFault.PERMANENT:
                    raise
                log_fault(self._log, error)
                missing = f"the database is {missing_because(error)}"
                self._service.health.set_ready("lease", ready=False, missing=missing)
                self._progress.beat()
                self._check_resources()
                drained = stop.is_set() and backoff.failures > 20
                backoff.wait(threading.Event())
        self._close()
        if self._resources.are_lost:
            raise UnusableProcessError

    def _work(self, connection: psycopg.Connection, stop: threading.Event, backoff: Backoff) -> bool:
        while not stop.is_set():
            if self._lease.identity.worker == 0 or self._lease.lost.is_set():
                self._renew(connection)
            self._progress.beat()
            self._lease.tend(connection)
            if time.monotonic() >= self._requeue_at:
                self._requeue_released(connection, "an earlier try failed")
            problem = self._check_resources() or self._lease.problem()
            # A worker that cannot keep a lease would only lose what it starts.
            started = not problem and self._starter.start_batch(connection)
            if backoff.failures:
                backoff.reset()
            self._service.health.set_ready("lease", ready=not problem, missing=problem)
            for reader in self._readers if not problem else ():
                reader.inability.mark_able()
            if self._lease.identity.worker:
                self._supervise(connection)
            if not started:
                self._wake.wait(_TEND_SECONDS if self._executors.threads.waiting else _IDLE_SECONDS)
                self._wake.clear()
        return self._drain(connection)

    def _check_resources(self) -> str:
        """Return why this process can execute nothing now; a worker that stays so drains, and ends."""
        problem = self._resources.problem(time.monotonic())
        if self._resources.are_lost:
            self._service.stop.set()
        return problem

    def _supervise(self, connection: psycopg.Connection) -> None:
        """Do everything that is due except starting: stuck queues, overdue handlers, cancels, the ledger."""
        self._executors.threads.tend()
        now = time.monotonic()
        if waiting := self._executors.waiting_too_long(now):
            self._hand_back(connection, waiting, "no process was free")
        self._hand_back_unbegun(connection)
        if now >= self._overdue_at:
            self._overdue_at = now + _OVERDUE_SECONDS
            self._executors.end_overdue(now)
            busy = self._in_flight.load().open
            WORKER_SLOTS.labels("busy").set(busy)
            WORKER_SLOTS.labels("free").set(max(0, self._service.settings.worker_slots - busy))
        if to_cancel := self._stops.poll(connection, self._lease.identity, self._in_flight):
            self._executors.cancel(to_cancel)
        if now >= self._reconcile_at:
            self._reconcile_at = now + _RECONCILE_SECONDS
            self._extend_batches(connection, now)
            self._reconcile(connection)

    def _extend_batches(self, connection: psycopg.Connection, now: float) -> None:
        """Keep runs whose timeout began late from being taken: they are within it."""
        if late := self._late_starts.due(self._in_flight.all(), now):
            starts.extend_batches(connection, self._lease.identity, late)
            self._late_starts.extended(late)

    def _reconcile(self, connection: psycopg.Connection) -> None:
        """Compare the runs that Postgres assigns to this worker with those in flight."""
        identity = self._lease.identity
        known = self._in_flight.batches.known()
        held = held_runs.read_worker_runs(connection, identity)
        if not held.batches:
            return
        mine = {attempt.key: attempt for attempt in self._in_flight.all()}
        to_cancel = [
            key
            for key in (
                attempt_key(run_id, live.fence)
                for run_id, live in held.live.items()
                if live.state == "cancelling"
            )
            if key in mine and not mine[key].stop_requested
        ]
        if to_cancel:
            self._executors.cancel(to_cancel)
        unowned = [each for each in held.live.items() if attempt_key(each[0], each[1].fence) not in mine]
        locked = find_locked(connection, [(run_id, live.scheduled_for) for run_id, live in unowned])
        # The next pass finds again what is locked.
        if unowned := [each for each in unowned if each[0] not in locked]:
            self._release_unowned(connection, identity, unowned)
        done = [
            batch
            for batch, run_ids in held.batches.items()
            if batch not in known and not any(run_id in held.live for run_id in run_ids)
        ]
        if done:
            finish.delete_batches(connection, done)

    def _release_unowned(
        self, connection: psycopg.Connection, identity: Identity, unowned: Sequence[tuple[UUID, LiveRun]]
    ) -> None:
        """Release runs whose start reply never arrived: none of them runs here."""
        by_state: dict[str, list[held_runs.FencedRun]] = {"running": [], "cancelling": []}
        for run_id, live in unowned:
            by_state[live.state].append((run_id, live.scheduled_for, live.fence))
        orphans, ended = by_state["running"], by_state["cancelling"]
        if orphans:
            count = held_runs.requeue_unfinished(connection, identity, orphans).requeued
            HANDED_BACK.inc(count)
            if count:
                self._log.warning("runs_handed_back", count=count, why="not held in memory")
            self._hints.outbox()
        if ended:
            held_runs.cancel_unowned(connection, identity, self._topics, ended, shards=self._shards)

    def _renew(self, connection: psycopg.Connection) -> None:
        """Take a lease; after a lost one, first drop all runs in flight: other workers own them now."""
        if self._lease.identity.worker:
            dropped = self._in_flight.all()
            self._log.error("runs_abandoned", count=len(self._in_flight), worker=self._lease.identity.worker)
            self._executors.abandon()
            self._recorder.forget()
            self._in_flight.clear()
            self._released.clear()
            self._lease.forget()
            # Their offsets can move: the lapse of the lease requeues these runs from their start batches.
            settle_records(self._readers, dropped)
        self._lease.take(connection, self._catalogue)

    def _drain(self, connection: psycopg.Connection) -> bool:
        """Finish what fits into the drain time, hand back the rest, and release the lease."""
        held_runs.drain(connection, self._lease.identity)
        self._leave_groups()
        settings, hurry = self._service.settings, self._service.hurry
        until = time.monotonic() + settings.drain_seconds
        # Children that cannot finish in time are stopped early enough for their grace to fit into the drain.
        children_until = until - min(settings.kill_grace_seconds, settings.drain_seconds / 2)
        self._hand_back(connection, self._executors.withdraw())
        while self._in_flight and not self._lease.lost.is_set() and not hurry.is_set():
            now = time.monotonic()
            if now >= until:
                break
            self._progress.beat()
            if now >= children_until:
                self._hand_back(connection, self._executors.children())
            self._executors.threads.tend()
            self._hand_back_unbegun(connection)
            self._executors.end_overdue(now)
            self._wake.wait(0.05)
            self._wake.clear()
        self._executors.kill_children()
        if not self._lease.lost.is_set():
            if self._in_flight:
                self._executors.save_notes()
            self._hand_back(connection, self._in_flight.all())
            self._lease.leave(connection)
        return True

    def _leave_groups(self) -> None:
        """Give up all partitions before anything is handed back.

        Messages that were not started, and those of runs that are handed back, would otherwise wait in these
        partitions until this worker has left. A Kafka that does not answer must not hold up the drain.
        """
        for reader in self._readers:
            reader.leave()
        until = time.monotonic() + _LEAVE_SECONDS
        for reader in self._readers:
            reader.left.wait(max(0.0, until - time.monotonic()))
        self._progress.beat()

    def _hand_back_unbegun(self, connection: psycopg.Connection) -> None:
        if unbegun := self._executors.unbegun():
            self._hand_back(connection, unbegun, "the lease may have been over before they began")

    def _hand_back(
        self, connection: psycopg.Connection, attempts: Sequence[RunningAttempt], why: str = "drain"
    ) -> None:
        """Hand runs back: the fence rises, no attempt is used up, and another worker starts them."""
        keys = [attempt.key for attempt in attempts]
        still_open = self._executors.release(keys)
        self._await_end(keys)
        self._logs.save_last(connection, attempts)
        attempts = self._without_begun(connection, attempts, still_open)
        self._released.update((attempt.key, attempt) for attempt in attempts)
        self._requeue_released(connection, why)

    def _requeue_released(self, connection: psycopg.Connection, why: str) -> None:
        """Queue released runs again; if that fails, the next pass tries again before it starts anything.

        Later would be too late: if the first try was committed after all, one of them may run here again.
        Only those that another transaction has locked can wait: nothing was written about them.
        """
        self._requeue_at = 0.0
        if not self._released:
            return
        done = held_runs.requeue_unfinished(
            connection,
            self._lease.identity,
            [attempt.fenced_run for attempt in self._released.values()],
        )
        attempts = [a for a in self._released.values() if a.run.id not in done.locked]
        HANDED_BACK.inc(done.requeued)
        if attempts:
            self._log.info("runs_handed_back", count=done.requeued, why=why)
        self._hints.outbox()
        self._in_flight.hand_back(attempts)
        for attempt in attempts:
            self._released.pop(attempt.key)
        settle_records(self._readers, attempts)
        if done.locked:
            self._log.warning("runs_locked", count=len(done.locked), run_id=str(min(done.locked)))
            self._requeue_at = time.monotonic() + _LOCKED_SECONDS

    def _await_end(self, keys: Sequence[Any]) -> None:
        """Wait until no child of released runs is left: none may run here and on another worker at once."""
        until = time.monotonic() + self._service.settings.kill_grace_seconds + _LAST_OUTCOMES_SECONDS
        while self._executors.are_ending(keys) and time.monotonic() < until:
            if self._service.hurry.is_set():
                self._executors.kill_children()
            self._progress.beat()
            self._wake.wait(0.02)
            self._wake.clear()

    def _without_begun(
        self,
        connection: psycopg.Connection,
        attempts: Sequence[RunningAttempt],
        still_open: Sequence[RunningAttempt],
    ) -> list[RunningAttempt]:
        """Return the runs that may begin again; the others end as `unknown` or with their own outcome."""
        once = [
            attempt
            for attempt in attempts
            if attempt.began_at and attempt.delivery is DeliverySemantics.AT_MOST_ONCE
        ]
        outcomes = [unfinished(attempt) for attempt in once if attempt in still_open]
        if outcomes:
            with connection.transaction():
                recorded = self._recorder.record_in(connection, self._lease.identity, outcomes, unsure=False)
            self._recorder.committed(outcomes, recorded)
        until = time.monotonic() + _LAST_OUTCOMES_SECONDS
        while any(attempt.key in self._in_flight for attempt in once) and time.monotonic() < until:
            self._wake.wait(0.05)
            self._wake.clear()
        return [attempt for attempt in attempts if attempt not in once]

    def _close(self) -> None:
        """Stop the parts in order: executors, recorder, consumers with a last commit, heartbeat."""
        self._executors.close()
        self._recorder.close()
        self._logs.close()
        for reader in self._readers:
            reader.closed.set()
        self._lease.close()
