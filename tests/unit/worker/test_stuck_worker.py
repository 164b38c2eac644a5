"""A worker whose interpreter is seized, and workers that only look like it."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from tests.unit.worker.hands import hand

from noonmark.worker.leases.shared_attempts import SharedAttempts
from noonmark.worker.leases.stuck_worker import SEIZED_TRIES, TRIES, StuckWorker, ThreadSample, read_thread

PULSE, HANDLER = 7, 8
IDLE = ThreadSample("S", 1000, 10.0, 5.0, 0)


class Kernel:
    """What the kernel would say of the two threads of a worker with one overdue attempt."""

    def __init__(self, *, attempts: int = 1) -> None:
        self.threads = {PULSE: IDLE, HANDLER: IDLE}
        self.table = SharedAttempts(4)
        self.count = 1
        self.table.pulse = lambda: (self.count, PULSE)  # type: ignore[method-assign]
        self.table.overdue = lambda now: self._overdue[:attempts]  # type: ignore[method-assign]
        attempt = hand(timeout_seconds=1.0)
        attempt.began_at = 1.0
        own = SharedAttempts(4)
        own.enter(attempt)
        self._overdue = [replace(found, thread=HANDLER) for found in own.overdue(100.0)]
        self.run_id = attempt.run.id
        self.stuck = StuckWorker(
            1,
            self.table,
            lambda _process, thread: self.threads.get(thread),
            lambda _process: list(self.threads),
        )
        assert self.stuck.find(100.0) == []

    def passes(self, *, pulse: int = TRIES, **handler: float) -> list[object]:
        """Let the pulse ask so often for the lock; `handler` is what is added to the handler's counts."""
        assert self.stuck.find(100.0) == []
        self.threads[PULSE] = replace(self.threads[PULSE], switches=self.threads[PULSE].switches + pulse)
        before = self.threads[HANDLER]
        changed = {name: getattr(before, name) + more for name, more in handler.items() if name != "state"}
        self.threads[HANDLER] = replace(before, **changed)
        return [attempt.run_id for attempt in self.stuck.find(100.0)]


def test_an_overdue_thread_that_sleeps_with_the_lock_is_found() -> None:
    kernel = Kernel()
    assert kernel.passes() == [kernel.run_id]


def test_an_overdue_thread_that_computes_with_the_lock_is_found_on_a_busy_machine_too() -> None:
    kernel = Kernel()
    assert kernel.passes(cpu_seconds=2.1, wait_seconds=30.0, switches=3) == [kernel.run_id]


@pytest.mark.parametrize(
    ("pulse", "handler"),
    [
        pytest.param(TRIES - 1, {}, id="the pulse has not asked often enough"),
        pytest.param(0, {}, id="the process is stopped and does not ask"),
        pytest.param(TRIES, {"switches": TRIES - 5}, id="the thread waits for the lock itself"),
        pytest.param(TRIES, {"cpu_seconds": 0.3, "wait_seconds": 9.0}, id="the thread gets no CPU"),
        pytest.param(TRIES, {"major_faults": 40}, id="its memory is read back from a disk"),
    ],
)
def test_a_worker_that_is_starved_stopped_or_swapped_out_is_not_found(
    pulse: int, handler: dict[str, float]
) -> None:
    assert Kernel().passes(pulse=pulse, **handler) == []


def test_a_thread_that_waits_for_a_disk_is_not_found() -> None:
    kernel = Kernel()
    kernel.threads[HANDLER] = replace(IDLE, state="D")
    assert kernel.passes() == []


def test_a_pulse_that_moves_starts_the_count_again() -> None:
    kernel = Kernel()
    assert kernel.passes(pulse=TRIES - 1) == []
    kernel.count += 1
    assert kernel.stuck.find(100.0) == []
    assert kernel.passes(pulse=TRIES - 1) == []
    assert kernel.passes(pulse=1) == [kernel.run_id]


def test_nothing_is_found_without_an_overdue_attempt_or_where_the_kernel_shows_no_counts() -> None:
    assert Kernel(attempts=0).passes() == []
    hidden = Kernel()
    hidden.threads.clear()
    assert hidden.stuck.find(100.0) == []


def test_attempts_are_overdue_after_timeout_and_grace_until_they_leave() -> None:
    table = SharedAttempts(2, grace_seconds=5.0)
    attempt = hand(timeout_seconds=10.0)
    attempt.began_at = 100.0
    slot = table.enter(attempt)
    assert table.overdue(114.9) == []
    (found,) = SharedAttempts(2, fd=table.fd).overdue(115.1)
    assert (found.run_id, found.thread) == (attempt.run.id, threading.get_native_id())
    table.leave(slot)
    assert table.overdue(1000.0) == []


def test_attempts_beyond_the_table_are_not_watched_and_harm_nothing() -> None:
    table = SharedAttempts(1)
    place, none = table.enter(hand()), table.enter(hand())
    assert place >= 0
    assert none == -1
    table.leave(none)
    table.leave(place)
    assert table.enter(hand()) == place


def test_the_counts_of_a_real_thread_are_read() -> None:
    mine = read_thread(os.getpid(), threading.get_native_id())
    assert mine is not None
    assert mine.state == "R"
    assert mine.cpu_seconds > 0
    assert read_thread(os.getpid(), 2**22 + 5) is None


def asks(kernel: Kernel, tries: int, **handler: int | str) -> bool:
    """Let the pulse ask so often in vain, and a thread change; return whether the worker counts as seized."""
    kernel.stuck.find(100.0)
    kernel.stuck.is_seized()
    kernel.threads[PULSE] = replace(kernel.threads[PULSE], switches=kernel.threads[PULSE].switches + tries)
    kernel.threads[HANDLER] = replace(kernel.threads[HANDLER], **handler)  # type: ignore[arg-type]
    kernel.stuck.find(100.0)
    return kernel.stuck.is_seized()


def test_whoever_keeps_the_lock_for_long_the_worker_is_seized() -> None:
    kernel = Kernel(attempts=0)
    assert not asks(kernel, SEIZED_TRIES - 1)
    assert asks(kernel, 1)


def test_a_worker_whose_pulse_moves_or_whose_memory_is_read_back_is_not_seized() -> None:
    kernel = Kernel(attempts=0)
    assert not asks(kernel, SEIZED_TRIES - 1)
    kernel.count += 1
    assert not asks(kernel, SEIZED_TRIES - 1)
    assert not asks(kernel, SEIZED_TRIES, major_faults=1)
    assert not asks(kernel, SEIZED_TRIES, state="D")
    assert asks(kernel, SEIZED_TRIES, state="S")


def test_the_threads_of_a_worker_whose_pulse_beats_are_not_read() -> None:
    kernel = Kernel(attempts=0)
    read: list[int] = []

    def read_counts(_process: int, thread: int) -> ThreadSample | None:
        read.append(thread)
        return kernel.threads.get(thread)

    stuck = StuckWorker(1, kernel.table, read_counts, lambda _process: list(kernel.threads))
    for _ in range(5):
        kernel.count += 1
        assert stuck.find(100.0) == []
        assert not stuck.is_seized()
    assert read == []

    assert stuck.find(100.0) == []
    assert not stuck.is_seized()
    assert HANDLER in read
