"""The supervisor: starts the child processes of the worker, and makes sure that none of them is left behind.

The worker runs this file by its path, with the standard library alone, when it needs its first child. It is a
separate process for three reasons. It has one thread, so it can prepare a child between fork and exec
(limits, session, descriptors), which is unsafe in a process with threads. It is the subreaper of all that
its children leave behind, and can reap it without taking an exit status from other code. And it outlives the
worker: when the worker dies, by any signal, its end of the socket closes, and the supervisor kills everything
below it, so that a run does not execute twice at once after another worker has taken it.

Commands are messages of a SOCK_SEQPACKET socket: {"do": "spawn", "id"} with the descriptors [request, 0, 1,
2, ...], where the request is a file with {"path", "argv", "env", "cwd", "limits", "confined"}; and {"do":
"signal", "id", "number"}. Each spawn gets one reply, once no process of it is left: {"id", "status" (as of
wait), "cpu_seconds", "error" (why it could not be started), "crowded"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_TICK_SECONDS: Final = 0.02
_COUNT_SECONDS: Final = 0.1
_MOST_DESCRIPTORS: Final = 16
_MESSAGE_BYTES: Final = 64 * 1024
_MOST_OF_A_TREE: Final = 10_000
_PATIENCE_SECONDS: Final = 10.0
"""Time for killing everything after the worker's death; what cannot be killed by then stays."""

MARK: Final = "NOONMARK_PROCESS"
"""Variable that identifies a process which has left the session it was started in."""

_LIMITS: Final = {
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "file_bytes": resource.RLIMIT_FSIZE,
}
# Loaded before any fork: between fork and exec nothing is imported.
_LIBC: Final = ctypes.CDLL(None)


@dataclass(slots=True, eq=False)
class _SpawnedProcess:
    """A started process. `pid` is also its session and process group, reserved until it is reaped."""

    id: int
    pid: int
    mark: bytes
    failure: int  # pipe on which the child reports why it could not be started
    processes: int | None  # limit of processes at once
    status: int | None = None
    cpu_seconds: float = 0.0
    crowded: bool = False


class ProcessSupervisor:
    """Starts, signals and reaps processes. Each spawn is stored by the pid of its first process."""

    def __init__(self, commands: socket.socket) -> None:
        self._commands = commands
        self._spawns: dict[int, _SpawnedProcess] = {}
        self._outbox: deque[bytes] = deque()
        self._counted_at = 0.0

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
                selector.select(_TICK_SECONDS if self._is_watching() else None)
                selector.unregister(self._commands)
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
                if not self._receive_commands() or _ending:
                    break
                self._reap()
                self._count()
                self._finish()
                if not self._send():
                    break
        self._stop_all()

    def _interest(self) -> int:
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)

    def _is_watching(self) -> bool:
        """Return whether something must be checked that no signal reports."""
        return any(s.status is not None or s.processes is not None for s in self._spawns.values())

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
                self._spawn(request["id"], descriptors)
            else:
                self._signal(request["id"], request["number"])

    def _spawn(self, number: int, descriptors: list[int]) -> None:
        with os.fdopen(descriptors[0], "rb") as file:
            request: dict[str, Any] = json.loads(file.read())
        mark = f"{os.getpid()}.{number}"
        request["env"][MARK] = mark
        failure, failing = os.pipe()
        os.set_blocking(failure, False)
        supervisor = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._outbox.append(_message(id=number, error=f"cannot start a process: {error.strerror}"))
            os.close(failure)
        else:
            if pid == 0:
                _exec_child(request, descriptors[1:], failing, supervisor)
            processes = request["limits"].get("processes")
            self._spawns[pid] = _SpawnedProcess(number, pid, f"{MARK}={mark}".encode(), failure, processes)
        for descriptor in (*descriptors[1:], failing):
            os.close(descriptor)

    def _signal(self, number: int, signum: int) -> None:
        """Signal a process group; one that was just forked has no session yet."""
        spawn = next((s for s in self._spawns.values() if s.id == number and s.status is None), None)
        if spawn is not None:
            try:
                os.killpg(spawn.pid, signum)
            except ProcessLookupError:
                os.kill(spawn.pid, signum)

    def _reap(self) -> None:
        """Reap what ended. Kill the group of a first process while its zombie still reserves the pid."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            spawn = self._spawns.get(ended.si_pid)
            if spawn is not None:
                _kill_group(spawn.pid)
            _, status, usage = os.wait4(ended.si_pid, 0)
            if spawn is not None:
                spawn.status, spawn.cpu_seconds = status, usage.ru_utime + usage.ru_stime

    def _count(self) -> None:
        """Kill spawns with too many processes. RLIMIT_NPROC would count all processes of the user instead."""
        now = time.monotonic()
        if now - self._counted_at < _COUNT_SECONDS:
            return
        self._counted_at = now
        limited = [s for s in self._spawns.values() if s.processes is not None and s.status is None]
        counts = {spawn.pid: len(_tree(spawn.pid, spawn.processes or 0)) for spawn in limited}
        # Orphans were reparented to this process, and count, too.
        for pid in _children(os.getpid()) if limited else ():
            owner = None if pid in self._spawns else _owner(pid, limited)
            if owner is not None:
                counts[owner.pid] += 1
        for spawn in limited:
            if counts[spawn.pid] > (spawn.processes or 0):
                spawn.crowded = True
                _kill_group(spawn.pid)

    def _finish(self) -> None:
        """Reply for spawns that have ended, once none of their processes is left; kill unknown orphans."""
        ended = [spawn for spawn in self._spawns.values() if spawn.status is not None]
        if not ended:
            return
        everyone = list(self._spawns.values())
        left = set()
        for pid in _children(os.getpid()):
            if pid in self._spawns:
                continue
            owner = _owner(pid, everyone)
            if owner is None or owner.status is not None:
                _kill_tree(pid)
                left.add(owner.pid if owner else 0)
        for spawn in ended:
            if spawn.pid not in left:
                del self._spawns[spawn.pid]
                self._outbox.append(
                    _message(
                        id=spawn.id,
                        status=spawn.status,
                        cpu_seconds=spawn.cpu_seconds,
                        crowded=spawn.crowded,
                        error=_read_all(spawn.failure),
                    )
                )

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
        """Kill everything below this process until nothing is left."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            for spawn in self._spawns.values():
                if spawn.status is None:
                    _kill_group(spawn.pid)
            for pid in _children(os.getpid()):
                _kill_tree(pid)
            self._reap()
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            time.sleep(_TICK_SECONDS)


