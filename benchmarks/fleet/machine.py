"""Time and cores of a simulated machine: loops that compute, wait and wake each other.

A loop is a generator. It yields `Cpu` to compute, `Wait` to let time pass, or a `Signal` to sleep until
another loop sets it. Computing loops share the cores equally, and no loop gets more than one core. All
loops of one interpreter get at most one core together.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

_EPSILON: Final = 1e-9
_LEAST: Final = 0.05
"""Share of the cores that loops get whatever others take."""


class ModelError(ValueError):
    """The input of a model makes no sense; the message says which, and what would."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Compute for so many seconds of one core.

    Attributes:
        interpreter: the Python process that computes; None for a session of Postgres and for the broker.
    """

    seconds: float
    interpreter: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass without computing."""

    seconds: float


@dataclass(slots=True)
class Signal:
    """Wakes the loop that sleeps on it; stays set until one does."""

    is_set: bool = False
    sleeper: Loop | None = field(default=None, repr=False)


Step = Cpu | Wait | Signal
Loop = Generator[Step, None, None]


@dataclass(slots=True)
class _Work:
    left: float
    interpreter: str | None
    loop: Loop


class Machine:
    """Runs loops on shared cores.

    Attributes:
        now: simulated seconds.
    """

    def __init__(self, cores: float) -> None:
        """Create an idle machine.

        Raises:
            ModelError: it has no core.
        """
        if not cores > 0:
            raise ModelError(f"a machine has {cores:g} cores left; a run needs some")
        self.now = 0.0
        self._cores = cores
        self._taken = 0.0
        self._work: list[_Work] = []
        self._timers: list[tuple[float, int, Loop]] = []
        self._count = 0

    def take(self, cores: float) -> None:
        """Give cores to others, or get them back if it is negative; a little is always left."""
        self._taken += cores

    def start(self, loop: Loop) -> None:
        """Begin a loop now."""
        self._at(self.now, loop)

    def set(self, signal: Signal) -> None:
        """Wake the loop that sleeps on a signal, or the next that would."""
        if signal.sleeper is None:
            signal.is_set = True
            return
        sleeper, signal.sleeper = signal.sleeper, None
        self._at(self.now, sleeper)

    def run(self, until: float) -> None:
        """Let the loops run until a time, or until all of them sleep."""
        while self.now < until and (self._timers or self._work):
            speeds = self._speeds()
            ends = (work.left / speed for work, speed in zip(self._work, speeds, strict=True))
            next_end = self.now + min(ends, default=float("inf"))
            next_timer = self._timers[0][0] if self._timers else float("inf")
            self._advance(min(next_end, next_timer, until), speeds)
            done = [work.loop for work in self._work if work.left <= _EPSILON]
            self._work = [work for work in self._work if work.left > _EPSILON]
            while self._timers and self._timers[0][0] <= self.now + _EPSILON:
                done.append(heapq.heappop(self._timers)[2])
            for loop in done:
                self._step(loop)

    def _advance(self, to: float, speeds: list[float]) -> None:
        passed = to - self.now
        for work, speed in zip(self._work, speeds, strict=True):
            work.left -= speed * passed
        self.now = to

    def _speeds(self) -> list[float]:
        """Share the cores equally: at most one for each interpreter, and for each other loop."""
        sharing = Counter(work.interpreter for work in self._work if work.interpreter is not None)
        claims = len(sharing) + sum(1 for work in self._work if work.interpreter is None)
        left = max(_LEAST * self._cores, self._cores - self._taken)
        share = min(1.0, left / claims) if claims else 0.0
        return [share / sharing[work.interpreter] if work.interpreter else share for work in self._work]

    def _at(self, time: float, loop: Loop) -> None:
        self._count += 1
        heapq.heappush(self._timers, (time, self._count, loop))

    def _step(self, loop: Loop) -> None:
        try:
            step = next(loop)
        except StopIteration:
            return
        if isinstance(step, Cpu):
            self._work.append(_Work(max(step.seconds, 2 * _EPSILON), step.interpreter, loop))
        elif isinstance(step, Wait):
            self._at(self.now + max(0.0, step.seconds), loop)
        elif step.is_set:
            step.is_set = False
            self._at(self.now, loop)
        else:
            step.sleeper = loop
