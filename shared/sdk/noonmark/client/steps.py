"""A call as steps without I/O: when to send, when to wait, when to give up.

The blocking and the async client drive the same generators.
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
"""Statuses that a retry may avoid."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the result is a `Reply`, or the `NoAnswerError` of a failed attempt."""

    call: Call[Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """A raw response.

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
    """How often and how fast a call is retried.

    Attributes:
        most: the number of retries.
        base_seconds: the upper bound of the first delay; the bound doubles with each further one.
        cap_seconds: the longest delay, unless the server asks for a longer one.
        uniform: draws a delay between two bounds.
        monotonic: seconds.
    """

    most: int = 4
    base_seconds: float = 0.2
    cap_seconds: float = 5.0
    uniform: Callable[[float, float], float] = random.uniform
    monotonic: Callable[[], float] = time.monotonic

    def delay(self, failed: int, asked: float) -> float:
        """Return the seconds before the next attempt: full jitter, and at least what the server asked for.

        Args:
            failed: attempts so far.
            asked: the seconds of `Retry-After`; 0 if there is none.
        """
        bound = min(self.cap_seconds, self.base_seconds * 2.0 ** (failed - 1))
        return asked + self.uniform(0.0, bound)


def execute(call: Call[T], retries: Retries, timeout: float) -> Steps[T]:
    """Send a call, retry it if that is safe and may help, and read the response.

    Args:
        call: what to send.
        retries: how often and how fast to retry.
        timeout: seconds for all attempts and the time between them.

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
    """Return the seconds that `Retry-After` asks for, as a number or a date; 0 if it cannot be read."""
    given = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if given.isdecimal():
        return float(given)
    try:
        at = parsedate_to_datetime(given)
    except ValueError:
        return 0.0
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds())
