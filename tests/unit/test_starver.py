"""The starver reaches processes that start while it works, and gives all of them their CPU back."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests.support.starver import Starver, descendants

from noonmark.worker.leases.worker_time import read_state

PARENT = """
import subprocess, sys, time
print("ready", flush=True)
sys.stdin.readline()
with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as child:
    print(child.pid, flush=True)
"""


def wait(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.001)


def test_a_process_and_its_later_child_are_starved_and_then_continue() -> None:
    command = [sys.executable, "-S", "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline()
            with Starver(lambda: [parent.pid]) as starver:
                parent.stdin.write("\n")
                parent.stdin.flush()
                child = int(parent.stdout.readline())
                wait(lambda: starver.rations.keys() >= {parent.pid, child})
                for pid in (parent.pid, child):
                    wait(lambda: starver.rations[pid].turns > 2)  # noqa: B023
                    wait(lambda: read_state(pid) == "T")  # noqa: B023
            assert descendants([parent.pid]) == {parent.pid, child}
            for pid in (parent.pid, child):
                wait(lambda: read_state(pid) == "S")  # noqa: B023
            assert 0 < starver.share < 0.5
            assert starver.seconds > 0
        finally:
            for pid in descendants([parent.pid]):
                subprocess.run(["kill", "-9", str(pid)], check=True)


@pytest.mark.parametrize("roots", [[], [2**22 + 5]])
def test_processes_that_are_gone_are_no_error(roots: list[int]) -> None:
    with Starver(lambda: roots) as starver:
        pass
    assert starver.rations == {}
    assert starver.share == 0.0
