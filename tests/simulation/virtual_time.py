"""Everything that could differ between two runs of one seed: clocks, ids, and the jitter of retries.

The product reads the time of a host in three ways (`time.time`, `time.monotonic`, `time.perf_counter`) and draws
random numbers in three places. While a day runs, its modules get a clock that the event loop moves, and seeded dice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from noonmark.attempts import outcomes, running_attempt
from noonmark.core import ids
from noonmark.core.planning import gaps
from noonmark.dispatcher import (
    event_relay,
    pool_signers,
    refused_events,
    relay_loop,
    run_messages,
    run_relay,
)
from noonmark.store.claims import claims
from noonmark.store.jobs import requests, skipped_instants
from noonmark.store.runs import failed_attempts, leases
from noonmark.trigger import claim_loop, failure_watch, promote_loop, sweep_loop, zone_watch
from noonmark.worker.engine import recorder, starter

_TIMED = (
    ids, running_attempt, gaps, event_relay, pool_signers, refused_events, relay_loop, run_messages, run_relay, claims, requests,
    skipped_instants, claim_loop, failure_watch, promote_loop, zone_watch, recorder, starter,
)  # fmt: skip
_DICE = (outcomes, failed_attempts, leases)
_HITS = (claims, relay_loop, starter)


class VirtualTime:
    """Stands for the module `time` in the product's modules; `skew` is the error of the host's clock."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self.now = start
        self.skew = timedelta(0)

    def monotonic(self) -> float:
        """Return the seconds since an hour before the start of the day."""
        return 3600.0 + (self.now - self._start).total_seconds()

    perf_counter = monotonic

    def time(self) -> float:
        """Return the seconds since 1970 by the host's clock."""
        return (self.now + self.skew).timestamp()

    def time_ns(self) -> int:
        """Return the nanoseconds since 1970 by the host's clock."""
        return int(self.time() * 1_000_000) * 1000

    def sleep(self, _seconds: float) -> None:
        """Return at once: time moves only between steps."""


class NoPace:
    """Stands for the pauses between the passes of a loop, because the event loop decides when a step is made."""

    def hold(self, _stop: threading.Event, **_more: Any) -> None:
        """Return at once."""


class NoHints:
    """Sends no hints: nothing depends on one, and the event loop wakes the actors."""

    def due(self) -> None:
        """Do nothing."""

    ended = freed = outbox = close = due


class _Entropy:
    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def urandom(self, count: int) -> bytes:
        return self._dice.randbytes(count)


@contextmanager
def seeded(time: VirtualTime, seed: int, hit: Callable[[str], None]) -> Iterator[None]:
    """Give the product's modules this time, ids and jitter that the seed decides, and the fault points `hit`."""
    with pytest.MonkeyPatch.context() as patch:
        for module in _TIMED:
            if hasattr(module, "time"):
                patch.setattr(module, "time", time)
        patch.setattr(ids, "os", _Entropy(Random(f"ids {seed}")))
        patch.setattr(ids, "_last_ms", 0)
        patch.setattr(ids, "_counter", 0)
        for module in _DICE:
            patch.setattr(module, "_rng", Random(f"{module.__name__} {seed}"))
        for module in _HITS:
            patch.setattr(module, "hit", hit)
        # The steps of a day lie minutes apart, so the watch of leases must allow for it.
        patch.setattr(sweep_loop, "_LEASE_GAP_SECONDS", 900.0)
        yield
