"""Keeps the steps of a long check to a share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Pacer:
    """Pauses between steps, so that they take at most a share of the time.

    Args:
        share: above 0, at most 1. With 0.2, a step of 100 ms is followed by 400 ms without one.
        clock: seconds.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        share: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._share = share
        self._clock = clock
        self._sleep = sleep
        self._next_at: float | None = None
        self.steps = 0
        self.busy_seconds = 0.0

    @contextmanager
    def step(self) -> Iterator[None]:
        """Wait until the next step may begin, and measure it.

        What the caller does between two steps counts towards the pause.
        """
        begun = self._clock()
        if self._next_at is not None and self._next_at > begun:
            self._sleep(self._next_at - begun)
            begun = self._clock()
        yield
        ended = self._clock()
        self.steps += 1
        self.busy_seconds += ended - begun
        self._next_at = ended + (ended - begun) * (1 - self._share) / self._share
