"""The path of runs through an installation: claim, relay, start and record as loops on a simulated machine.

Each loop does what the service does: it takes what is there, up to its limit, and paces itself. The loops
wait for commits and for the broker, share cores, and hand on whole batches.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.fleet.costs import Cost, Delay
from benchmarks.fleet.machine import Cpu, Loop, Machine, ModelError, Signal, Wait

PARTS: Final = ("trigger", "claim", "hint", "dispatcher", "relay", "kafka", "worker", "start", "record")
"""Parts with a cost for each batch: the services, the broker, and the sessions of Postgres."""

PARTITIONS: Final = 6
"""Of a lane, unless more are created."""

_SMALL_ROUND: Final = 8
_SMALL_STRETCH: Final = 3.0
_START_PAUSE: Final = 0.005
_RECORD_PAUSE: Final = 0.01
_BURST_SECONDS: Final = 0.02
_HINT_PAUSE: Final = 0.005
_RATE_SECONDS: Final = 0.05
_SMOOTHING_SECONDS: Final = 0.5
_WINDOW_SECONDS: Final = 0.1
_TOLERANCE: Final = 1e-9

_START, _OUTCOME = 0.25, 0.5
"""Shares of the worker's CPU: before and after the start statement, and for outcomes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the services that bound batches; the shipped defaults."""

    claim_batch: int = 1000
    claim_pause: float = 0.015
    relay_batch: int = 1000
    slots: int = 256
    high_reserve: float = 0.1
    most: int = 1000


@dataclass(frozen=True, slots=True)
class Path:
    """What the path costs, and how many processes of each kind serve it.

    Attributes:
        costs: of each of `PARTS`, microseconds.
        commit: the time of a flush of the log of transactions; one at a time serves all that wait for it.
        trip: the wait from sending a message until a worker has it.
        partitions: of a lane; a batch of the relay is a message to each.
        others: cores that the rest of the machine uses, in bursts.
    """

    costs: Mapping[str, Cost]
    commit: Delay
    trip: Delay
    others: float = 0.0
    triggers: int = 1
    dispatchers: int = 1
    workers: int = 1
    partitions: int = PARTITIONS
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if missing := [part for part in PARTS if part not in self.costs]:
            raise ModelError(f"no cost is known of {', '.join(missing)}")
        if min(self.triggers, self.dispatchers, self.workers) < 1:
            raise ModelError("an installation needs a process of each kind")


@dataclass(slots=True)
class Passed:
    """What the simulated runs did.

    Attributes:
        late: seconds from the due instant to the start, in the order of starts.
        done: runs with a recorded outcome.
        left: runs without one at the end.
        last: when the last outcome was recorded, seconds.
        stay: seconds from due instant to outcome, summed over the runs that are done.
        outcomes: the time and the runs of each record.
        batches: of each stage.
        seconds: of all claims and relay rounds, with their commits.
        cpu: core-seconds by part.
    """

    late: list[float] = field(default_factory=list)
    done: int = 0
    left: int = 0
    last: float = 0.0
    stay: float = 0.0
    outcomes: list[tuple[float, int]] = field(default_factory=list)
    batches: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("claim", "relay", "start", "record"), 0)
    )
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("claim", "relay"), 0.0))
    cpu: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))


def simulate(path: Path, due: Sequence[float], *, cores: float, until: float, seed: int = 1) -> Passed:
    """Let runs that are due at these instants pass; instants in rising order, from 0.

    Args:
        path: costs, waits and processes.
        due: due instants, seconds.
        cores: of the whole machine that the runs can use.
        until: simulated seconds.
        seed: of the waits.

    Raises:
        ModelError: the input makes no sense.
    """
    if any(later < earlier for earlier, later in itertools.pairwise(due)):
        raise ModelError("due instants must rise")
    return _Simulation(path, due, cores, seed).run(until)


