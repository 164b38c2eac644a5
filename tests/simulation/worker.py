"""Workers: the product's starter, registry and outcome statements around handlers that only exist in the seed.

The product's engine runs on threads, coroutines and child processes, which no seed can order. This thin worker calls
the same functions in the same order instead: `Starter.start_batch` is the product's own; the recording of outcomes,
the reaction to a lost lease and the reconciliation repeat the few calls of `RecorderLoop._record`, `Engine._renew`
and `Engine._reconcile`. Offsets move by the product's `OffsetTracker`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from tests.simulation.actors import Actor
from tests.simulation.broker import places_of
from tests.simulation.services import EVENTS, TOPICS
from tests.simulation.virtual_time import NoPace

from noonmark.attempts import outcomes
from noonmark.attempts.context import context_of
from noonmark.attempts.running_attempt import Delivery, RunningAttempt
from noonmark.core.attempt_key import attempt_key
from noonmark.core.states import Lane
from noonmark.kafka.consumers.offsets import OffsetTracker
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.messages import Signer, open_runs
from noonmark.store.cluster.pools import read_keys
from noonmark.store.runs import finish, held_runs, worker_lease
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.starts import StartRequest
from noonmark.store.runs.worker_lease import Identity
from noonmark.verify.history import Call
from noonmark.worker.engine.slot_planner import SlotPlanner
from noonmark.worker.engine.starter import Starter
from noonmark.worker.in_flight import Load, RunsInFlight
from noonmark.worker.lanes.reader import settle_records

POOL = "default"
LEASE_SECONDS = 600.0
_BEAT_SECONDS = 200.0
_RECONCILE_SECONDS = 300.0
_STOP_CHECK_SECONDS = 60.0
_NEVER = 1e12


@dataclass
class Target:
    """What the virtual handlers were called with."""

    calls: list[Call] = field(default_factory=list)


class LaneStandIn:
    """Stands for a lane's reader and its consumer: a buffer, and the offsets of the partitions that it holds."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.topic = TOPICS.runs(POOL, lane)
        self.group = TOPICS.group_worker(POOL, lane)
        self.buffer: deque[Delivery] = deque()
        self.tracker = OffsetTracker(20_000)
        self.epochs: dict[tuple[str, int], int] = {}
        self.reached: dict[tuple[str, int], int] = {}
        self.consumer = self

    def is_current(self, record: Record) -> bool:
        """Whether the partition is still held."""
        return self.tracker.is_current(record.epoch)

    def started(self, records: Sequence[Record]) -> None:
        """Note that these records were started."""
        for record in records:
            self.tracker.started(record.epoch, *_marks(record))

    def settle(self, records: Sequence[Record]) -> None:
        """Let the offsets of these records move."""
        for record in records:
            self.tracker.settled(record.epoch, *_marks(record))

    def taken(self) -> None:
        """Nothing is paused here."""

    def refuse(self, deliveries: Sequence[Delivery]) -> None:
        """No message here is forged."""
        raise AssertionError(f"forged: {deliveries}")


class Slots(SlotPlanner):
    """The shares of the lanes; the pace of runs is not measured, because simulated time has none."""

    def capacity(self, load: Load) -> int:
        """Return the number of slots."""
        del load
        return self._slots


@dataclass(eq=False)
class Handling:
    """A started run: when its handler begins and ends, and how."""

    attempt: RunningAttempt
    begins_at: float
    ends_at: float
    verdict: str
    has_begun: bool = False


