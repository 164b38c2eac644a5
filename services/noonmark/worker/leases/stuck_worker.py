"""Tells a worker whose interpreter a handler has seized from one that only gets no CPU.

C code that keeps the interpreter's lock (GIL) stops every thread of a worker: no timeout is noticed, no
signal is handled, and nothing that waits here can move. From outside, such a worker looks like one that is
starved, stopped or swapped out, which must never be ended for it. The difference is in how its threads wait,
and the kernel counts that: a thread that wants the lock wakes up every 5 ms and asks for it (CPython's switch
interval), and a thread that runs Python gives it away at the next bytecode. So a pulse that has asked
hundreds of times in vain, each time on a CPU, proves that the lock is held; without a CPU it proves nothing.

Which thread holds it can only be told of one that sleeps or computes all the time. A handler can also leave
the lock to a thread of its own, or keep it in C code that wakes now and then. If the pulse asks in vain for
long, the worker is ended whichever thread has it: nothing in it moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noonmark.worker.leases.shared_attempts import SharedAttempt, SharedAttempts

TRIES: Final = 400
"""Failed requests for the lock that count as proof: two seconds, or longer on a machine that is busy."""

SEIZED_TRIES: Final = 15 * TRIES
"""Failed requests for the lock after which it does not matter who holds it: half a minute at least."""

_CPU_SECONDS: Final = 2.0
"""Nothing that runs Python uses this much CPU without giving the lock away, however slow the machine is."""

_WAIT_SECONDS: Final = 0.2
"""A thread that waited longer than this for a CPU may hold the lock without a chance to give it away."""


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """What the kernel counts for one thread.

    Attributes:
        state: the letter of `/proc/PID/stat`, such as R (running), S (sleeping), D (waits for a disk).
        switches: how often it gave up a CPU to wait.
        cpu_seconds: time on a CPU.
        wait_seconds: time it was ready to run but got no CPU.
        major_faults: pages that were read back from a disk for it.
    """

    state: str
    switches: int
    cpu_seconds: float
    wait_seconds: float
    major_faults: int


def read_thread(process: int, thread: int) -> ThreadSample | None:
    """Read the counts of a thread; None if it is gone or the system does not show them."""
    folder = Path(f"/proc/{process}/task/{thread}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        cpu, wait, _ = (folder / "schedstat").read_text().split()
        status = (folder / "status").read_text()
    except (OSError, ValueError):
        return None
    _, found, rest = status.partition("\nvoluntary_ctxt_switches:")
    if not found:
        return None
    return ThreadSample(fields[0], int(rest.split()[0]), int(cpu) / 1e9, int(wait) / 1e9, int(fields[9]))


def list_threads(process: int) -> list[int]:
    """Return the ids of the threads of a process; empty if it is gone."""
    try:
        return [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    except OSError:
        return []


class StuckWorker:
    """Watches the pulse of one worker."""

    def __init__(
        self,
        process: int,
        attempts: SharedAttempts,
        read: Callable[[int, int], ThreadSample | None] = read_thread,
        threads: Callable[[int], Sequence[int]] = list_threads,
    ) -> None:
        """Create it.

        Args:
            process: id of the worker.
            attempts: what it runs.
            read: returns the counts of a thread of a process.
            threads: returns the threads of a process.
        """
        self._process = process
        self._attempts = attempts
        self._read = read
        self._threads = threads
        self._count = -1
        self._beats = True
        self._asked_at: int | None = None
        self._faults = 0
        self._first: dict[SharedAttempt, tuple[int, ThreadSample]] = {}

    def find(self, now: float) -> list[SharedAttempt]:
        """Return the overdue attempts that keep the worker's lock, once it is proved that one does.

        Call it several times a second. Attempts that are overdue because they wait for the lock themselves
        are not returned.

        Args:
            now: monotonic time in seconds.
        """
        count, thread = self._attempts.pulse()
        self._beats = count != self._count
        if self._beats:
            self._count = count
            self._asked_at = None
            self._first.clear()
            return []
        pulse = self._read(self._process, thread)
        if pulse is None or not count:
            return []
        keeping = []
        for attempt in self._attempts.overdue(now):
            sample = self._read(self._process, attempt.thread)
            if sample is None:
                continue
            asked_at, first = self._first.setdefault(attempt, (pulse.switches, sample))
            tries = pulse.switches - asked_at
            if tries >= TRIES and _keeps_lock(first, sample, tries):
                keeping.append(attempt)
        return keeping

    def is_seized(self) -> bool:
        """Return whether some thread has kept the lock for so long that the worker cannot go on.

        Call it after `find`, as often. A machine that takes the memory of the worker away is no proof.
        """
        count, thread = self._attempts.pulse()
        if self._beats or count != self._count or not count:
            # While the pulse beats, nothing is to be proved, and reading all threads takes milliseconds.
            return False
        pulse = self._read(self._process, thread)
        if pulse is None:
            return False
        samples = [self._read(self._process, one) for one in self._threads(self._process)]
        faults = sum(sample.major_faults for sample in samples if sample is not None)
        waits_for_disk = any(sample is not None and sample.state == "D" for sample in samples)
        if self._asked_at is None or waits_for_disk or faults != self._faults:
            self._asked_at, self._faults = pulse.switches, faults
        return pulse.switches - self._asked_at >= SEIZED_TRIES


def _keeps_lock(first: ThreadSample, last: ThreadSample, tries: int) -> bool:
    """Return whether a thread can hold the lock and had every chance to give it away.

    Args:
        first: when it was found overdue while the pulse stood still.
        last: now.
        tries: how often the pulse asked for the lock meanwhile.
    """
    if tries / 4 < last.switches - first.switches < tries * 2:
        return False  # it wakes up to ask for the lock, as often as the pulse does
    if last.cpu_seconds - first.cpu_seconds >= _CPU_SECONDS:
        return True
    was_ready = last.wait_seconds - first.wait_seconds > _WAIT_SECONDS
    was_swapped = last.major_faults > first.major_faults
    return first.state == last.state == "S" and not was_ready and not was_swapped
