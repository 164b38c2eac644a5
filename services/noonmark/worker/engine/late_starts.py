"""Which runs began long after their worker had started them, so that they may also end later.

A run is taken from its worker 60 s past the longest timeout of its start batch, even if the worker lives.
That counts from the start statement. A run that waits in the worker, for a thread, a child process or
the import of its handlers, must not be taken while its handler is within its timeout: it would run twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt

_AT_ONCE_SECONDS: Final = 5.0
"""A run that began within this time is covered by the 60 s, like every other."""

_AHEAD_SECONDS: Final = 20.0
"""The time of a batch whose run still waits is extended this far ahead, so that it is seldom written."""


class LateStarts:
    """Tracks how far the time of each start batch was extended. Used by the engine's thread."""

    def __init__(self) -> None:
        self._extended: dict[int, float] = {}

    def due(self, attempts: Iterable[RunningAttempt], now: float) -> Mapping[int, float]:
        """Return the batches to extend now: seconds from the start of each to the end of its last timeout.

        Args:
            attempts: the runs in flight.
            now: monotonic time in seconds.
        """
        wanted: dict[int, float] = {}
        held: set[int] = set()
        for attempt in attempts:
            batch = attempt.run.batch_id
            held.add(batch)
            waited = (attempt.began_at or now) - attempt.taken_at
            if waited <= _AT_ONCE_SECONDS:
                continue
            ends = waited + attempt.timeout_seconds
            if ends > self._extended.get(batch, 0.0):
                ends += 0.0 if attempt.began_at else _AHEAD_SECONDS
                wanted[batch] = max(ends, wanted.get(batch, 0.0))
        self._extended = {batch: ends for batch, ends in self._extended.items() if batch in held}
        return wanted

    def extended(self, batches: Mapping[int, float]) -> None:
        """Record that these batches were extended, as `due` returned them."""
        self._extended |= batches
