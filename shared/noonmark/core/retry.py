"""Whether a failed attempt is tried again, and after how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

MIN_JITTER_SHARE: Final = 0.05
"""Full jitter never goes below this share of the delay: a retry at once mostly meets the same trouble."""

MAX_DELAY_SECONDS: Final = 36_525 * 86_400
"""A hundred years: what a policy may name at most."""

MAX_FACTOR: Final = 1_000_000

_MAX_EXPONENT: Final = 100_000


class Jitter(StrEnum):
    """How the delay is spread, so that runs that failed together are not retried together."""

    FULL = "full"
    NONE = "none"


class DeadReason(StrEnum):
    """Why a run is not tried again."""

    RETRIES_EXHAUSTED = "retries_exhausted"
    NOT_RETRYABLE = "not_retryable"


@dataclass(frozen=True, slots=True)
class RetryIn:
    """The run is tried again after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Dead:
    """The run becomes a dead letter."""

    reason: DeadReason


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with a cap. `max_retries` 3 means at most four attempts.

    Attributes:
        max_retries: attempts after the first.
        delay_seconds: delay after the first failed attempt, before jitter.
        factor: what each further delay is multiplied by; 1 is a fixed delay, below 1 a shrinking one.
        max_delay_seconds: no delay is longer.
        jitter: `full` draws the delay evenly from a small share of it up to all of it.
    """

    max_retries: int = 3
    delay_seconds: float = 60.0
    factor: float = 2.0
    max_delay_seconds: float = 3600.0
    jitter: Jitter = Jitter.FULL

    def __post_init__(self) -> None:
        object.__setattr__(self, "jitter", Jitter(self.jitter))  # rows hold the plain word
        if self.max_retries < 0:
            raise ValueError(f"max_retries is {self.max_retries}; use a whole number from 0 on")
        for name in ("delay_seconds", "max_delay_seconds"):
            value = getattr(self, name)
            if not 0 <= value <= MAX_DELAY_SECONDS:
                raise ValueError(f"{name} is {value}; use a number from 0 to {MAX_DELAY_SECONDS}")
        if not 0 < self.factor <= MAX_FACTOR:
            raise ValueError(f"factor is {self.factor}; use a number above 0 and up to {MAX_FACTOR}")

    @property
    def max_attempts(self) -> int:
        """How often a run is tried at most."""
        return self.max_retries + 1

    def backoff_seconds(self, attempt: int) -> float:
        """Return the delay after failed attempt number `attempt` (1, 2, 3 …), before jitter."""
        if attempt < 1:
            raise ValueError(f"attempt is {attempt}; the first attempt is number 1")
        if self.delay_seconds == 0:
            return 0.0
        try:
            grown = self.delay_seconds * self.factor ** min(attempt - 1, _MAX_EXPONENT)
        except OverflowError:  # larger than any float, so larger than the cap
            return float(self.max_delay_seconds)
        return min(grown, float(self.max_delay_seconds))

    def delay_for(self, attempt: int, rng: Random) -> float:
        """Return the delay in seconds after failed attempt number `attempt` (1, 2, 3 …)."""
        delay = self.backoff_seconds(attempt)
        return rng.uniform(MIN_JITTER_SHARE * delay, delay) if self.jitter is Jitter.FULL else delay


def decide(
    policy: RetryPolicy,
    attempt: int,
    *,
    rng: Random,
    retryable: bool = True,
    retry_after_seconds: float | None = None,
) -> RetryIn | Dead:
    """Return what follows failed attempt number `attempt` (1, 2, 3 …) of a run.

    Args:
        policy: the job's retry policy.
        attempt: attempts of the retry budget used, the failed one included.
        rng: source of the jitter.
        retryable: False where the failure says that another attempt cannot succeed.
        retry_after_seconds: what the target asked for. It can lengthen the delay up to the policy's cap;
            a value that makes no sense (negative, not finite) is ignored.
    """
    if not retryable:
        return Dead(DeadReason.NOT_RETRYABLE)
    if attempt > policy.max_retries:
        return Dead(DeadReason.RETRIES_EXHAUSTED)
    delay = policy.delay_for(attempt, rng)
    if retry_after_seconds is not None and 0 < retry_after_seconds < math.inf:
        delay = max(delay, min(retry_after_seconds, float(policy.max_delay_seconds)))
    return RetryIn(delay)
