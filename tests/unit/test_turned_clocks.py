"""A preloaded library turns the wall clock of one process while it runs, and no other clock."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.clocks import turned
from tests.support.clocks.turned import NoCompilerError, TurnedClock, compile_library

COARSE = 5
"""CLOCK_REALTIME_COARSE, by which handlers of the tests date their calls."""

ANSWER = f"""
import datetime, json, sys, time
for _ in sys.stdin:
    print(json.dumps({{
        "time": time.time(),
        "date": datetime.datetime.now(datetime.UTC).timestamp(),
        "monotonic": time.monotonic(),
        "boot": time.clock_gettime(time.CLOCK_BOOTTIME),
        "coarse": time.clock_gettime({COARSE}),
    }}), flush=True)
"""

WAIT = """
import ctypes, errno, os, time
libc = ctypes.CDLL(None)
class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("ns", ctypes.c_long)]
def soon():
    return ctypes.byref(Timespec(*divmod(time.time_ns() + 20_000_000, 10**9)))
condition, mutex, semaphore = (ctypes.create_string_buffer(64) for _ in range(3))
libc.pthread_mutex_lock(mutex)
assert libc.pthread_cond_timedwait(condition, mutex, soon()) == errno.ETIMEDOUT
assert libc.pthread_mutex_timedlock(mutex, soon()) == errno.ETIMEDOUT
assert libc.sem_timedwait(semaphore, soon()) == -1
THRD_TIMEDOUT, MTX_TIMED = 4, 2
condition, mutex, locked = (ctypes.create_string_buffer(64) for _ in range(3))
libc.mtx_init(locked, MTX_TIMED)
libc.mtx_lock(locked)
assert libc.mtx_timedlock(locked, soon()) == THRD_TIMEDOUT
libc.cnd_init(condition)
libc.mtx_init(mutex, MTX_TIMED)
libc.mtx_lock(mutex)
assert libc.cnd_timedwait(condition, mutex, soon()) == THRD_TIMEDOUT
"""

POLL = """
from confluent_kafka import Consumer
Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "any", "log_level": 0}).poll(0.2)
"""

TIMED_WAITS = re.compile(
    r" U ((?:pthread_\w*(?:timed|clock)\w*(?:wait|lock|rdlock|wrlock|join_np)|sem_(?:timed|clock)wait|cnd_timedwait"
    r"|mtx_timedlock|mq_timed\w+))(?:@|$)",
    re.MULTILINE,
)
"""Functions that wait until an instant, by default of the wall clock, in the output of nm."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return compile_library(tmp_path_factory.mktemp("clock"))
    except NoCompilerError as error:
        pytest.skip(str(error))


@pytest.fixture
def clock(library: Path, tmp_path: Path) -> TurnedClock:
    return TurnedClock(library, tmp_path / "clock")


class Asked:
    """A process that says what its clocks show."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ahead(self) -> dict[str, float]:
        """By how much each of its clocks is ahead of the same clock here, in whole seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = shown()
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return {name: round(told[name] - (before[name] + shown()[name]) / 2) for name in before}


def shown() -> dict[str, float]:
    return {
        "time": time.time(),
        "date": time.time(),
        "monotonic": time.monotonic(),
        "boot": time.clock_gettime(time.CLOCK_BOOTTIME),
        "coarse": time.time(),
    }


@contextmanager
def asked(environment: dict[str, str]) -> Iterator[Asked]:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", ANSWER],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Asked(process)
        assert process.stdin is not None
        process.stdin.close()


def test_the_wall_clock_of_one_process_is_turned_there_and_back_and_no_other_clock(
    clock: TurnedClock,
) -> None:
    true = dict.fromkeys(shown(), 0)
    with asked(clock.environment) as turned_one, asked({}) as other:
        assert turned_one.ahead() == true
        for seconds in (300, -300, 4000, 0):
            clock.turn(seconds)
            assert turned_one.ahead() == true | {"time": seconds, "date": seconds}
            assert other.ahead() == true


def test_children_inherit_the_clock_and_the_environment_is_put_back(clock: TurnedClock) -> None:
    before = dict(os.environ)
    clock.turn(-90)
    with clock.inherited(), asked({}) as child:
        assert child.ahead()["time"] == -90
    assert dict(os.environ) == before


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_wait_until_an_instant_of_the_turned_clock_is_as_long_as_it_says(
    clock: TurnedClock, seconds: float
) -> None:
    clock.turn(seconds)
    command = [sys.executable, "-S", "-c", WAIT]
    subprocess.run(command, env={**os.environ, **clock.environment}, check=True, timeout=60)


def test_a_client_of_kafka_polls_for_as_long_as_it_was_told_while_its_clock_is_ahead(
    clock: TurnedClock,
) -> None:
    clock.turn(7200)
    environment = {**os.environ, **clock.environment}
    # Closing the client has waits of its own: none of them may last two hours either.
    subprocess.run([sys.executable, "-c", POLL], env=environment, check=True, timeout=60)


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm, of the binutils, is not installed")
def test_every_timed_wait_that_a_library_of_the_environment_calls_is_turned() -> None:
    environment = Path(sysconfig.get_path("platlib"))
    binaries = [*environment.rglob("*.so"), *environment.rglob("*.so.*"), Path(sys.executable).resolve()]
    command = ["nm", "-D", "--undefined-only", *map(str, binaries)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    called = set(TIMED_WAITS.findall(listed))
    assert "cnd_timedwait" in called  # of librdkafka
    source = turned.SOURCE.read_text()
    assert [name for name in sorted(called) if f"\nint {name}(" not in source] == []


def test_without_a_compiler_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoCompilerError, match="there is no C compiler"):
        compile_library(tmp_path)
    monkeypatch.undo()
    (tmp_path / "bad.c").write_text("what")
    monkeypatch.setattr(turned, "SOURCE", tmp_path / "bad.c")
    with pytest.raises(NoCompilerError):
        compile_library(tmp_path)
