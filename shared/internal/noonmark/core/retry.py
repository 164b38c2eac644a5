"""Whether a failed attempt is tried again, and after how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, Final

from noonmark.core.failures import NO_FACTS, Failure, FailureRules

MIN_JITTER_SHARE: Final = 0.05
"""Full jitter never goes below this share of the delay: a retry at once mostly meets the same trouble."""

MAX_DELAY_SECONDS: Final = 36_525 * 86_400
"""A hundred years: what a policy may name at most."""

MAX_FACTOR: Final = 1_000_000

MIN_SNOOZE_SECONDS: Final = 1.0
"""A handler that snoozes without a delay must not make a loop of its run."""

_MAX_EXPONENT: Final = 100_000


class Jitter(StrEnum):
    """How the delay is spread, so that runs that failed together are not retried together."""

    FULL = "full"
    NONE = "none"


class DeadReason(StrEnum):
    """Why a run is not tried again."""

    RETRIES_EXHAUSTED = "retries_exhausted"
    NOT_RETRYABLE = "not_retryable"
    MAX_AGE = "max_age"
    """Another attempt would begin later after the run's instant than the retry policy allows."""
    DEADLINE = "deadline"
    """Another attempt would begin after the run's total deadline, or this one would have."""


@dataclass(frozen=True, slots=True)
class RetryIn:
    """The run is tried again after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Dead:
    """The run becomes a dead letter."""

    reason: DeadReason


@dataclass(frozen=True, slots=True)
class Age:
    """The age of a run since its instant, and the limit of its age; in seconds.

    Attributes:
        seconds: from the run's instant to now, by the database's clock.
        deadline_seconds: most time from the instant to the end of the last attempt; None: no limit.
        counts: False if the instant is in the past on purpose, as in a backfill; then no limit applies.
    """

    seconds: float = 0.0
    deadline_seconds: float | None = None
    counts: bool = True

    @property
    def left_seconds(self) -> float:
        """The seconds until the total deadline."""
        if self.deadline_seconds is None or not self.counts:
            return math.inf
        return self.deadline_seconds - self.seconds


NEW: Final = Age()
"""The age of a run at its instant, without a deadline."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, when and after which failures a run is retried. `max_retries` 3 means at most four attempts.

    Attributes:
        max_retries: attempts after the first.
        delay_seconds: delay after the first failed attempt, before jitter.
        factor: what each further delay is multiplied by; 1 is a fixed delay, below 1 a shrinking one.
        max_delay_seconds: no delay is longer.
        jitter: `full` draws the delay uniformly from 5 % to 100 % of its value.
        delays: delays one by one, before jitter, in place of `delay_seconds` and `factor`; the last repeats.
        max_age_seconds: no attempt begins later after the run's instant.
        only_on: only these failures are retried, whatever the kind's default is.
        never_on: these failures are never retried; takes precedence over everything else.
    """

    max_retries: int = 3
    delay_seconds: float = 60.0
    factor: float = 2.0
    max_delay_seconds: float = 3600.0
    jitter: Jitter = Jitter.FULL
    delays: tuple[float, ...] = ()
    max_age_seconds: float | None = None
    only_on: FailureRules | None = None
    never_on: FailureRules | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "jitter", Jitter(self.jitter))  # rows hold the plain word
        object.__setattr__(self, "delays", tuple(self.delays))
        if self.max_retries < 0:
            raise ValueError(f"max_retries is {self.max_retries}; use a whole number of at least 0")
        for name in ("delay_seconds", "max_delay_seconds"):
            _check_seconds(name, getattr(self, name))
        for delay in self.delays:
            _check_seconds("delays", delay)
        if self.max_age_seconds is not None:
            _check_seconds("max_age_seconds", self.max_age_seconds)
        if not 0 < self.factor <= MAX_FACTOR:
            raise ValueError(f"factor is {self.factor}; use a number above 0 and up to {MAX_FACTOR}")

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> RetryPolicy:
        """Read a policy as `stored` wrote it; what is absent has its default."""
        rules = {name: FailureRules.of(stored[name]) for name in ("only_on", "never_on") if stored.get(name)}
        return cls(**{**stored, **rules})

    def stored(self) -> dict[str, Any]:
        """Return the policy as JSON values: the five plain fields, and of the others those that are set."""
        written: dict[str, Any] = {
            "max_retries": self.max_retries,
            "delay_seconds": self.delay_seconds,
            "factor": self.factor,
            "max_delay_seconds": self.max_delay_seconds,
            "jitter": self.jitter.value,
        }
        if self.delays:
            written["delays"] = list(self.delays)
        if self.max_age_seconds is not None:
            written["max_age_seconds"] = self.max_age_seconds
        for name, rules in (("only_on", self.only_on), ("never_on", self.never_on)):
            if rules is not None:
                written[name] = rules.written()
        return written

    @property
    def max_attempts(self) -> int:
        """How often a run is tried at most."""
        return self.max_retries + 1

    def backoff_seconds(self, attempt: int) -> float:
        """Return the delay after failed attempt number `attempt` (1, 2, 3 …), before jitter."""
        if attempt < 1:
            raise ValueError(f"attempt is {attempt}; the first attempt is number 1")
        if self.delays:
            chosen = self.delays[min(attempt, len(self.delays)) - 1]
            return float(min(chosen, self.max_delay_seconds))
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

    def may_follow(self, failure: Failure) -> bool:
        """Tell whether such a failure is tried again: `never_on` first, then `only_on`, then its kind."""
        if self.never_on is not None and self.never_on.match(failure):
            return False
        if failure.retry_in is not None:  # the handler itself asks for it
            return True
        if self.only_on is not None:
            return self.only_on.match(failure)
        return failure.retryable is not False


def policy_of_row(stored: Any) -> RetryPolicy:
    """Read the policy of a job that any version or person may have written.

    One that cannot be read permits no retry, so that nothing is repeated against rules nobody knows.
    """
    try:
        return RetryPolicy.of(stored)
    except (TypeError, ValueError, AttributeError):
        return RetryPolicy(max_retries=0)


def decide(
    policy: RetryPolicy, attempt: int, failure: Failure = NO_FACTS, *, rng: Random, age: Age = NEW
) -> RetryIn | Dead:
    """Return what follows failed attempt number `attempt` (1, 2, 3 …) of a run.

    Args:
        policy: the job's retry policy.
        attempt: attempts of the retry budget used, the failed one included.
        failure: what is known about it. A delay that the target asked for lengthens the policy's own, up to
            its cap; one that the handler chose takes its place, up to the same cap.
        rng: source of the jitter.
        age: of the run; the next attempt must begin within its bounds.
    """
    if not policy.may_follow(failure):
        return Dead(DeadReason.NOT_RETRYABLE)
    if attempt > policy.max_retries:
        return Dead(DeadReason.RETRIES_EXHAUSTED)
    cap = float(policy.max_delay_seconds)
    if failure.retry_in is not None and failure.retry_in >= 0:
        return within_age(policy, min(failure.retry_in, cap), age)
    delay = policy.delay_for(attempt, rng)
    asked = failure.retry_after_seconds
    if asked is not None and 0 < asked < math.inf:
        delay = max(delay, min(asked, cap))
    return within_age(policy, delay, age)


def snooze(policy: RetryPolicy, seconds: float, *, age: Age = NEW) -> RetryIn | Dead:
    """Return what follows an attempt that asked to be continued after `seconds`, without having failed."""
    return within_age(policy, min(max(seconds, MIN_SNOOZE_SECONDS), MAX_DELAY_SECONDS), age)


def within_age(policy: RetryPolicy, delay: float, age: Age) -> RetryIn | Dead:
    """Return whether an attempt may begin after `delay` seconds; 0 asks about one that begins now."""
    if age.left_seconds <= delay:
        return Dead(DeadReason.DEADLINE)
    if age.counts and policy.max_age_seconds is not None and age.seconds + delay > policy.max_age_seconds:
        return Dead(DeadReason.MAX_AGE)
    return RetryIn(delay)


def _check_seconds(name: str, value: float) -> None:
    if not 0 <= value <= MAX_DELAY_SECONDS:
        raise ValueError(f"{name} is {value}; use a number from 0 to {MAX_DELAY_SECONDS}")
