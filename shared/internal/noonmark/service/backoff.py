"""Waits between tries: exponential, with full jitter, and ended early by the stop event."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from noonmark.service.database_errors import DbFault, classify

T = TypeVar("T")


class StoppedError(Exception):
    """The service was stopped while an operation waited for its next try."""


class Backoff:
    """Delays that double up to a cap; each is drawn uniformly between zero and its ceiling.

    Args:
        first_seconds: ceiling of the first delay.
        cap_seconds: ceiling of every later delay.
        random_share: source of numbers from 0 to 1, for tests.
    """

    def __init__(
        self,
        first_seconds: float = 0.1,
        cap_seconds: float = 5.0,
        random_share: Callable[[], float] = random.random,
    ) -> None:
        if not 0 < first_seconds <= cap_seconds:
            raise ValueError(f"a backoff needs 0 < first ({first_seconds} s) <= cap ({cap_seconds} s)")
        self._first_seconds = first_seconds
        self._cap_seconds = cap_seconds
        self._random_share = random_share
        self.failures = 0

    def next_seconds(self) -> float:
        """Count one failure and return the seconds to wait after it."""
        # The cap is reached long before 2**32; the bound keeps the power small.
        ceiling = min(self._cap_seconds, self._first_seconds * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return ceiling * self._random_share()

    def wait(self, stop: threading.Event) -> bool:
        """Wait for the next delay; return True if the stop event ended the wait."""
        return stop.wait(self.next_seconds())

    def reset(self) -> None:
        """Start over after a success."""
        self.failures = 0


def retry_transient(
    operation: Callable[[], T],
    stop: threading.Event,
    *,
    backoff: Backoff | None = None,
    on_fault: Callable[[Exception, DbFault], None] | None = None,
) -> T:
    """Call an operation until it succeeds, waiting between tries while the database is down or busy.

    Args:
        operation: one whole transaction; called again from the start.
        stop: ends the wait.
        backoff: delays between tries; reset after a success.
        on_fault: called with each fault before the wait, to log it and to drop the connection.

    Raises:
        StoppedError: the stop event was set before a try succeeded.
        Exception: the operation raised it, and another try cannot succeed.
    """
    delays = backoff or Backoff()
    while True:
        try:
            result = operation()
        except Exception as error:
            fault = classify(error)
            if fault is DbFault.PERMANENT:
                raise
            if on_fault is not None:
                on_fault(error, fault)
            if delays.wait(stop):
                raise StoppedError("stopped while waiting for the database") from error
        else:
            delays.reset()
            return result
