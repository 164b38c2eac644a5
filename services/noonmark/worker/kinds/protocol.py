"""The port that every kind of work but Python handlers stands behind."""

from __future__ import annotations

from typing import Protocol

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.finish import Outcome


class Kind(Protocol):
    """Executes attempts of one kind, on the event loop of the worker."""

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Execute one attempt.

        It is cancelled at the end of the attempt's time, when the run is cancelled or handed back, and when
        the lease is lost; it must not return before nothing of the attempt runs any more, and let the
        cancellation through. What else it raises fails the attempt.
        """

    async def close(self) -> None:
        """Release what the kind holds; called once nothing of it runs."""
