"""Sync handlers on threads: short ones share one, blocking ones fan out, stuck ones are replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from tests.unit.worker.hands import hand, success

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.finish import Outcome
from noonmark.worker.handlers.threads import ThreadExecutor

PATIENCE = 60


class Gauge:
    """What handlers do: they are counted, may wait for a gate, and tell on which thread they ran."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.blocking = False
        self.threads: set[int] = set()
        self.outcomes: list[Outcome] = []
        self.batches: list[int] = []
        self._all = threading.Condition()

    def execute(self, held: RunningAttempt) -> Outcome | None:
        self.threads.add(threading.get_ident())
        self.entered.release()
        if self.blocking:
            assert self.gate.wait(PATIENCE)
        return success(held)

    def done(self, outcomes) -> None:
        with self._all:
            self.outcomes += outcomes
            self.batches.append(len(outcomes))
            self._all.notify_all()

    def wait_for(self, count: int) -> None:
        with self._all:
            assert self._all.wait_for(lambda: len(self.outcomes) >= count, PATIENCE)

    def wait_for_entries(self, count: int) -> None:
        for _ in range(count):
            assert self.entered.acquire(timeout=PATIENCE)


@pytest.fixture
def gauge() -> Iterator[Gauge]:
    gauge = Gauge()
    yield gauge
    gauge.gate.set()


@pytest.fixture
def make(gauge: Gauge):
    made: list[ThreadExecutor] = []

    def make(limit: int, execute=gauge.execute) -> ThreadExecutor:
        made.append(ThreadExecutor(limit, execute, gauge.done))
        return made[-1]

    yield make
    gauge.gate.set()
    for executor in made:
        executor.close()


def hands(count: int) -> list[RunningAttempt]:
    return [hand() for _ in range(count)]


def until(condition) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at, "it never became true"
        threading.Event().wait(0.001)


def threads_of(executor: ThreadExecutor) -> set[int]:
    return set(executor.running)


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def tend_until(executor: ThreadExecutor, condition) -> None:
    """Look after the executor as the engine does."""

    def tended() -> bool:
        executor.tend()
        return condition()

    until(tended)


def test_short_handlers_run_on_one_thread_and_are_told_in_batches(gauge, make):
    executor = make(64)
    executor.submit(hands(1000))
    gauge.wait_for(1000)

    assert len(gauge.threads) == 1
    assert len(gauge.batches) < 500
    assert executor.waiting == 0
    assert executor.running == {}


def test_batches_that_come_while_the_thread_is_at_work_start_no_others(gauge, make, monkeypatch):
    # The thread has begun its run just now, however long the machine takes for the batches that follow.
    monkeypatch.setattr("noonmark.worker.handlers.threads.time.monotonic", lambda: 1.0)
    gauge.blocking = True
    executor = make(64)
    executor.submit(hands(50))
    gauge.wait_for_entries(1)
    for _ in range(99):
        executor.submit(hands(50))
    gauge.gate.set()
    gauge.wait_for(5000)

    assert len(gauge.threads) == 1


def test_a_handler_that_waits_for_the_gil_is_no_reason_for_another_thread(gauge, make, monkeypatch):
    # No time passes: the handler has just begun, although the queue does not move.
    monkeypatch.setattr("noonmark.worker.handlers.threads.time.monotonic", lambda: 1.0)
    gauge.blocking = True
    executor = make(64)
    executor.submit(hands(50))
    gauge.wait_for_entries(1)
    for _ in range(100):
        executor.tend()
    assert len(threads_of(executor)) == 1

    # It takes long: others run what is behind it.
    monkeypatch.setattr("noonmark.worker.handlers.threads.time.monotonic", lambda: 1.01)
    tend_until(executor, lambda: len(gauge.threads) == 50)


def test_a_thread_that_is_missing_is_started_soon(gauge, make, monkeypatch):
    now = [1.0]
    monkeypatch.setattr("noonmark.worker.handlers.threads.time.monotonic", lambda: now[0])
    executor = make(4)
    with monkeypatch.context() as none:
        none.setattr(threading.Thread, "start", no_thread)
        executor.submit(hands(3))
        executor.tend()
    assert gauge.outcomes == []

    now[0] += 0.1
    executor.tend()
    gauge.wait_for(3)


def test_runs_that_come_in_behind_a_blocking_one_are_not_forgotten(gauge, make):
    executor = make(4)
    gauge.blocking = True
    executor.submit(hands(1))
    gauge.wait_for_entries(1)
    gauge.blocking = False
    executor.submit(hands(10))

    tend_until(executor, lambda: executor.waiting == 0)
    gauge.wait_for(10)


def test_each_run_is_executed_once_and_told_once(gauge, make):
    executor = make(8)
    batch = hands(400)
    executor.submit(batch)
    gauge.wait_for(400)

    assert sorted(o.run.id for o in gauge.outcomes) == sorted(held.run.id for held in batch)


def test_a_blocking_handler_does_not_hold_up_the_runs_behind_it(gauge, make):
    executor = make(32)
    gauge.blocking = True
    executor.submit(hands(32))

    tend_until(executor, lambda: len(gauge.threads) == 32)

    assert executor.waiting == 0
    assert len(executor.running) == 32
    gauge.gate.set()
    gauge.wait_for(32)


