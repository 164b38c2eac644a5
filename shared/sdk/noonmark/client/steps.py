"""What a call does, as steps without I/O: when to send, when to wait, when to give up.

The same generators are driven by a client that blocks and by one that is awaited.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias, TypeVar

from noonmark.client.answers import Answer, Call
from noonmark.client.errors import NoAnswerError

T = TypeVar("T")

PASSING: Final = frozenset({429, 502, 503, 504})
"""Statuses that another try may not meet."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the reply is a `Reply`, or the `NoAnswerError` of a failed try."""

    call: Call[Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What came over the wire.

    Attributes:
        status: the HTTP status.
        reason: its phrase.
        headers: by name.
        body: not decoded.
    """

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes


Outcome: TypeAlias = "Reply | NoAnswerError | None"
Steps: TypeAlias = "Generator[Send | Wait, Outcome, T]"


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how fast a call is tried again.

    Attributes:
        most: tries after the first.
        base_seconds: the first delay is at most this, each further one at most twice the last bound.
        cap_seconds: no delay is longer, unless the server asks for it.
        uniform: draws a delay between two bounds.
        monotonic: seconds.
    """

    most: int = 4
    base_seconds: float = 0.2
    cap_seconds: float = 5.0
    uniform: Callable[[float, float], float] = random.uniform
    monotonic: Callable[[], float] = time.monotonic

    def delay(self, failed: int, asked: float) -> float:
        """Return the seconds before the next try: full jitter, and no less than the server asked for.

        Args:
            failed: tries so far.
            asked: what `Retry-After` says; 0 for nothing.
        """
        bound = min(self.cap_seconds, self.base_seconds * 2.0 ** (failed - 1))
        return asked + self.uniform(0.0, bound)


def execute(call: Call[T], retries: Retries, timeout: float) -> Steps[T]:
    """Send a call, again where that is safe and may help, and read its answer.

    Args:
        call: what to send.
        retries: how often and how fast.
        timeout: seconds for all tries and the time between them.

    Raises:
        ApiError: the server refused.
        NoAnswerError: no answer came in time.
    """
    end = retries.monotonic() + timeout
    failed = 0
    while True:
        outcome = yield Send(call, max(0.001, end - retries.monotonic()))
        assert outcome is not None
        if isinstance(outcome, Reply) and outcome.status not in PASSING:
            return _answer(call, outcome)
        failed += 1
        asked = retry_after(outcome.headers, datetime.now(UTC)) if isinstance(outcome, Reply) else 0.0
        pause = retries.delay(failed, asked)
        late = retries.monotonic() + pause >= end
        if not call.repeatable or failed > retries.most or late:
            if isinstance(outcome, NoAnswerError):
                raise outcome
            return _answer(call, outcome)
        yield Wait(pause)


def _answer(call: Call[T], reply: Reply) -> T:
    return call.parse(Answer.of(reply.status, reply.reason, reply.headers, reply.body))


def retry_after(headers: dict[str, str], now: datetime) -> float:
    """Return the seconds that `Retry-After` asks for, as a number or a date; 0 for what cannot be read."""
    given = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if given.isdecimal():
        return float(given)
    try:
        at = parsedate_to_datetime(given)
    except ValueError:
        return 0.0
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds())