def _exec_child(request: dict[str, Any], descriptors: list[int], failing: int, supervisor: int) -> NoReturn:
    """Turn this fork into the requested process; if that fails, report the reason on `failing`."""
    try:
        os.setsid()
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != supervisor:
            os._exit(1)
        for number in range(1, signal.NSIG):
            if number not in {signal.SIGKILL, signal.SIGSTOP}:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        # Move the descriptors away first: a source can be the target of another.
        high = [fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 64) for source in descriptors]
        failing = fcntl.fcntl(failing, fcntl.F_DUPFD_CLOEXEC, 64)
        for target, source in enumerate(high):
            os.dup2(source, target)
        # A list, not a range: a range can reach to 10^9, and older kernels close one after the other.
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
            if int(name) >= len(descriptors) and int(name) != failing:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        os.chdir(request["cwd"])
        _limit(request["limits"])
        if request["confined"]:
            _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.execve(request["path"], request["argv"], request["env"])  # noqa: S606 - no shell, on purpose
    except OSError as error:
        place = f": {error.filename}" if error.filename is not None else ""
        os.write(failing, f"{error.strerror}{place}".encode(errors="replace")[:2000])
    except BaseException as error:  # noqa: BLE001 - a fork must never return to the supervisor's loop
        os.write(failing, f"{type(error).__name__}: {error}".encode(errors="replace")[:2000])
    finally:
        os._exit(127)


def _limit(limits: dict[str, int]) -> None:
    """Set the limits of the process, never above those of this process."""
    for name, kind in _LIMITS.items():
        if name in limits:
            _set_limit(kind, limits[name], limits[name])
    if "cpu_seconds" in limits:
        # SIGXCPU first, which shows the reason; SIGKILL a second later if it is ignored.
        _set_limit(resource.RLIMIT_CPU, limits["cpu_seconds"], limits["cpu_seconds"] + 1)
    _set_limit(resource.RLIMIT_CORE, 0, 0)


def _set_limit(kind: int, soft: int, hard: int) -> None:
    most = resource.getrlimit(kind)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _owner(pid: int, spawns: list[_SpawnedProcess]) -> _SpawnedProcess | None:
    """Return the spawn of an orphan: by its session, or by its environment if it left the session."""
    session = _parent_and_session(pid)[1]
    for spawn in spawns:
        if spawn.pid == session:
            return spawn
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - read in a loop
            environment = set(file.read().split(b"\0"))
    except OSError:
        return None
    return next((spawn for spawn in spawns if spawn.mark in environment), None)


def _children(pid: int) -> list[int]:
    """Return the children of a process."""
    try:
        with os.scandir(f"/proc/{pid}/task") as tasks:
            threads = [task.name for task in tasks]
        found: list[int] = []
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    except FileNotFoundError:
        # The process is gone, or this kernel does not list children.
        others = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
        return [other for other in others if _parent_and_session(other)[0] == pid]
    except OSError:
        return []
    return found


def _kill_tree(pid: int) -> None:
    """Kill a process and its current descendants."""
    for member in _tree(pid, _MOST_OF_A_TREE):
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)


def _tree(pid: int, most: int) -> list[int]:
    """Return a process and its descendants; stop soon after `most` of them."""
    found = [pid]
    for member in found:
        if len(found) > most:
            break
        found += _children(member)
    return found


def _parent_and_session(pid: int) -> tuple[int, int]:
    """Return the parent and the session of a process; -1 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return -1, -1
    return int(fields[1]), int(fields[3])


def _read_all(descriptor: int) -> str:
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except BlockingIOError:
        return ""
    finally:
        os.close(descriptor)


def _message(**fields: object) -> bytes:
    return json.dumps(fields).encode()


_ending: list[int] = []
"""Not empty after SIGTERM."""


def main() -> int:
    """Supervise for the worker whose socket is the descriptor in the first argument."""
    with socket.socket(fileno=int(sys.argv[1])) as commands:
        commands.set_inheritable(False)
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # In addition to the socket, whose other end a fork of the worker can keep open.
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: _ending.append(number))
        if os.getppid() != int(sys.argv[2]):
            return 1
        ProcessSupervisor(commands).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
