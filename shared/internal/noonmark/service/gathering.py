"""Lets a loop wait for more work while much arrives: a few large batches cost less than many small ones."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final

_SMOOTHING_SECONDS: Final = 0.25
_STEP_SECONDS: Final = 0.005

_LEAST_PER_SECOND: Final = 2000.0
_SECONDS_PER_RATE: Final = 1 / 160_000
"""With 4,000 things per second a batch follows the last one after 25 ms and has 100; with 10,000, 625."""


class Gathering:
    """Decides whether the next batch of a loop waits for more things.

    A batch has what has come since the one before it. If several processes share the work, that is little,
    and the fixed cost of a batch becomes most of its cost. So the more arrives, the farther apart two batches
    begin. With a light load nothing waits.
    """

    def __init__(self, *, most_seconds: float, enough: int) -> None:
        """Set the bounds.

        Args:
            most_seconds: the longest time between the starts of two batches because of a wait.
            enough: a batch of so many things does not wait for more.
        """
        self._most_seconds = most_seconds
        self._enough = enough
        self._recent = 0.0
        self._began_at = 0.0

    def took(self, count: int) -> None:
        """Note that a batch of so many things begins."""
        now = time.monotonic()
        self._recent = self._decayed(now) + count
        self._began_at = now

    def left_seconds(self, waiting: int) -> float:
        """Return how long a batch that would have so many things should wait for more."""
        if waiting >= self._enough:
            return 0.0
        now = time.monotonic()
        rate = self._decayed(now) / _SMOOTHING_SECONDS
        if rate < _LEAST_PER_SECOND:
            return 0.0
        return max(0.0, self._began_at + min(self._most_seconds, rate * _SECONDS_PER_RATE) - now)

    def hold(self, stop: threading.Event, waiting: Callable[[], int]) -> None:
        """Wait until the next batch should begin.

        Args:
            stop: ends the wait.
            waiting: returns how many things it would have.
        """
        while (left := self.left_seconds(waiting())) > 0:
            if stop.wait(min(left, _STEP_SECONDS)):
                return

    def _decayed(self, now: float) -> float:
        """Return the recent number of things, as it is now."""
        return self._recent * math.exp((self._began_at - now) / _SMOOTHING_SECONDS)
