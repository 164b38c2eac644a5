"""The watch over real threads of a real process: who keeps the interpreter's lock is found, who does not is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from noonmark.worker.leases.shared_attempts import SharedAttempts
from noonmark.worker.leases.stuck_worker import StuckWorker

WORKER = """
import ctypes, re, sys, threading, time
from tests.unit.worker.hands import hand
from noonmark.worker.leases.shared_attempts import SharedAttempts

table = SharedAttempts(4, fd=int(sys.argv[1]))
table.start_pulse()

def run():
    attempt = hand(timeout_seconds=0.1)
    attempt.began_at = time.monotonic()
    table.enter(attempt)
    print(attempt.run.id, flush=True)
    eval(sys.argv[2])

threading.Thread(target=run, daemon=True).start()
time.sleep(600)
"""
ASLEEP = "ctypes.PyDLL(None).usleep(600_000_000)"
BUSY = "re.match('(a+)+$', 'a' * 64 + 'b')"
PATIENT = "time.sleep(600)"
ELSEWHERE = "(threading.Thread(target=re.match, args=('(a+)+$', 'a' * 64 + 'b')).start(), time.sleep(600))"


@pytest.fixture
def table() -> Iterator[SharedAttempts]:
    table = SharedAttempts(4)
    yield table
    os.close(table.fd)


@contextmanager
def overdue(table: SharedAttempts, does: str) -> Iterator[tuple[str, StuckWorker]]:
    """A real worker's thread that does something; its run, and what looks at the worker's kernel counts."""
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(table.fd), does],
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(table.fd,),
    )
    assert worker.stdout is not None
    with worker, worker.stdout:
        try:
            yield worker.stdout.readline().strip(), StuckWorker(worker.pid, table)
        finally:
            worker.kill()


def watched(table: SharedAttempts, does: str, looks: int) -> tuple[str, list[str]]:
    """Return the run of a worker's thread and what is found in so many looks."""
    with overdue(table, does) as (run_id, stuck):
        for _ in range(looks):
            if found := stuck.find(time.monotonic()):
                return run_id, [str(attempt.run_id) for attempt in found]
            time.sleep(0.1)
        return run_id, []


@pytest.mark.parametrize("does", [ASLEEP, BUSY], ids=["asleep", "busy"])
def test_a_real_thread_that_keeps_the_lock_is_found(table: SharedAttempts, does: str) -> None:
    run_id, found = watched(table, does, looks=1000)
    assert found == [run_id]


def test_a_real_thread_that_is_overdue_without_the_lock_is_not_found(table: SharedAttempts) -> None:
    assert watched(table, PATIENT, looks=40)[1] == []


@pytest.mark.slow
def test_a_worker_is_seized_by_a_thread_that_no_attempt_is_known_to_have(table: SharedAttempts) -> None:
    with overdue(table, ELSEWHERE) as (_, stuck):
        until = time.monotonic() + 300
        while not stuck.is_seized():
            # The attempt itself waits: it is not to blame.
            assert stuck.find(time.monotonic()) == []
            assert time.monotonic() < until
            time.sleep(0.1)
