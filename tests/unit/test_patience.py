"""A process that hangs is found, and one that only gets little CPU is not, however long it takes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.support.patience import LOOK_MOST, Budget, Patience
from tests.support.starver import Starver

from noonmark.worker.leases.worker_time import read_state

SLEEP = "import time; time.sleep(600)"
SPIN = "while True: pass"
TICK = """
import threading, time
def tick():
    while True:
        time.sleep(0.05)
threading.Thread(target=tick, daemon=True).start()
time.sleep(600)
"""
WORK = """
import time
until = time.process_time() + 0.25
while time.process_time() < until: pass
"""


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-S", "-c", code])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(process: subprocess.Popen[bytes], patience: Patience) -> str:
    """Wait as a test waits; return why it gave up, "" if the process ended."""
    while not (why := patience.lost()):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            return ""
    return why


@pytest.mark.parametrize("code", [SLEEP, TICK])
def test_a_process_that_sleeps_is_found(code: str) -> None:
    with running(code) as process:
        patience = Patience(process.pid, 1.0, 30.0)
        assert wait_for(process, patience).startswith("was idle for")
        assert patience.used < 1


def test_a_process_that_spins_is_found() -> None:
    with running(SPIN) as process:
        patience = Patience(process.pid, 30.0, 0.2)
        assert wait_for(process, patience).startswith("used ")
        assert patience.idle < 30


def test_a_process_that_is_stopped_in_turns_is_waited_for() -> None:
    with running(WORK) as process, Starver(lambda: [process.pid], share=0.1) as starver:
        # In wall time this is long over before the process ends.
        patience, begun = Patience(process.pid, 0.5, 30.0), time.monotonic()
        assert wait_for(process, patience) == ""
        assert process.returncode == 0
        assert time.monotonic() - begun > 0.5
        assert starver.rations[process.pid].turns > 3


def test_a_process_that_stays_stopped_is_not_taken_for_hung_and_hangs_once_it_continues() -> None:
    with running(SLEEP) as process:
        process.send_signal(19)
        while read_state(process.pid) != "T":
            pass
        patience, until = Patience(process.pid, 0.3, 30.0), time.monotonic() + 1
        while time.monotonic() < until:
            assert patience.lost() == ""
        process.send_signal(18)
        assert wait_for(process, patience).startswith("was idle for")


def test_a_late_look_counts_little() -> None:
    times = iter([0.0, 0.1, 50.0, 50.2, 60.0])
    budget = Budget(2.0, clock=lambda: next(times))
    assert budget.look() == pytest.approx(0.1)
    assert budget.look() == LOOK_MOST
    assert budget.look(counts=False) == 0
    assert not budget.over
    assert budget.look() == LOOK_MOST
    assert budget.spent == pytest.approx(0.1 + 2 * LOOK_MOST)
