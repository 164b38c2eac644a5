"""A reaper: one process per child, between the supervisor and the child's first process.

It is the subreaper of all that the child leaves behind, so a process belongs to a child by its ancestors
alone, whatever its session and environment. The reaper counts these processes, kills them when the first
process ends, and reports only when none is left. It also kills them when the supervisor or the worker dies.
If the reaper itself is killed, the supervisor inherits what was below it.

The supervisor sends signals for the child as messages of one byte. The reaper sends one message, its report:
{"status" (as of wait), "cpu_seconds", "error" (why it could not be started), "crowded"}. Standard library
alone: the supervisor forks it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any, Final, NoReturn

from noonmark.worker.processes.first_process import (
    LIBC,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_NAME,
    PR_SET_PDEATHSIG,
    close_all_but,
    exec_child,
)
from noonmark.worker.processes.process_tree import children, kill_group, kill_tree, tree

TICK_SECONDS: Final = 0.02
_COUNT_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 10.0
"""Time for killing everything after the supervisor's death; what cannot be killed by then stays."""

_NAME: Final = b"noonmark-reaper"
"""Shown by ps and top; its arguments are those of the supervisor."""

_stopping: list[int] = []
"""Not empty after SIGTERM, which the kernel sends when the supervisor dies."""


def run_reaper(
    request: dict[str, Any], descriptors: list[int], control: socket.socket, worker: int, supervisor: int
) -> NoReturn:
    """Turn this fork of the supervisor into a reaper.

    Args:
        request: the child to start.
        descriptors: of the child, from 0.
        control: the connection to the supervisor.
        worker: the supervisor's end of the worker's socket, which shows the worker's death. It stays open as
            long as the reaper lives: the worker sees by its end that no reaper is left.
        supervisor: pid of the supervisor.
    """
    try:
        # A session of its own: a signal for the supervisor's group does not reach it.
        os.setsid()
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        LIBC.prctl(PR_SET_NAME, _NAME, 0, 0, 0)
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: _stopping.append(number))
        LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() == supervisor:
            close_all_but({0, 1, 2, wake, woken, control.fileno(), worker, *descriptors})
            Reaper(control, worker, wake).run(request, descriptors)
    finally:
        os._exit(0)


class Reaper:
    """Starts one child, and reports its end once no process of it is left."""

    def __init__(self, control: socket.socket, worker: int, wake: int) -> None:
        control.setblocking(False)
        self._control = control
        self._wake = wake
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        # Commands of the worker are the supervisor's to read; its death is everyone's business.
        self._poll.register(worker, select.POLLRDHUP)
        self._worker = worker
        self._pid = 0  # of the first process; also its session and process group, reserved until it is reaped
        self._failure = -1
        self._most: int | None = None
        self._status: int | None = None
        self._cpu_seconds = 0.0
        self._crowded = False
        self._counted_at = 0.0
        self._stopped_at: float | None = None

    def run(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Start the child, wait for the end of all its processes, and report."""
        try:
            self._start(request, descriptors)
        except OSError as error:
            self._report(status=None, error=f"cannot start a process: {error.strerror}")
            return
        while self._reap() and not self._is_patience_over():
            self._count()
            if self._status is not None or self._stopped_at is not None:
                self._kill_all()
            self._await_events()
        if self._status is not None:
            self._report(status=self._status, error=_read_all(self._failure))

    def _start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        self._most = request["limits"].get("processes")
        self._failure, failing = os.pipe()
        os.set_blocking(self._failure, False)
        reaper = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            exec_child(request, descriptors, failing, reaper)
        for descriptor in (*descriptors, failing):
            os.close(descriptor)

    def _await_events(self) -> None:
        """Wait for a command, the end of a process, the death of the supervisor or the worker, or a tick."""
        killing = self._status is not None or self._stopped_at is not None
        timeout = TICK_SECONDS if killing else None if self._most is None else _COUNT_SECONDS
        ready = dict(self._poll.poll(None if timeout is None else timeout * 1000))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        if _stopping or self._worker in ready or not self._handle_signals():
            self._stop()

    def _handle_signals(self) -> bool:
        """Signal the child as the supervisor wants; False if the supervisor is gone."""
        while True:
            try:
                numbers = self._control.recv(1)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not numbers:
                return False
            if self._status is None:
                self._signal(numbers[0])

    def _signal(self, number: int) -> None:
        """Signal the process group; a first process that was just forked has no session yet."""
        try:
            os.killpg(self._pid, number)
        except ProcessLookupError:
            os.kill(self._pid, number)

    def _stop(self) -> None:
        """Kill everything from now on: the supervisor or the worker has ended, and no report is expected."""
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
            for source in (self._control, self._worker):
                self._poll.unregister(source)

    def _is_patience_over(self) -> bool:
        return self._stopped_at is not None and time.monotonic() > self._stopped_at + _PATIENCE_SECONDS

    def _reap(self) -> bool:
        """Reap what ended; False if nothing is left.

        Kill the group of the first process while its zombie still reserves the pid.
        """
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            first = ended.si_pid == self._pid and self._status is None
            if first:
                kill_group(self._pid)
            _, status, usage = os.wait4(ended.si_pid, 0)
            if first:
                self._status, self._cpu_seconds = status, usage.ru_utime + usage.ru_stime

    def _count(self) -> None:
        """Kill a child with too many processes. RLIMIT_NPROC would count all those of the user instead."""
        now = time.monotonic()
        if self._most is None or self._status is not None or now - self._counted_at < _COUNT_SECONDS:
            return
        self._counted_at = now
        if len(tree(os.getpid(), self._most + 1)) - 1 > self._most:
            self._crowded = True
            kill_group(self._pid)

    def _kill_all(self) -> None:
        if self._status is None:
            kill_group(self._pid)
        for pid in children(os.getpid()):
            kill_tree(pid)

    def _report(self, *, status: int | None, error: str) -> None:
        report = {
            "status": status,
            "cpu_seconds": self._cpu_seconds,
            "error": error,
            "crowded": self._crowded,
        }
        with contextlib.suppress(OSError):
            self._control.send(json.dumps(report).encode())


def _read_all(descriptor: int) -> str:
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except BlockingIOError:
        return ""