class _Simulation:
    def __init__(self, path: Path, due: Sequence[float], cores: float, seed: int) -> None:
        self._path = path
        self._due = len(due)
        self._machine = Machine(cores)
        self._random = random.Random(seed)
        self.passed = Passed()
        self.committing: list[Signal] = []
        self.flush = Signal()
        self.timers = [deque(due[index :: path.triggers]) for index in range(path.triggers)]
        self.outbox = [_Queue() for _ in range(path.dispatchers)]
        self.workers = [_Worker(path.limits) for _ in range(path.workers)]

    def run(self, until: float) -> Passed:
        loops: list[Loop] = [self._flush(), *(self._hint(outbox) for outbox in self.outbox)]
        loops += [self._claim(index) for index in range(self._path.triggers)]
        loops += [self._relay(index) for index in range(self._path.dispatchers)]
        if self._path.others:
            loops.append(self._others())
        for index in range(self._path.workers):
            loops += [self._start(index), self._record(index)]
        for loop in loops:
            self._machine.start(loop)
        self._machine.run(until)
        self.passed.left = self._due - self.passed.done
        return self.passed

    def _cpu(self, part: str, runs: int, share: float = 1.0, process: str | None = None) -> Cpu:
        seconds = share * self._path.costs[part].seconds(runs)
        self.passed.cpu[part] += seconds
        return Cpu(seconds, process)

    def _commit(self) -> Signal:
        """Wait until the log is flushed by a flush that begins later than now."""
        done = Signal()
        self.committing.append(done)
        self._machine.set(self.flush)
        return done

    def _others(self) -> Loop:
        """Take whole cores in bursts, and as many on average as the others use."""
        whole, share = divmod(self._path.others, 1.0)
        self._machine.take(whole)
        while share:
            self._machine.take(1.0)
            yield Wait(self._random.expovariate(1 / _BURST_SECONDS))
            self._machine.take(-1.0)
            yield Wait(self._random.expovariate(share / (1 - share) / _BURST_SECONDS))

    def _flush(self) -> Loop:
        while True:
            if not self.committing:
                yield self.flush
                continue
            served, self.committing = self.committing, []
            yield Wait(self._path.commit.draw(self._random))
            for done in served:
                self._machine.set(done)

    def _claim(self, index: int) -> Loop:
        timers, limits = self.timers[index], self._path.limits
        while timers:
            began = self._machine.now
            batch = _due(timers, began, limits.claim_batch)
            if not batch:
                yield Wait(timers[0] - began)
                continue
            yield self._cpu("trigger", len(batch), process=f"trigger{index}")
            asked = self._machine.now
            yield self._cpu("claim", len(batch))
            yield self._commit()
            self._count("claim", asked)
            self._hand_on(batch, self.outbox, lambda outbox: outbox.hint)
            stretch = _SMALL_STRETCH if len(batch) < _SMALL_ROUND else 1.0
            yield Wait(began + limits.claim_pause * stretch - self._machine.now)

    def _relay(self, index: int) -> Loop:
        outbox, process = self.outbox[index], f"dispatcher{index}"
        while True:
            batch = outbox.take(self._path.limits.relay_batch)
            if not batch:
                yield outbox.signal
                continue
            began = self._machine.now
            yield self._cpu("relay", len(batch), 0.5)
            yield self._cpu("dispatcher", len(batch), process=process)
            self._machine.start(self._broker(len(batch)))
            yield Wait(max(self._send(batch)))
            yield self._cpu("relay", len(batch), 0.5)
            yield self._commit()
            self._count("relay", began)

    def _send(self, batch: list[float]) -> list[float]:
        """Send a message to each partition; return the seconds until they are there."""
        trips = []
        for number in range(self._path.partitions):
            if runs := batch[number :: self._path.partitions]:
                trips.append(self._path.trip.draw(self._random))
                self._machine.start(
                    self._arrive(runs, self.workers[number % len(self.workers)].buffer, trips[-1])
                )
        return trips

    def _arrive(self, runs: list[float], buffer: _Queue, seconds: float) -> Loop:
        yield Wait(seconds)
        self._hand_on(runs, [buffer], lambda queue: queue.signal)

    def _broker(self, runs: int) -> Loop:
        yield self._cpu("kafka", runs)

    def _start(self, index: int) -> Loop:
        worker, process = self.workers[index], f"worker{index}"
        began = -1.0
        while True:
            if not worker.buffer.runs:
                yield worker.buffer.signal
            yield Wait(began + _START_PAUSE - self._machine.now)
            batch = worker.pick(self._machine.now)
            if not batch:
                if worker.buffer.runs:
                    yield worker.room
                continue
            began = self._machine.now
            yield self._cpu("worker", len(batch), _START, process)
            self.passed.late += [self._machine.now - due for due in batch]
            yield self._cpu("start", len(batch))
            yield self._commit()
            yield self._cpu("worker", len(batch), _START, process)
            self.passed.batches["start"] += 1
            self._hand_on(batch, [worker.outcomes], lambda outcomes: outcomes.signal)

    def _record(self, index: int) -> Loop:
        worker, process = self.workers[index], f"worker{index}"
        began = -1.0
        while True:
            if not worker.outcomes.runs:
                yield worker.outcomes.signal
            yield Wait(began + _RECORD_PAUSE - self._machine.now)
            began = self._machine.now
            batch = worker.outcomes.take(self._path.limits.most)
            if not batch:
                continue
            yield self._cpu("worker", len(batch), _OUTCOME, process)
            yield self._cpu("record", len(batch))
            yield self._commit()
            self._recorded(batch)
            worker.recorded(len(batch))
            self._machine.set(worker.room)

    def _count(self, stage: str, began: float) -> None:
        self.passed.batches[stage] += 1
        self.passed.seconds[stage] += self._machine.now - began

    def _recorded(self, batch: Sequence[float]) -> None:
        now = self._machine.now
        self.passed.batches["record"] += 1
        self.passed.done += len(batch)
        self.passed.last = now
        self.passed.outcomes.append((now, len(batch)))
        self.passed.stay += sum(now - due for due in batch)

    def _hand_on(
        self, batch: list[float], queues: Sequence[_Queue], wakes: Callable[[_Queue], Signal]
    ) -> None:
        """Divide a batch over the queues of the next stage."""
        for index, queue in enumerate(queues):
            if part := batch[index :: len(queues)]:
                queue.runs.extend(part)
                self._machine.set(wakes(queue))

    def _hint(self, outbox: _Queue) -> Loop:
        """Wake the dispatcher when there are rows: a notification, and then none for a moment."""
        while True:
            yield outbox.hint
            yield self._cpu("hint", 0)
            self._machine.set(outbox.signal)
            yield Wait(_HINT_PAUSE)


