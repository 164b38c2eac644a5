"""Decides how many runs the next start can have, and from which lanes they are taken."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from noonmark.attempts.running_attempt import Delivery
from noonmark.settings import Settings
from noonmark.worker.in_flight import Load
from noonmark.worker.lanes.reader import LaneReader

_WINDOW_SECONDS: Final = 0.1
"""Short runs are started ahead: at most as many as end in this time."""

_MOST_OPEN: Final = 10
"""And at most this many times the slots."""

_MOST_IN_FLIGHT: Final = 20
"""The same with those that have ended and wait to be recorded: a worker that dies repeats them all."""

_MEASURE_SECONDS: Final = 0.05

_MOST_STARTS: Final = 1000
_SMOOTHING_SECONDS: Final = 0.5
_FORGET_SECONDS: Final = 2.0


class SlotPlanner:
    """Capacity and lane shares. Used by the engine's thread."""

    def __init__(self, settings: Settings) -> None:
        """Read the sizes from the settings."""
        self._slots = settings.worker_slots
        self._high_reserve = settings.worker_high_reserve
        self._low_share = settings.worker_low_share
        # Starts that the shares of normal and low still owe them, carried over while slots come free singly.
        self._owed_starts = [0.0, 0.0]
        # Runs ended per second in which at least one was open; and the load when that was last measured.
        self._rate = 0.0
        self._last = Load(0, 0, 0)
        self._measured_at = self._ended_at = time.monotonic()

    def capacity(self, load: Load) -> int:
        """Return how many runs can be open: the number of slots, or what the current rate soon ends.

        Handlers of a few microseconds would starve on a fixed number of slots, because a start takes
        milliseconds. Slow handlers must not be started before they can run. The time in which none is open
        does not count: it is the database's, and a start that takes long needs more runs, not fewer.
        """
        now = time.monotonic()
        elapsed = now - self._measured_at
        if elapsed >= _MEASURE_SECONDS:
            ended, busy = load.ended - self._last.ended, load.busy_seconds - self._last.busy_seconds
            if ended:
                self._ended_at = now
            if now - self._ended_at > _FORGET_SECONDS:
                self._rate = 0.0
            elif busy > 0:
                self._rate += (ended / busy - self._rate) * min(1.0, elapsed / _SMOOTHING_SECONDS)
            self._last, self._measured_at = load, now
        return max(self._slots, min(int(self._rate * _WINDOW_SECONDS), _MOST_OPEN * self._slots))

    def free(self, load: Load) -> int:
        """Return how many runs the next start can have."""
        in_flight = _MOST_IN_FLIGHT * self._slots - load.in_flight
        return min(self.capacity(load) - load.open, in_flight, _MOST_STARTS)

    def pick(self, readers: Sequence[LaneReader], load: Load) -> list[Delivery]:
        """Take messages for the next start: high first, with a small share reserved for each lower lane.

        Args:
            readers: one per lane, in the order of the lanes.
            load: the runs in flight. The lower lanes never fill the reserve, so the high lane does not wait
                for one of their runs to end.
        """
        capacity, free = self.capacity(load), self.free(load)
        high, normal, low = readers
        ahead = load.open >= self._slots and not high.buffer
        if free <= 0 or (ahead and free < min(capacity, _MOST_STARTS) // 2):
            # Every slot has its run. More are started ahead in large batches: a small one costs as much.
            return []
        lower_free = max(0, min(free, capacity - int(capacity * self._high_reserve) - load.open_lower))
        share = free * self._low_share
        kept_low = min(int(self._owed_starts[1] + share), len(low.buffer), lower_free)
        kept_normal = min(int(self._owed_starts[0] + share), len(normal.buffer), lower_free - kept_low)
        picked = _take(high, free - kept_normal - kept_low)
        lower_free = min(lower_free, free - len(picked))
        from_normal = _take(normal, lower_free - kept_low)
        from_low = _take(low, lower_free - len(from_normal))
        picked += from_normal + from_low
        # At most one run is carried over for each.
        self._owed_starts = [
            min(1.0, max(0.0, owed + len(picked) * self._low_share - len(taken)))
            for owed, taken in zip(self._owed_starts, (from_normal, from_low), strict=True)
        ]
        return picked


def _take(reader: LaneReader, most: int) -> list[Delivery]:
    buffer = reader.buffer
    taken: list[Delivery] = []
    if most <= 0 or not buffer:
        return taken
    epoch, is_current = -1, False
    while len(taken) < most and buffer:
        delivery = buffer.popleft()
        if delivery.record.epoch != epoch:
            epoch, is_current = delivery.record.epoch, reader.consumer.is_current(delivery.record)
        # A partition that was lost meanwhile belongs to another worker, which starts its messages.
        if is_current:
            taken.append(delivery)
    # Also if all of them belong to another worker: the buffer has shrunk, so a paused lane must resume.
    reader.taken()
    return taken
