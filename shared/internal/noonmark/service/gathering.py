"""Lets a loop wait for more work while much arrives: a few large batches cost less than many small ones."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final

_SMOOTHING_SECONDS: Final = 0.25
_STEP_SECONDS: Final = 0.005

_LEAST_PER_SECOND: Final = 6000.0
_SECONDS_PER_RATE: Final = 1 / 80_000
_MOST_SECONDS: Final = 0.08
"""With 8,000 things per second a batch follows the last one after 25 ms and has 200; with 12,400, 1,000."""


class Gathering:
    """Decides whether the next batch of a loop waits for more things.

    A batch has what has come since the one before it. If several processes share the work, that is little,
    and the fixed cost of a batch becomes most of its cost. So the more arrives, the farther apart two batches
    begin. With a light load nothing waits.
    """

    def __init__(self, enough: int) -> None:
        """Set how many things are enough: a batch with as many does not wait for more."""
        self._enough = enough
        self._recent = 0.0
        self._noted_at = self._until = 0.0

    def took(self, count: int) -> None:
        """Note that a batch of so many things begins."""
        now = time.monotonic()
        self._recent = self._recent * math.exp((self._noted_at - now) / _SMOOTHING_SECONDS) + count
        self._noted_at = now
        excess = self._recent / _SMOOTHING_SECONDS - _LEAST_PER_SECOND
        self._until = now + min(_MOST_SECONDS, max(0.0, excess) * _SECONDS_PER_RATE)

    def left_seconds(self, waiting: int) -> float:
        """Return how long a batch that would have so many things should wait for more."""
        return 0.0 if waiting >= self._enough else max(0.0, self._until - time.monotonic())

    def hold(self, stop: threading.Event, waiting: Callable[[], int]) -> None:
        """Wait until the next batch should begin.

        Args:
            stop: ends the wait.
            waiting: returns how many things it would have.
        """
        while (left := self.left_seconds(waiting())) > 0:
            if stop.wait(min(left, _STEP_SECONDS)):
                return
