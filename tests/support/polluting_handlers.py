"""Handlers that change the process that they run in, and one that such a change would harm. Tests load them."""

import _thread
import ctypes
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from noonmark.handlers import Context, handler

KEPT: list[object] = []


def pollutes(function: Callable[[], object]) -> Callable[[], object]:
    """Register a handler of this name that calls a function and returns its process."""

    def run(_ctx: Context) -> int:
        function()
        return os.getpid()

    handler(f"pollute.{function.__name__}", run="process")(run)
    return function


@handler("pollute.victim", run="process")
def victim(ctx: Context) -> int:
    """Need what every process has."""
    list(map(os.close, [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]))
    file = Path(ctx.payload["folder"]) / f"victim-{time.monotonic_ns()}"
    file.write_text("x" * 10_000)
    assert file.read_text()
    assert bytearray(256 << 20)

    def down(levels: int) -> int:
        return 1 + down(levels - 1) if levels else 0

    down(200)
    started = time.process_time()
    while time.process_time() - started < 0.1:
        sum(range(1000))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as ours,
    ):
        assert ours.gettimeout() is None
    os.kill(os.getpid(), signal.SIGURG)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
    print("victim", flush=True)
    print("victim", file=sys.stderr, flush=True)
    return os.getpid()


@pollutes
def a_thread() -> None:
    """Leave a thread."""
    threading.Thread(target=time.sleep, args=[600], daemon=True).start()


@pollutes
def low_level_thread() -> None:
    """Leave a thread that `threading` does not know."""
    began = threading.Event()
    _thread.start_new_thread(lambda: (began.set(), time.sleep(600)), ())
    began.wait()


@pollutes
def address_space() -> None:
    """Leave little memory."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 27, resource.RLIM_INFINITY))


@pollutes
def cpu_time() -> None:
    """Leave little time."""
    resource.setrlimit(resource.RLIMIT_CPU, (3600, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))


@pollutes
def few_files() -> None:
    """Let no further file be opened."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (5, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@pollutes
def timers() -> None:
    """Let signals come that end the process."""
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0.05)


@pollutes
def posix_timer() -> None:
    """Let a signal come from a timer that Python does not know."""
    libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
    assert libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(timer)) == 0
    times = (ctypes.c_long * 4)(0, 0, 600, 0)
    assert libc.timer_settime(timer, 0, ctypes.byref(times), None) == 0


@pollutes
def recursion() -> None:
    """Leave little stack."""
    sys.setrecursionlimit(60)


@pollutes
def descriptors() -> None:
    """Leave no descriptor."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    with suppress(OSError):
        while True:
            os.open(os.devnull, os.O_RDONLY)


@pollutes
def connections() -> None:
    """Leave more sockets than a pool has."""
    KEPT.extend(socket.socket() for _ in range(40))


@pollutes
def a_connection() -> None:
    """Keep one connection, as a pool does."""
    KEPT.append(socket.socket())


@pollutes
def outputs() -> None:
    """Close what is printed to."""
    os.close(1)
    os.close(2)


@pollutes
def signals() -> None:
    """Handle a signal, and block all."""
    signal.signal(signal.SIGURG, lambda *_: os._exit(5))
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@pollutes
def settings() -> None:
    """Change what all code of the process shares."""
    os.umask(0o777)
    socket.setdefaulttimeout(0.0001)
    sys.setswitchinterval(10)


@pollutes
def user() -> None:
    """Give up the rights of root."""
    os.setuid(65534)
