"""What a handler raises to say itself how its run goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from noonmark.core.failures import Failure, exception_names

MAX_REASON_CHARS: Final = 2000
MAX_SECONDS: Final = 366 * 86_400.0


class RunSignal(Exception):  # noqa: N818 - these are orders, not errors
    """What the four orders have in common: a reason for people, and in how many seconds, where it matters."""

    word: ClassVar[str]

    def __init__(self, reason: str | None, seconds: float | None = None) -> None:
        """Take the reason as text of at most 2,000 characters."""
        self.reason = str(reason)[:MAX_REASON_CHARS] if reason is not None else None
        self.seconds = seconds
        super().__init__(self.reason or "")


class Retry(RunSignal):
    """The attempt failed; the next one, if the retry policy has one left, begins after `in_`.

    The policy's `max_delay_seconds` bounds the delay, and its budget and ages hold.
    """

    word = "retry"

    def __init__(self, *, in_: float | timedelta, reason: str | None = None) -> None:
        """Take the delay in seconds, or as a timedelta.

        Raises:
            ValueError: no number of seconds from 0 to 366 days.
        """
        super().__init__(reason, _seconds(in_))


class Snooze(RunSignal):
    """Not now: the run goes on after `in_`, and the attempt is not counted. Nothing has failed.

    A snooze lasts at least a second. A job that may snooze for ever should have `deadline_seconds`.
    """

    word = "snooze"

    def __init__(self, *, in_: float | timedelta, reason: str | None = None) -> None:
        """Take the delay in seconds, or as a timedelta.

        Raises:
            ValueError: no number of seconds from 0 to 366 days.
        """
        super().__init__(reason, _seconds(in_))


class Cancel(RunSignal):
    """The run is not needed any more: it ends as `cancelled`, for the reason given."""

    word = "cancel"

    def __init__(self, reason: str | None = None) -> None:
        """Take the reason."""
        super().__init__(reason)


class Discard(RunSignal):
    """The run failed, and neither a retry nor a person can mend it: no retry, and no dead letter."""

    word = "discard"

    def __init__(self, reason: str | None = None) -> None:
        """Take the reason."""
        super().__init__(reason)


def to_wire(error: BaseException) -> dict[str, Any]:
    """Write down, as JSON values, what a parent process must know of what its child raised."""
    if isinstance(error, RunSignal):
        return {"signal": error.word, "reason": error.reason, "seconds": error.seconds}
    return {"exception": list(exception_names(type(error)))}


def from_wire(said: Mapping[str, Any]) -> RunSignal | Failure:
    """Read what `to_wire` wrote.

    Raises:
        ValueError: an order that there is not, or seconds that make no sense.
    """
    word, reason = said.get("signal"), said.get("reason")
    if word is None:
        return Failure(exception=tuple(str(name) for name in said.get("exception", ())))
    if word in {Cancel.word, Discard.word}:
        return (Cancel if word == Cancel.word else Discard)(reason)
    if word in {Retry.word, Snooze.word}:
        return (Retry if word == Retry.word else Snooze)(in_=said.get("seconds") or 0.0, reason=reason)
    raise ValueError(f"{word!r} is no order of a handler")


def _seconds(value: float | timedelta) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or math.isnan(seconds):
        raise ValueError(f"in_ is {value!r}; use a number of seconds or a timedelta")
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"in_ is {value!r}; use 0 to {MAX_SECONDS:.0f} seconds (366 days)")
    return float(seconds)
