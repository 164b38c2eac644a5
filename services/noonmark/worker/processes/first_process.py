"""Turns a fork of a reaper into the first process of a child. Standard library alone, as the supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
from typing import Any, Final, NoReturn

PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15
PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38

# Loaded before any fork: between fork and exec nothing is imported.
LIBC: Final = ctypes.CDLL(None)

_LIMITS: Final = {
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "file_bytes": resource.RLIMIT_FSIZE,
}


def exec_child(request: dict[str, Any], descriptors: list[int], failing: int, reaper: int) -> NoReturn:
    """Turn this fork into the requested process; if that fails, report the reason on `failing`."""
    try:
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != reaper:
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
        close_all_but({*range(len(descriptors)), failing})
        os.chdir(request["cwd"])
        _limit(request["limits"])
        if request["confined"]:
            LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.execve(request["path"], request["argv"], request["env"])  # noqa: S606 - no shell, on purpose
    except OSError as error:
        place = f": {error.filename}" if error.filename is not None else ""
        os.write(failing, f"{error.strerror}{place}".encode(errors="replace")[:2000])
    except BaseException as error:  # noqa: BLE001 - a fork must never return to the reaper's loop
        os.write(failing, f"{type(error).__name__}: {error}".encode(errors="replace")[:2000])
    finally:
        os._exit(127)


def close_all_but(kept: set[int]) -> None:
    """Close all other descriptors of this process."""
    # A list, not a range: a range can reach to 10^9, and older kernels close one after the other.
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


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
