"""How long a test waits for a process, counted in time in which the process could run and did not.

A fixed limit of wall time finds a healthy process guilty on a busy machine: its clock runs while the process waits
for a CPU. Here three things are counted instead. A process that hangs sleeps, and a process that spins uses CPU; one
that starts slowly because it gets little CPU does neither for long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.starver import descendants

LOOK_MOST: Final = 0.5
"""The most seconds that one look counts, however late it came: the waiting test is starved with the others."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_HINDERED: Final = frozenset("RDTt")
"""States of a thread that runs, waits for a CPU or a disk, or is stopped: it is not idle."""


@dataclass(slots=True)
class Budget:
    """A span of time that only runs while the one who waits gets to look.

    Attributes:
        seconds: its length.
        spent: seconds of it that are over.
        clock: in seconds.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic
    spent: float = 0.0
    _looked_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._looked_at = self.clock()

    @property
    def over(self) -> bool:
        """Whether nothing is left of it."""
        return self.spent >= self.seconds

    def look(self, *, counts: bool = True) -> float:
        """Count the time since the last look, `LOOK_MOST` at most; return it, 0 if it does not count."""
        now = self.clock()
        since, self._looked_at = now - self._looked_at, now
        counted = min(since, LOOK_MOST) if counts else 0.0
        self.spent += counted
        return counted


class Patience:
    """Decides whether a process that is waited for hangs. Call `lost` again and again while you wait.

    It hangs if it was idle for `seconds`: no thread of it, nor of its children, ran, waited for a CPU or a disk,
    or was stopped. It also hangs if it used `cpu_seconds` without getting anywhere.
    """

    def __init__(self, pid: int, seconds: float, cpu_seconds: float) -> None:
        """Begin to wait for a process."""
        self._pid = pid
        self._cpu_seconds = cpu_seconds
        self._cpu_before = _used(pid)
        self._idle = Budget(seconds)

    @property
    def idle(self) -> float:
        """Seconds in which it was idle."""
        return self._idle.spent

    @property
    def used(self) -> float:
        """Seconds of CPU that it used since the wait began."""
        return _used(self._pid) - self._cpu_before

    def lost(self) -> str:
        """Look at the process; say why it is taken for hung, or "" if it is not yet."""
        self._idle.look(counts=not _hindered(descendants([self._pid])))
        if self._idle.over:
            return f"was idle for {self.idle:.1f} s, and used {self.used:.1f} s of CPU"
        if self.used >= self._cpu_seconds:
            return f"used {self.used:.1f} s of CPU, and was idle for {self.idle:.1f} s"
        return ""


def _hindered(pids: Iterable[int]) -> bool:
    return any(state in _HINDERED for pid in pids for state in _states(pid))


def _states(pid: int) -> Iterable[str]:
    """States of the threads of a process; none if it is gone."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError, IndexError):
                yield _fields(thread / "stat")[0]


def _used(pid: int) -> float:
    """Seconds of CPU of a process and of its children that it has waited for; 0 if it is gone."""
    with suppress(OSError, IndexError):
        return sum(int(ticks) for ticks in _fields(Path(f"/proc/{pid}/stat"))[11:15]) / _TICKS
    return 0.0


def _fields(stat: Path) -> list[str]:
    """The fields after the name of the command, which may contain blanks."""
    return stat.read_text().rpartition(")")[2].split()
