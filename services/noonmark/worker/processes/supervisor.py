"""The supervisor: starts the child processes of the worker, and makes sure that none of them is left behind.

The worker runs this file by its path, with the standard library alone, when it needs its first child. It is
a separate process for three reasons. It has one thread, so its forks can prepare a child between fork and
exec (limits, session, descriptors), which is unsafe in a process with threads. It can reap what children
leave behind without taking an exit status from other code. And it outlives the worker: when the worker dies,
by any signal, its end of the socket closes, and everything below the supervisor is killed, so that a run does
not execute twice at once after another worker has taken it.

Each child has a reaper (`reaper.py`), a fork of the supervisor that starts it and owns all its processes. Any
other process directly below the supervisor was left by a reaper that was killed.

Commands are messages of a SOCK_SEQPACKET socket: {"do": "spawn", "id"} with the descriptors [request, 0, 1,
2, ...], where the request is a file with {"path", "argv", "env", "cwd", "limits", "confined"}; {"do":
"signal", "id", "number"}; and {"do": "ping"}, answered by {"pong"}. Each spawn gets {"id", "begun"} before
anything of it is started: one that was not confirmed has not begun. It gets one more reply once no process of
it is left: {"id", "status" (as of wait), "cpu_seconds", "error" (why it could not be started), "crowded"}, or
{"id", "lost" (why its status is unknown)}.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    # Neither the environment nor installed packages are searched: only the other files of noonmark are added.
    sys.path.append(str(Path(__file__).parents[3]))

from noonmark.worker.processes.first_process import LIBC, PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG
from noonmark.worker.processes.process_tree import children, kill_tree
from noonmark.worker.processes.reaper import TICK_SECONDS, run_reaper

_MOST_DESCRIPTORS: Final = 16
_MESSAGE_BYTES: Final = 64 * 1024
_PATIENCE_SECONDS: Final = 10.0
"""Time for killing everything after the worker's death; what cannot be killed by then stays."""

_REAPER_SECONDS: Final = 5.0
"""A reaper that has not killed its child by then is stopped, or killed nothing: it is killed itself."""

_REAPER_END_SECONDS: Final = 1.0
"""The same after the worker's death, when nothing but the end of all processes matters."""

_CHECK_SECONDS: Final = 1.0

MARK: Final = "NOONMARK_PROCESS"
"""Variable that identifies what a supervisor has started, in case that supervisor and reaper are killed."""


@dataclass(slots=True, eq=False)
class _SpawnedChild:
    """A started child, by the pid of its reaper."""

    id: int
    reaper: int
    control: socket.socket
    kill_reaper_at: float | None = None