class Worker(Actor):
    """One worker of the pool; `places` are the partitions that the group has given to it."""

    def start(self) -> None:
        """Begin without lease, runs and offsets; partitions are given by `assign`."""
        service = self.world.service("worker", worker_slots=12)
        self.identity = Identity(0, 0)
        self.lanes = [LaneStandIn(lane) for lane in Lane]
        self.handlings: dict[Any, Handling] = {}
        self.in_flight = RunsInFlight()
        self._starter = Starter(
            service,
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            readers=self.lanes,  # type: ignore[arg-type]
            slots=Slots(service.settings),
            in_flight=self.in_flight,
            topics=EVENTS,
            shards=self.world.shards,
        )
        self._starter._pace = NoPace()  # type: ignore[assignment]
        self._signer: Signer | None = None
        self._is_unsure = False
        self._is_lost = False
        self._renewed_at = self._beats_at = self._reconciles_at = self._checks_at = 0.0

    # what the starter calls

    def lapse(self, _worker: int) -> None:
        """The start statement found the lease lapsed: the next step finds the same."""
        self._is_lost = True
        self._beats_at = 0.0

    def submit(self, attempts: Sequence[RunningAttempt]) -> None:
        """Draw when the handlers begin and end, and how."""
        dice, now = self.world.dice, self.world.seconds
        for attempt in attempts:
            attempt.taken_at = now
            begins_at = now + dice.choice((0.0, 0.0, dice.uniform(0, 3)))
            verdict = dice.choices(("success", "fail", "hang", "final"), (84, 12, 2, 2))[0]
            seconds = dice.choice((dice.uniform(0.01, 2), dice.uniform(1, 60), dice.uniform(30, 400)))
            if seconds > attempt.timeout_seconds or verdict == "hang":
                verdict, seconds = "hang", attempt.timeout_seconds
            self.handlings[attempt.key] = Handling(attempt, begins_at, begins_at + seconds, verdict)
        self.in_flight.open(attempts)

    # what faults wait for

    def unbegun(self) -> list[Handling]:
        """Return the runs that were started and whose handlers have not begun."""
        return [handling for handling in self.handlings.values() if not handling.has_begun]

    def buffered(self) -> int:
        """Return the number of messages that were read and not started."""
        return sum(len(lane.buffer) for lane in self.lanes)

    # partitions

    def assign(self, places: Iterable[tuple[str, int]]) -> None:
        """Hold exactly these partitions; new ones are read from their committed offsets."""
        wanted = set(places)
        for lane in self.lanes:
            for place in places_of(lane.topic):
                if place not in wanted:
                    lane.tracker.drop(*place)
                    lane.epochs.pop(place, None)
                elif place not in lane.epochs:
                    lane.epochs[place] = lane.tracker.assign(*place).epoch
                    lane.reached[place] = self.world.broker.position(lane.group, place)
        self.wake(0.1)

    # a step

    def step(self, connection: psycopg.Connection) -> float:
        """Record, begin handlers, renew the lease, read, start and commit offsets, in this order.

        What a worker does before it hears of its lease goes first: one that was paused past its lease writes as a
        zombie, and must be refused; and what it had taken may not begin.
        """
        now = self.world.seconds
        self._record_due(connection, now)
        self._begin_due(connection, now)
        self._renew(connection, now)
        self._supervise(connection, now)
        self._read(connection)
        while self._starter.start_batch(connection):
            pass
        self._begin_due(connection, now)
        self._commit(now)
        return max(0.5, self._next_at() - now)

    def _next_at(self) -> float:
        ends = [h.ends_at if h.has_begun else h.begins_at for h in self.handlings.values()]
        ahead = [
            at
            for lane in self.lanes
            for place in lane.epochs
            if (at := self.world.broker.next_visible(place, lane.reached[place])) is not None
        ]
        checks = [self._checks_at, self._reconciles_at] if self.handlings else [_NEVER]
        return min([*ends, *ahead, *checks, self._beats_at])

    def _record_due(self, connection: psycopg.Connection, now: float) -> None:
        due = [h for h in self.handlings.values() if h.has_begun and h.ends_at <= now]
        if not due or not self.identity.worker:
            return
        ended = [self._outcome(handling) for handling in due]
        with connection.transaction():
            batches = self.in_flight.batches.would_end(ended)
            done = (
                finish.already_recorded(connection, self.identity, ended) if self._is_unsure else set[Any]()
            )
            fresh = [outcome for outcome in ended if outcome.run.id not in done]
            self._is_unsure = True
            recorded = finish.record(
                connection, self.identity, EVENTS, fresh, batches, shards=self.world.shards
            )
            self.world.hit("worker.before_outcome")
        self.world.hit("worker.after_outcome")
        self._is_unsure = False
        self.in_flight.batches.ended(ended)
        self._drop([handling.attempt for handling in due])
        self.world.counts["outcomes recorded"] += len(recorded.states)
        self.world.counts["zombie outcomes refused"] += len(recorded.fenced)
        self.has_news = True

    def _outcome(self, handling: Handling) -> Outcome:
        attempt = handling.attempt
        if attempt.stop_requested and handling.verdict != "success":
            return outcomes.cancelled(attempt)
        if handling.verdict == "success":
            return outcomes.succeeded(attempt, None)
        if handling.verdict == "hang":
            return outcomes.timed_out(attempt)
        if handling.verdict == "final":
            return outcomes.failed(attempt, "cannot be repeated", failure=outcomes.NO_RETRY)
        return outcomes.failed(attempt, "the virtual handler failed")

    def _drop(self, attempts: Sequence[RunningAttempt]) -> None:
        for attempt in attempts:
            self.in_flight.end([attempt.key])
            self.in_flight.remove([attempt.key])
            self.handlings.pop(attempt.key, None)
        settle_records(self.lanes, attempts)  # type: ignore[arg-type]

    def _renew(self, connection: psycopg.Connection, now: float) -> None:
        if self.identity.worker and now >= self._beats_at:
            self._beats_at = now + _BEAT_SECONDS
            if not worker_lease.beat(connection, self.identity):
                self.world.counts["leases found lost"] += 1
                if "ignores its lost lease" in self.world.flaws:
                    return
                dropped = self.in_flight.all()
                self.in_flight.clear()
                self.identity = Identity(0, 0)
                self._is_unsure = self._is_lost = False
                self._drop(dropped)
            else:
                self._renewed_at = now
        if not self.identity.worker:
            self._renewed_at, self._beats_at = now, now + _BEAT_SECONDS
            self.identity = worker_lease.register(
                connection, pool=POOL, host=self.name, pid=1, lease_seconds=LEASE_SECONDS, slots=12
            )

    def _supervise(self, connection: psycopg.Connection, now: float) -> None:
        mine = self.in_flight.all()
        if mine and now >= self._checks_at:
            self._checks_at = now + _STOP_CHECK_SECONDS
            keys = [attempt.fenced_run for attempt in mine]
            stops = set(held_runs.read_stop_requests(connection, self.identity, keys))
            for attempt in mine:
                if attempt.run.id in stops and not attempt.stop_requested:
                    attempt.stop_requested = True
                    handling = self.handlings[attempt.key]
                    handling.has_begun = True
                    handling.ends_at = min(handling.ends_at, now + 0.5)
        if now >= self._reconciles_at:
            self._reconciles_at = now + _RECONCILE_SECONDS
            self._reconcile(connection)

    def _reconcile(self, connection: psycopg.Connection) -> None:
        known = self.in_flight.batches.known()
        held = held_runs.read_worker_runs(connection, self.identity)
        mine = {attempt.key for attempt in self.in_flight.all()}
        lost = [
            (run_id, live)
            for run_id, live in held.live.items()
            if attempt_key(run_id, live.fence) not in mine
        ]
        orphans = [
            (run_id, live.scheduled_for, live.fence) for run_id, live in lost if live.state == "running"
        ]
        ended = [
            (run_id, live.scheduled_for, live.fence) for run_id, live in lost if live.state == "cancelling"
        ]
        if orphans:
            self._requeue(connection, orphans)
        if ended:
            held_runs.cancel_unowned(connection, self.identity, EVENTS, ended, shards=self.world.shards)
        done = [
            batch
            for batch, run_ids in held.batches.items()
            if batch not in known and not any(run_id in held.live for run_id in run_ids)
        ]
        if done:
            finish.delete_batches(connection, done)
        self.has_news |= bool(orphans or ended)

    def _requeue(self, connection: psycopg.Connection, runs: Sequence[held_runs.FencedRun]) -> None:
        count = held_runs.requeue_unfinished(connection, self.identity, runs).requeued
        self.world.counts["runs handed back"] += count
        self.has_news |= count > 0

    def _read(self, connection: psycopg.Connection) -> None:
        if self._signer is None:
            keys = read_keys(connection, POOL)
            self._signer = Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)
        for lane in self.lanes:
            for place, epoch in lane.epochs.items():
                records = self.world.broker.read(place, lane.reached[place], self.world.seconds, 50, epoch)
                if not records:
                    continue
                lane.reached[place] += len(records)
                tracker = lane.tracker.get(*place)
                assert tracker is not None
                tracker.polled_many([record.offset for record in records])
                for record in records:
                    runs = open_runs(record.value, self._signer).runs
                    parts = [record]
                    if len(runs) > 1:
                        tracker.split(record.offset, len(runs))
                        parts = record.parts(len(runs))
                    for run, part in zip(runs, parts, strict=True):
                        request = StartRequest(run.run_id, run.scheduled_for, run.fence)
                        lane.buffer.append(Delivery(request, part, lane.lane, run))

    def _begin_due(self, connection: psycopg.Connection, now: float) -> None:
        """Begin the handlers that are due, unless the lease may be over: then hand their runs back."""
        due = [handling for handling in self.unbegun() if handling.begins_at <= now]
        if not due or self._is_live(now) or "ignores its lost lease" in self.world.flaws:
            for handling in due:
                self._call(handling)
        elif not self._is_lost:
            unbegun = [handling.attempt for handling in due]
            self._requeue(connection, [attempt.fenced_run for attempt in unbegun])
            self.world.counts["handlers not begun under an old lease"] += len(unbegun)
            self._drop(unbegun)

    def _is_live(self, now: float) -> bool:
        """What `Lease.is_live` says."""
        return self.identity.worker != 0 and not self._is_lost and now - self._renewed_at < LEASE_SECONDS

    def _call(self, handling: Handling) -> None:
        handling.has_begun = True
        attempt = handling.attempt
        attempt.began_at = self.world.seconds
        run = attempt.run
        self.world.target.calls.append(
            Call(
                str(run.id),
                attempt.fence,
                run.attempt,
                context_of(attempt).idempotency_key,
                run.scheduled_for,
                run.namespace,
                self.world.time.now,
                int(self.name[-1]),
                returns=json.dumps(None) if handling.verdict == "success" else None,
            )
        )

    def _commit(self, now: float) -> None:
        for lane in self.lanes:
            for place in lane.epochs:
                mark = lane.tracker.mark(*place)
                offset = lane.reached[place] if "commits early" in self.world.flaws else mark and mark.offset
                if offset is not None and offset > self.world.broker.position(lane.group, place):
                    self.world.broker.commit(lane.group, place, offset, now)


def _marks(record: Record) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the offset of a whole record, or the part that a record is."""
    return ([record.offset], []) if record.part < 0 else ([], [(record.offset, record.part)])
