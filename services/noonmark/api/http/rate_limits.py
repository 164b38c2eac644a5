"""Rate limits of callers: a token bucket each, in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST: Final = 20_000


class Rates:
    """Buckets by caller; the one unseen for longest is forgotten, which fills it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, most: int = _MOST) -> None:
        """Make it without any bucket; one begins full."""
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, per_minute: int, cost: float = 1.0) -> float:
        """Take tokens; return the seconds to wait if there are none, else 0.

        Args:
            caller: whose bucket.
            per_minute: how many come back each minute; half of it can be saved up, at least ten.
            cost: tokens to take.
        """
        now, size = self._clock(), max(per_minute / 2, 10.0)
        tokens, at = self._buckets.pop(caller, (size, now))
        tokens = min(size, tokens + (now - at) * per_minute / 60)
        short = cost - tokens
        self._buckets[caller] = (tokens - cost if short <= 0 else tokens, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if short <= 0 else short * 60 / per_minute
