"""How long a worker could run, as another process measures it: its progress, not the time that passed.

A worker that gets a twentieth of a CPU does in a minute what it otherwise does in three seconds, and its
state is nearly always one without a CPU, or stopped. That does not mean that it makes no progress. The thread
of its pulse shows how long it could run: each count is `PULSE_SECONDS`, and each vain request for the
interpreter's lock (GIL) is CPython's switch interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from noonmark.worker.leases.shared_attempts import PULSE_SECONDS, SharedAttempts
from noonmark.worker.leases.stuck_worker import ThreadSample, read_thread

_TRY_SECONDS: Final = 0.005
_STOPPED: Final = frozenset("Tt")
_ENDED: Final = frozenset("ZX")


def lease_clock() -> float:
    """Return seconds on the clock of leases, which never jumps.

    Other than the monotonic clock, it also counts the time in which the machine was suspended: the database's
    clock went on meanwhile, and leases lapse by that.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_state(process: int) -> str:
    """Return the letter of the state of a process, such as T (stopped); "" if the system does not show it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


class WorkerTime:
    """Measures one worker by the thread of its pulse."""

    def __init__(
        self,
        process: int,
        attempts: SharedAttempts,
        read: Callable[[int, int], ThreadSample | None] = read_thread,
        state: Callable[[int], str] = read_state,
    ) -> None:
        """Create it.

        Args:
            process: id of the worker.
            attempts: the memory in which its pulse counts.
            read: returns the counts of a thread of a process.
            state: returns the letter of the state of a process.
        """
        self._process = process
        self._attempts = attempts
        self._read = read
        self._state = state
        self._seen: tuple[int, ThreadSample | None] = (0, None)
        self._counts: tuple[int, int] | None = None
        self._measured_at = 0.0

    def stood_still(self) -> bool:
        """Return whether the worker is stopped (SIGSTOP, a debugger) and has been since the last call.

        A worker that is stopped and continued in turns has moved since. One that has ended stands still; one
        whose state is unknown does not.
        """
        state = self._state(self._process)
        count, thread = self._attempts.pulse()
        before, self._seen = self._seen, (count, self._read(self._process, thread) if count else None)
        return state in _ENDED or (bool(state) and state in _STOPPED and self._seen == before)

    def passed(self, now: float) -> float:
        """Return the seconds that the worker could use since the last call; 0 for the first.

        Args:
            now: monotonic time in seconds.
        """
        count, thread = self._attempts.pulse()
        sample = self._read(self._process, thread) if count else None
        before, elapsed = self._counts, now - self._measured_at
        self._counts, self._measured_at = (count, sample.switches if sample is not None else 0), now
        if before is None:
            return 0.0
        if sample is None:
            # Without its counts there is only the time.
            return elapsed
        pulses = count - before[0]
        tries = max(0, sample.switches - before[1] - pulses)
        return min(elapsed, pulses * PULSE_SECONDS + tries * _TRY_SECONDS)
