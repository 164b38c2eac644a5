"""Decides how many runs to start next, and from which lanes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from noonmark.attempts.running_attempt import Delivery
from noonmark.settings import Settings
from noonmark.worker.lanes.reader import LaneReader

_WINDOW_SECONDS = 0.1
"""Short runs are started ahead: at most as many as finish in this time."""

_MOST = 1000
_SMOOTHING_SECONDS = 0.5


class SlotPlanner:
    """Capacity and lane shares. Used by the engine's thread; `completed` by the recorder's."""

    def __init__(self, settings: Settings) -> None:
        """Read the sizes from the settings."""
        self._slots = settings.worker_slots
        self._high_reserve = settings.worker_high_reserve
        self._low_share = settings.worker_low_share
        # Starts that the shares of normal and low still owe them, carried over while slots come free singly.
        self._owed_starts = [0.0, 0.0]
        self._rate = 0.0
        self._done = 0
        self._measured_at = time.monotonic()

    def completed(self, count: int) -> None:
        """Count finished runs, to measure their rate."""
        self._done += count

    def capacity(self) -> int:
        """Return how many runs can be in flight: the number of slots, or what the current rate soon finishes.

        Handlers of a few microseconds would starve on a fixed number of slots, because a start and an
        outcome take milliseconds each. Slow handlers must not be started before they can run.
        """
        now = time.monotonic()
        elapsed = now - self._measured_at
        if elapsed >= 0.05:
            pace = self._done / elapsed
            weight = min(1.0, elapsed / _SMOOTHING_SECONDS)
            self._rate += (pace - self._rate) * weight
            self._done, self._measured_at = 0, now
        return max(self._slots, min(int(self._rate * _WINDOW_SECONDS), 10 * self._slots))

    def pick(self, readers: Sequence[LaneReader], *, in_flight: int, lower_in_flight: int) -> list[Delivery]:
        """Take messages for the next start: high first, with a small share reserved for each lower lane.

        Args:
            readers: one per lane, in the order of the lanes.
            in_flight: number of runs that were started and are not recorded yet.
            lower_in_flight: number of those that are not of the high lane. They never fill the reserve, so
                the high lane does not wait for one of them to end.
        """
        capacity = self.capacity()
        free = min(capacity - in_flight, _MOST)
        if free <= 0:
            return []
        high, normal, low = readers
        lower_free = max(0, min(free, capacity - int(capacity * self._high_reserve) - lower_in_flight))
        share = free * self._low_share
        kept_low = min(int(self._owed_starts[1] + share), len(low.buffer), lower_free)
        kept_normal = min(int(self._owed_starts[0] + share), len(normal.buffer), lower_free - kept_low)
        picked = _take(high, free - kept_normal - kept_low)
        lower_free = min(lower_free, free - len(picked))
        from_normal = _take(normal, lower_free - kept_low)
        from_low = _take(low, lower_free - len(from_normal))
        picked += from_normal + from_low
        self._count_owed(len(picked), len(from_normal), len(from_low))
        return picked

    def _count_owed(self, started: int, normal: int, low: int) -> None:
        """Update what the lower lanes are owed after a start; at most one run each is carried over."""
        share = started * self._low_share
        self._owed_starts = [
            min(1.0, max(0.0, owed + share - taken))
            for owed, taken in zip(self._owed_starts, (normal, low), strict=True)
        ]


def _take(reader: LaneReader, most: int) -> list[Delivery]:
    buffer = reader.buffer
    taken: list[Delivery] = []
    if most <= 0 or not buffer:
        return taken
    while len(taken) < most and buffer:
        delivery = buffer.popleft()
        # A partition that was lost meanwhile belongs to another worker, which starts its messages.
        if reader.consumer.is_current(delivery.record):
            taken.append(delivery)
    # Also if all of them belong to another worker: the buffer has shrunk, so a paused lane must resume.
    reader.taken()
    return taken
