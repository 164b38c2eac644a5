"""What the runs of a child process share besides memory: restored after each, or the child is spent."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from noonmark.worker.processes.process_limits import changed_limits, read_limits

_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_FIXED: Final = range(4)
"""Standard input, output and error, and the socket to the worker."""

_KEPT_CONNECTIONS: Final = 32
"""Sockets that handlers may keep open for their next run: pools of connections are module state."""


class ProcessState:
    """The state after the handler modules were imported.

    Audit hooks, and what a handler replaced in modules, are not part of it: neither can be found.
    """

    def __init__(self) -> None:
        """Remember the state of this process."""
        self.streams = (sys.stdin, sys.stdout, sys.stderr)
        self._folder = Path.cwd()
        self._environment = dict(os.environ)
        self._umask = os.umask(0)
        os.umask(self._umask)
        self._handlers = [(number, signal.getsignal(number)) for number in _SIGNALS]
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._limits = read_limits()
        self._recursion = sys.getrecursionlimit()
        self._switching = sys.getswitchinterval()
        self._tracing = (sys.gettrace(), sys.getprofile())
        self._socket_timeout = socket.getdefaulttimeout()
        self._identity = _identity()
        self._fixed = _files(_FIXED)
        self._descriptors = _descriptors()
        self._timers = _posix_timers()
        self._threads = _threads()

    def has_more_threads(self) -> bool:
        """Return whether a run left threads: they could do anything to the next one."""
        return _threads() > self._threads

    def restore(self) -> bool:
        """Restore what can be restored; False if the next run would find something else."""
        try:
            self._restore_interpreter()
            self._restore_process()
            return self._is_as_before()
        except BaseException:  # noqa: BLE001 - a limit, a hook or a thread of the handler: not as before
            return False

    def _restore_interpreter(self) -> None:
        trace, profile = self._tracing
        if sys.gettrace() is not trace:
            sys.settrace(trace)
        if sys.getprofile() is not profile:
            sys.setprofile(profile)
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)
        if sys.getswitchinterval() != self._switching:
            sys.setswitchinterval(self._switching)
        if os.environ != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        socket.setdefaulttimeout(self._socket_timeout)

    def _restore_process(self) -> None:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for number, before in self._handlers:
            if signal.getsignal(number) is not before:
                signal.signal(number, before)
        # After the timers and handlers: a blocked signal comes now, when it harms no other run.
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        for limit in changed_limits(self._limits):
            resource.setrlimit(limit, self._limits[limit])
        os.umask(self._umask)
        os.chdir(self._folder)

    def _is_as_before(self) -> bool:
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return (
            all(now is before and not now.closed for now, before in zip(streams, self.streams, strict=True))
            and _identity() == self._identity
            and _files(_FIXED) == self._fixed
            and _posix_timers() == self._timers
            and self._keeps_only_connections()
        )

    def _keeps_only_connections(self) -> bool:
        """Return whether few descriptors were left open, all of them sockets.

        A file can hold a lock, and a pipe keep a reader waiting. They cannot be closed here: what opened
        them would close the number again, when it is another's.
        """
        left = _descriptors(self._descriptors)
        return len(left) <= _KEPT_CONNECTIONS and all(map(stat.S_ISSOCK, left.values()))


def _threads() -> int:
    # Also those that were not started through `threading`.
    return len(sys._current_frames())  # noqa: SLF001 - documented


def _descriptors(known: Collection[int] = ()) -> dict[int, int]:
    """Return the open descriptors that are not known, with the modes of their files."""
    modes = {}
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - at every run
        if number not in known:
            with suppress(OSError):  # the one that read the folder is closed
                modes[number] = os.fstat(number).st_mode
    return modes


def _files(descriptors: range) -> list[tuple[int, int, int]]:
    return [(file.st_dev, file.st_ino, file.st_rdev) for file in map(os.fstat, descriptors)]


def _identity() -> tuple[object, ...]:
    """Return the users and groups of this process, and what its root folder is."""
    root = Path("/").stat()
    return os.getresuid(), os.getresgid(), os.getgroups(), root.st_dev, root.st_ino


def _posix_timers() -> bytes:
    """Return the POSIX timers of this process; nothing where the kernel does not tell."""
    with suppress(FileNotFoundError):
        return Path("/proc/self/timers").read_bytes()
    return b""