class ProcessSupervisor:
    """Starts, signals and reaps reapers, and what killed reapers leave behind."""

    def __init__(self, commands: socket.socket, token: str) -> None:
        self._commands = commands
        self._token = token
        self._spawns: dict[int, _SpawnedChild] = {}
        self._lost: list[_SpawnedChild] = []
        """Children whose reaper was killed, until none of their processes is left."""

        self._outbox: deque[bytes] = deque()

    def run(self) -> None:
        """Carry out commands until the worker is gone, then kill everything."""
        self._commands.setblocking(False)
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            selector.register(wake, selectors.EVENT_READ)
            while True:
                selector.register(self._commands, self._interest())
                selector.select(TICK_SECONDS if self._is_watching() else None)
                selector.unregister(self._commands)
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
                if not self._receive_commands() or _ending:
                    break
                self._reap()
                self._kill_stuck_reapers(time.monotonic())
                self._finish_lost()
                if not self._send():
                    break
        self._stop_all()

    def _interest(self) -> int:
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)

    def _is_watching(self) -> bool:
        """Return whether something must be checked that no signal reports."""
        return bool(self._lost) or any(s.kill_reaper_at is not None for s in self._spawns.values())

    def _receive_commands(self) -> bool:
        """Carry out the received commands; False if the worker is gone."""
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(
                    self._commands, _MESSAGE_BYTES, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            request = json.loads(data)
            if request["do"] == "spawn":
                if not self._spawn(request["id"], descriptors):
                    return False
            elif request["do"] == "signal":
                self._signal(request["id"], request["number"])
            else:
                self._outbox.append(_message(pong=True))

    def _spawn(self, number: int, descriptors: list[int]) -> bool:
        """Start a child; False if the worker is gone."""
        with os.fdopen(descriptors[0], "rb") as file:
            request: dict[str, Any] = json.loads(file.read())
        request["env"][MARK] = f"{self._token}.{number}"
        supervisor = os.getpid()
        try:
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                if not self._confirm(number):
                    control.close()
                    return False
                pid = os.fork()
                if pid == 0:
                    run_reaper(request, descriptors[1:], theirs, self._commands.fileno(), supervisor)
            control.setblocking(False)
            self._spawns[pid] = _SpawnedChild(number, pid, control)
        except OSError as error:
            self._outbox.append(_message(id=number, error=f"cannot start a process: {error.strerror}"))
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        return True

    def _confirm(self, number: int) -> bool:
        """Report that a child begins, and wait until this is sent; False if the worker is gone.

        The worker starts what was not confirmed once more, or hands it back. So nothing may begin before.
        """
        self._outbox.append(_message(id=number, begun=True))
        while self._send():
            if not self._outbox:
                return True
            if _ending:
                return False
            select.select((), (self._commands,), (), _CHECK_SECONDS)
        return False

    def _signal(self, number: int, signum: int) -> None:
        """Have the reaper of a child signal it."""
        spawn = next((s for s in self._spawns.values() if s.id == number), None)
        if spawn is None:
            return
        with contextlib.suppress(OSError):
            spawn.control.send(bytes((signum,)))
        if signum == signal.SIGKILL and spawn.kill_reaper_at is None:
            spawn.kill_reaper_at = time.monotonic() + _REAPER_SECONDS
            # The child can have stopped its reaper.
            os.kill(spawn.reaper, signal.SIGCONT)

    def _reap(self) -> bool:
        """Reap what ended, and pass on the reports of reapers; False if nothing is left."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            spawn = self._spawns.pop(pid, None)
            if spawn is None:
                continue
            with spawn.control as control:
                report = _report(control)
            if report is None:
                self._lost.append(spawn)
            else:
                self._outbox.append(_message(id=spawn.id, **report))

    def _kill_stuck_reapers(self, now: float) -> None:
        for spawn in self._spawns.values():
            if spawn.kill_reaper_at is not None and now >= spawn.kill_reaper_at:
                os.kill(spawn.reaper, signal.SIGKILL)

    def _finish_lost(self) -> None:
        """Kill what killed reapers left behind; reply once nothing is left of it."""
        if self._lost and not self._kill_orphans():
            for spawn in self._lost:
                self._outbox.append(_message(id=spawn.id, lost="the process that watched over it was killed"))
            self._lost.clear()

    def _kill_orphans(self) -> bool:
        """Kill all children that are no reapers, and what is below them; False if there are none."""
        orphans = [pid for pid in children(os.getpid()) if pid not in self._spawns]
        for pid in orphans:
            kill_tree(pid)
        return bool(orphans)

    def _send(self) -> bool:
        """Send the replies that can be sent; False if the worker is gone."""
        while self._outbox:
            try:
                self._commands.send(self._outbox[0])
            except BlockingIOError:
                return True
            except OSError:
                return False
            self._outbox.popleft()
        return True

    def _stop_all(self) -> None:
        """Have the reapers kill everything below them, then kill what is left."""
        for spawn in self._spawns.values():
            with contextlib.suppress(OSError):
                spawn.control.shutdown(socket.SHUT_WR)
            os.kill(spawn.reaper, signal.SIGCONT)
            spawn.kill_reaper_at = time.monotonic() + _REAPER_END_SECONDS
        until = time.monotonic() + _PATIENCE_SECONDS
        while self._reap() and time.monotonic() < until:
            self._kill_stuck_reapers(time.monotonic())
            self._kill_orphans()
            time.sleep(TICK_SECONDS)


def _report(control: socket.socket) -> dict[str, Any] | None:
    """Return the report of a reaper that has ended; None if it was killed."""
    for _ in range(2):
        try:
            data = control.recv(_MESSAGE_BYTES)
        except ConnectionResetError:
            # The reaper has left a signal unread. The kernel says so once, before it gives the report.
            continue
        except OSError:
            return None
        return json.loads(data) if data else None
    return None


def _message(**fields: object) -> bytes:
    return json.dumps(fields).encode()


_ending: list[int] = []
"""Not empty after SIGTERM."""


def main() -> int:
    """Supervise for a worker; the arguments are the descriptor of its socket, its pid, a token for marks."""
    with socket.socket(fileno=int(sys.argv[1])) as commands:
        commands.set_inheritable(False)
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # In addition to the socket, whose other end a fork of the worker can keep open.
        LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: _ending.append(number))
        if os.getppid() != int(sys.argv[2]):
            return 1
        ProcessSupervisor(commands, sys.argv[3]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
