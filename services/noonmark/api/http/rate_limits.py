"""Rate limits of callers: one token bucket each, per process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST: Final = 20_000


class Rates:
    """Token buckets by caller. The least recently used one is dropped, which is the same as filling it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = _MOST) -> None:
        """Create it without buckets; a new bucket is full."""
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, per_minute: int, cost: float = 1.0) -> float:
        """Take tokens; return 0, or the seconds to wait if there are not enough.

        Args:
            caller: owner of the bucket.
            per_minute: tokens added per minute; the bucket holds half of that, at least ten.
            cost: number of tokens to take.
        """
        now, size = self._clock(), max(per_minute / 2, 10.0)
        tokens, at = self._buckets.pop(caller, (size, now))
        tokens = min(size, tokens + (now - at) * per_minute / 60)
        short = cost - tokens
        self._buckets[caller] = (tokens - cost if short <= 0 else tokens, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if short <= 0 else short * 60 / per_minute