def test_no_more_threads_than_the_limit_are_started(gauge, make):
    executor = make(4)
    gauge.blocking = True
    executor.submit(hands(20))
    tend_until(executor, lambda: len(executor.running) == 4)
    for _ in range(50):
        executor.tend()

    assert len(gauge.threads) == 4
    assert executor.waiting == 16
    gauge.gate.set()
    gauge.wait_for(20)
    assert len(gauge.threads) == 4


def test_short_handlers_of_which_one_was_held_up_still_count_as_short(gauge, make):
    executor = make(64)
    executor.submit(hands(20))
    gauge.wait_for(20)
    gauge.blocking = True
    executor.submit(hands(1))
    gauge.wait_for_entries(1)
    time.sleep(0.1)  # as long as the handler is held up: it is measured
    gauge.gate.set()
    gauge.wait_for(21)

    # Longer, and the next batch would wake a thread for each of its runs.
    assert executor._average_seconds < 0.001


def test_handlers_that_were_slow_get_a_thread_each_at_once(gauge, make):
    executor = make(16)
    gauge.blocking = True
    executor.submit(hands(1))
    gauge.wait_for_entries(1)
    # The average of what handlers take has to be felt, not seen.
    executor._average_seconds = 1.0
    executor.submit(hands(8))
    gauge.wait_for_entries(8)

    assert len(executor.running) == 9


def test_idle_threads_are_used_again(gauge, make):
    executor = make(8)
    gauge.blocking = True
    executor.submit(hands(8))
    tend_until(executor, lambda: len(executor.running) == 8)
    gauge.gate.set()
    gauge.wait_for(8)
    until(lambda: executor._idle == 8)
    executor._average_seconds = 1.0
    executor.submit(hands(8))
    gauge.wait_for(16)

    assert len(gauge.threads) == 8


def test_what_no_thread_has_begun_can_be_withdrawn(gauge, make):
    executor = make(1)
    gauge.blocking = True
    first, *rest = hands(6)
    executor.submit([first])
    gauge.wait_for_entries(1)
    executor.submit(rest)

    assert executor.withdraw() == rest
    assert executor.withdraw() == []
    gauge.gate.set()
    gauge.wait_for(1)
    assert [o.run.id for o in gauge.outcomes] == [first.run.id]


def test_threads_that_hang_are_replaced_so_that_slots_stay_usable(gauge, make):
    executor = make(2)
    gauge.blocking = True
    executor.submit(hands(2))
    tend_until(executor, lambda: len(executor.running) == 2)
    stuck = list(executor.running.values())
    assert all(held.began_at > 0 for held in stuck)
    gauge.blocking = False
    executor.submit(hands(3))
    for _ in range(20):
        executor.tend()
    assert executor.waiting == 3

    executor.replace_stuck(stuck)

    tend_until(executor, lambda: executor.waiting == 0)
    gauge.wait_for(3)
    assert set(map(id, stuck)) == {id(held) for held in executor.running.values()}

    gauge.gate.set()
    gauge.wait_for(5)
    until(lambda: executor.running == {})
    assert executor.limit == 2


def test_a_run_that_somebody_else_ended_is_told_by_nobody(gauge, make):
    nothing = threading.Event()

    def execute(held: RunningAttempt) -> Outcome | None:
        if not nothing.is_set():
            nothing.set()
            return None
        return success(held)

    executor = make(1, execute)
    executor.submit(hands(3))
    gauge.wait_for(2)
    until(lambda: executor.running == {})

    assert len(gauge.outcomes) == 2


def test_a_finished_run_is_told_although_the_next_one_blocks_its_thread(gauge, make):
    """The outcome of a fast run must not wait for a slow one that the same thread took next."""
    second = threading.Event()

    def execute(held: RunningAttempt) -> Outcome | None:
        if held.run.handler == "slow":
            second.set()
            assert gauge.gate.wait(PATIENCE)
        return success(held)

    executor = make(1, execute)
    executor.submit([hand(handler="fast"), hand(handler="slow")])
    assert second.wait(PATIENCE)

    tend_until(executor, lambda: len(gauge.outcomes) == 1)

    gauge.gate.set()
    gauge.wait_for(2)
    assert [o.run.handler for o in gauge.outcomes] == ["fast", "slow"]


def test_a_closed_executor_lets_its_idle_threads_go(gauge, make):
    executor = make(4)
    executor.submit(hands(1))
    gauge.wait_for(1)
    until(lambda: executor._idle == 1)

    executor.close()

    until(lambda: executor._threads == 0)


def test_a_lack_of_threads_delays_runs_and_costs_no_place(gauge, make, monkeypatch):
    gauge.blocking = True
    executor = make(2)
    start = threading.Thread.start

    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    executor.submit(hands(2))
    executor.tend()
    assert executor.waiting == 2

    monkeypatch.setattr(threading.Thread, "start", start)
    tend_until(executor, lambda: len(executor.running) == 2)
    gauge.gate.set()
    gauge.wait_for(2)
