"""Takes the CPU of processes and of all their children: each runs only a small share of the time.

SIGSTOP and SIGCONT in turns work on every Linux machine, without a cgroup of one's own. The turns of two
processes do not coincide: a watch that looks at another process finds it stopped most of the time.
"""

from __future__ import annotations

import heapq
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, Self

RUN_SECONDS: Final = 0.01
SHARE: Final = 0.05
_LOOK_SECONDS: Final = 0.1
"""Between two looks for new children."""


@dataclass(slots=True)
class Ration:
    """What one process got.

    Attributes:
        since: when its first turn began, in monotonic seconds.
        allowed: seconds in which it could run.
        turns: number of its turns.
    """

    since: float
    allowed: float = 0.0
    turns: int = 0
    _running_since: float = 0.0


class Starver:
    """Starves the processes below some roots, in a thread, while the block lasts."""

    def __init__(self, roots: Callable[[], Iterable[int]], *, share: float = SHARE, seed: int = 1) -> None:
        """Prepare it.

        Args:
            roots: returns the ids of the processes that are starved with all their descendants.
            share: of the time in which each may run.
            seed: decides the length of each turn.
        """
        self._roots = roots
        self._stop_seconds = RUN_SECONDS * (1 / share - 1)
        self._dice = Random(seed)
        self._over = threading.Event()
        self._turns: list[tuple[float, int, bool]] = []
        self._thread = threading.Thread(target=self._run, name="starver", daemon=True)
        self.rations: dict[int, Ration] = {}
        self.seconds = 0.0
        self._until = 0.0

    def start(self) -> None:
        """Take the CPU."""
        self._thread.start()

    def stop(self) -> None:
        """Give it back."""
        self._over.set()
        self._thread.join()

    def __enter__(self) -> Self:
        """Take the CPU for the block."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Give it back."""
        self.stop()

    @property
    def share(self) -> float:
        """The share of the time in which processes could run, over all of them; 0 without any."""
        whole = sum(self._until - ration.since for ration in self.rations.values())
        return sum(ration.allowed for ration in self.rations.values()) / whole if whole else 0.0

    def _run(self) -> None:
        begun = time.monotonic()
        look_at = 0.0
        try:
            while not self._over.is_set():
                now = time.monotonic()
                if now >= look_at:
                    look_at = now + _LOOK_SECONDS
                    self._add_new(now)
                while self._turns and self._turns[0][0] <= now:
                    _, pid, stops = heapq.heappop(self._turns)
                    self._turn(pid, stops=stops)
                next_at = min(self._turns[0][0] if self._turns else look_at, look_at)
                self._over.wait(max(0.0005, next_at - time.monotonic()))
        finally:
            self._until = time.monotonic()
            self.seconds = self._until - begun
            # Children that lost their parent meanwhile are in no tree any more.
            for pid in self.rations:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _add_new(self, now: float) -> None:
        alive = descendants(self._roots())
        for pid in alive - self.rations.keys():
            self.rations[pid] = Ration(now)
            heapq.heappush(self._turns, (now, pid, True))

    def _turn(self, pid: int, *, stops: bool) -> None:
        """Stop a process or let it run, and plan the opposite."""
        ration = self.rations[pid]
        try:
            os.kill(pid, signal.SIGSTOP if stops else signal.SIGCONT)
        except ProcessLookupError:
            return
        now = time.monotonic()
        if stops:
            ration.allowed += now - ration._running_since if ration.turns else 0.0
        else:
            ration.turns += 1
            ration._running_since = now
        length = self._stop_seconds if stops else RUN_SECONDS
        heapq.heappush(self._turns, (now + length * self._dice.uniform(0.5, 1.5), pid, not stops))


def descendants(roots: Iterable[int]) -> set[int]:
    """Return the ids of living processes and of everything that they started, directly or not."""
    children: dict[int, list[int]] = {}
    alive = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError, IndexError):
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    alive.add(int(folder.name))
                    children.setdefault(int(parent), []).append(int(folder.name))
    found = [pid for pid in roots if pid in alive]
    for pid in found:
        found += children.get(pid, [])
    return set(found)
