"""A worker that gets little CPU has its own time; one that is stopped has none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from tests.support.starver import Starver, descendants

from noonmark.worker.leases.shared_attempts import PULSE_SECONDS, SharedAttempts
from noonmark.worker.leases.stuck_worker import ThreadSample, read_thread
from noonmark.worker.leases.worker_time import WorkerTime, read_state

WORKER = """
import sys, time
from noonmark.worker.leases.shared_attempts import SharedAttempts
SharedAttempts(4, fd=int(sys.argv[1])).start_pulse()
print("ready", flush=True)
time.sleep(600)
"""


class Kernel:
    """What the kernel would say of the thread of a pulse."""

    def __init__(self) -> None:
        self.count, self.state = 1, "S"
        self.sample: ThreadSample | None = ThreadSample("S", 100, 1.0, 0.0, 0)
        table = SharedAttempts(1)
        table.pulse = lambda: (self.count, 7)  # type: ignore[method-assign]
        self.time = WorkerTime(1, table, lambda *_: self.sample, lambda _process: self.state)

    def runs(self, *, pulses: int = 0, tries: int = 0) -> None:
        assert self.sample is not None
        self.count += pulses
        self.sample = replace(self.sample, switches=self.sample.switches + pulses + tries)


def test_a_worker_that_is_found_stopped_but_moved_since_did_not_stand_still() -> None:
    kernel = Kernel()
    kernel.state = "T"
    assert not kernel.time.stood_still()
    kernel.runs(pulses=1)
    assert not kernel.time.stood_still()
    kernel.runs(tries=3)  # it only asked for the lock
    assert not kernel.time.stood_still()
    assert kernel.time.stood_still()
    assert kernel.time.stood_still()
    kernel.state = "S"
    assert not kernel.time.stood_still()


@pytest.mark.parametrize(
    ("state", "still"), [("Z", True), ("X", True), ("", False), ("R", False), ("t", True)]
)
def test_the_state_decides_where_nothing_moves(state: str, still: bool) -> None:
    kernel = Kernel()
    kernel.time.stood_still()
    kernel.state = state
    assert kernel.time.stood_still() is still


def test_a_healthy_worker_uses_all_its_time_and_a_starved_one_little() -> None:
    kernel = Kernel()
    assert kernel.time.passed(100.0) == 0.0
    kernel.runs(pulses=40)
    assert kernel.time.passed(110.0) == 40 * PULSE_SECONDS
    kernel.runs(pulses=2)
    assert kernel.time.passed(120.0) == 2 * PULSE_SECONDS
    assert kernel.time.passed(130.0) == 0.0


def test_a_worker_whose_lock_is_seized_uses_time_as_it_asks_for_it() -> None:
    kernel = Kernel()
    kernel.time.passed(100.0)
    kernel.runs(tries=2000)
    assert kernel.time.passed(110.0) == pytest.approx(10.0)
    kernel.runs(tries=9000)
    assert kernel.time.passed(111.0) == 1.0, "never more than passed"


def test_without_counts_the_time_itself_counts() -> None:
    kernel = Kernel()
    kernel.sample = None
    kernel.time.passed(100.0)
    assert kernel.time.passed(107.0) == 7.0


def test_a_real_worker_stands_still_when_it_is_paused_and_not_when_it_is_starved() -> None:
    table = SharedAttempts(4)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(table.fd)], stdout=subprocess.PIPE, text=True, pass_fds=(table.fd,)
    )
    assert worker.stdout is not None
    with worker, worker.stdout:
        try:
            assert worker.stdout.readline()
            measured = WorkerTime(worker.pid, table)
            with Starver(lambda: [worker.pid]) as starver:
                measured.stood_still()
                looks = [look(worker.pid, measured, table) for _ in range(4)]
            assert looks == [False] * 4
            assert starver.rations[worker.pid].turns >= 1
            os.kill(worker.pid, signal.SIGSTOP)
            while (pulse := read_thread(worker.pid, table.pulse()[1])) and pulse.state != "T":
                time.sleep(0.01)
            measured.stood_still()
            assert measured.stood_still()
            assert descendants([worker.pid]) == {worker.pid}
        finally:
            worker.kill()
    os.close(table.fd)


def look(pid: int, measured: WorkerTime, table: SharedAttempts) -> bool:
    """Look once the worker has counted again, at a moment at which it is stopped."""
    before = table.pulse()
    while table.pulse() == before:
        time.sleep(0.01)
    while read_state(pid) != "T":
        time.sleep(0.001)
    return measured.stood_still()
