"""Exceptions with which a handler decides how its run continues."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from noonmark.core.failures import Failure, exception_names

MAX_REASON_CHARS: Final = 2000
MAX_SECONDS: Final = 366 * 86_400.0


class RunSignal(Exception):  # noqa: N818 - these are signals, not errors
    """The base of the four signals: a reason for people, and a delay in seconds for two of them."""

    word: ClassVar[str]

    def __init__(self, reason: str | None, seconds: float | None = None) -> None:
        """Store the reason, cut to 2,000 characters."""
        self.reason = str(reason)[:MAX_REASON_CHARS] if reason is not None else None
        self.seconds = seconds
        super().__init__(self.reason or "")


class Retry(RunSignal):
    """The attempt failed; the next one, if the retry policy has one left, begins after `in_`.

    `max_delay_seconds` limits the delay; the retry budget, the maximum age and the deadline still apply.
    """

    word = "retry"

    def __init__(self, *, in_: float | timedelta, reason: str | None = None) -> None:
        """Set the delay in seconds, or as a timedelta.

        Raises:
            ValueError: the delay is not a number of seconds from 0 to 366 days.
        """
        super().__init__(reason, _seconds(in_))


class Snooze(RunSignal):
    """Not now: the run continues after `in_`, and the attempt is not counted. Nothing has failed.

    A snooze lasts at least one second. Set `deadline_seconds` on a job that could snooze indefinitely.
    """

    word = "snooze"

    def __init__(self, *, in_: float | timedelta, reason: str | None = None) -> None:
        """Set the delay in seconds, or as a timedelta.

        Raises:
            ValueError: the delay is not a number of seconds from 0 to 366 days.
        """
        super().__init__(reason, _seconds(in_))


class Cancel(RunSignal):
    """The run is not needed any more: it ends as `cancelled`, with this reason."""

    word = "cancel"

    def __init__(self, reason: str | None = None) -> None:
        """Set the reason."""
        super().__init__(reason)


class Discard(RunSignal):
    """The run failed, and neither a retry nor a person can fix it: no retry, and no dead letter."""

    word = "discard"

    def __init__(self, reason: str | None = None) -> None:
        """Set the reason."""
        super().__init__(reason)


def to_wire(error: BaseException) -> dict[str, Any]:
    """Encode an exception of a child process for its parent, as JSON values."""
    if isinstance(error, RunSignal):
        return {"signal": error.word, "reason": error.reason, "seconds": error.seconds}
    return {"exception": list(exception_names(type(error)))}


def from_wire(said: Mapping[str, Any]) -> RunSignal | Failure:
    """Decode what `to_wire` encoded.

    Raises:
        ValueError: the signal is unknown, or its delay is not valid.
    """
    word, reason = said.get("signal"), said.get("reason")
    if word is None:
        return Failure(exception=tuple(str(name) for name in said.get("exception", ())))
    if word in {Cancel.word, Discard.word}:
        return (Cancel if word == Cancel.word else Discard)(reason)
    if word in {Retry.word, Snooze.word}:
        return (Retry if word == Retry.word else Snooze)(in_=said.get("seconds") or 0.0, reason=reason)
    raise ValueError(f"{word!r} is not a signal of a handler")


def _seconds(value: float | timedelta) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or math.isnan(seconds):
        raise ValueError(f"in_ is {value!r}; use a number of seconds or a timedelta")
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"in_ is {value!r}; use 0 to {MAX_SECONDS:.0f} seconds (366 days)")
    return float(seconds)