@dataclass(slots=True)
class _Queue:
    runs: deque[float] = field(default_factory=deque)
    signal: Signal = field(default_factory=Signal)
    hint: Signal = field(default_factory=Signal)

    def take(self, most: int) -> list[float]:
        return [self.runs.popleft() for _ in range(min(most, len(self.runs)))]


class _Worker:
    """A worker's buffer, slots and outcomes, with the rule that decides how many runs start ahead."""

    def __init__(self, limits: Limits) -> None:
        self.buffer = _Queue()
        self.outcomes = _Queue()
        self.room = Signal()
        self._limits = limits
        self._in_flight = self._done = 0
        self._rate = self._measured_at = 0.0

    def recorded(self, runs: int) -> None:
        self._in_flight -= runs
        self._done += runs

    def pick(self, now: float) -> list[float]:
        """Take the runs of the next start."""
        slots, capacity = self._limits.slots, self._capacity(now)
        free = min(capacity - self._in_flight, self._limits.most)
        ahead = self._in_flight >= slots
        if free <= 0 or (ahead and free < min(capacity, self._limits.most) // 2):
            return []
        # A share of the slots is kept for the high lane, and these runs are of a lower one.
        lower = capacity - int(capacity * self._limits.high_reserve) - self._in_flight
        batch = self.buffer.take(max(0, min(free, lower)))
        self._in_flight += len(batch)
        return batch

    def _capacity(self, now: float) -> int:
        elapsed = now - self._measured_at
        if elapsed >= _RATE_SECONDS:
            weight = min(1.0, elapsed / _SMOOTHING_SECONDS)
            self._rate += (self._done / elapsed - self._rate) * weight
            self._done, self._measured_at = 0, now
        return max(self._limits.slots, min(int(self._rate * _WINDOW_SECONDS), 10 * self._limits.slots))


def _due(timers: deque[float], now: float, most: int) -> list[float]:
    batch: list[float] = []
    while timers and timers[0] <= now + _TOLERANCE and len(batch) < most:
        batch.append(timers.popleft())
    return batch
