"""The retry rule: which state a run has after an attempt that did not succeed.

The worker, its heartbeat process and the callbacks use this one rule. Two cases are decided elsewhere: an
attempt whose worker was lost has its own budget (`requeue_lost_runs.sql`), and a cancel that is committed
before the outcome is written always wins (`finish_detailed.sql`).

Nothing of a `rejected` attempt was executed, so it uses up no retry, also of a run that may begin only once.
It has its own budget and its own waits: while two releases of handlers run in one pool, any worker may be the
one that does not have the handler, and the waits outlast a usual rollout.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from noonmark.core.failures import Failure
from noonmark.core.retry import NEW, Age, Dead, RetryIn, RetryPolicy, decide, within_age
from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState

REJECTED: Final = "rejected"
"""Reason of a `dead` run that no worker could execute."""

NO_ANSWER: Final = "no_answer"
"""Reason of an `unknown` run whose attempt broke off without an answer."""

REJECTION_BUDGET: Final = 10
"""The rejection in a row that makes a run dead. The retry budget is separate."""

_REJECTION_WAITS: Final = RetryPolicy(delay_seconds=5.0, max_delay_seconds=600.0)


@dataclass(frozen=True, slots=True)
class NextState:
    """The state of a run after an attempt.

    Attributes:
        state: of the run.
        reason: why, if the state needs one.
        retry_seconds: delay before the next attempt, if the state is `retrying`.
    """

    state: RunState
    reason: str | None = None
    retry_seconds: float = 0.0

    @classmethod
    def of(cls, decision: RetryIn | Dead) -> NextState:
        """Turn a decision of the retry policy into a state."""
        if isinstance(decision, Dead):
            return cls(RunState.DEAD, decision.reason.value)
        return cls(RunState.RETRYING, retry_seconds=decision.seconds)


def after_failure(
    outcome: AttemptOutcome,
    failure: Failure,
    *,
    policy: RetryPolicy,
    attempt: int,
    delivery: DeliverySemantics,
    rng: Random,
    age: Age = NEW,
    cancel_requested: bool = False,
    rejections: int = 0,
) -> NextState:
    """Return the state of a run after an attempt that did not succeed.

    The first case that applies decides:

    1. A cancel was requested: `cancelled`.
    2. It is unknown whether the target acted, and the job is `at_most_once`: `unknown`.
    3. The worker cannot execute such work (`rejected`): it is tried again, whatever the policy says about
       failures; `dead` with the reason `rejected` once the budget of rejections or the time is used up.
    4. Otherwise the retry policy decides: `retrying`, or `dead` with its reason.

    Args:
        outcome: how the attempt ended: failed, timed_out, lost or rejected.
        failure: what is known about the failure.
        policy: the retry policy of the job.
        attempt: number of attempts against the retry budget, including this one.
        delivery: what the job promises.
        rng: source of the jitter.
        age: of the run; the next attempt must begin within its bounds.
        cancel_requested: a user or a cancelled job asked for the run to stop.
        rejections: how many attempts right before this one were rejected, also those before a redrive.
    """
    if cancel_requested:
        return NextState(RunState.CANCELLED)
    if failure.unknown and delivery is DeliverySemantics.AT_MOST_ONCE:
        reason = NO_ANSWER if outcome is AttemptOutcome.FAILED else outcome.value
        return NextState(RunState.UNKNOWN, reason)
    if outcome is AttemptOutcome.REJECTED:
        return _after_rejection(policy, rejections, rng=rng, age=age)
    return NextState.of(decide(policy, attempt, failure, rng=rng, age=age))


def _after_rejection(policy: RetryPolicy, before: int, *, rng: Random, age: Age) -> NextState:
    # A redriven run gets a new budget. Only a run whose budget was used up can be redriven among rejections.
    number = before % REJECTION_BUDGET + 1
    if number == REJECTION_BUDGET:
        return NextState(RunState.DEAD, REJECTED)
    # Between half of the wait and all of it, so that runs that were rejected together part.
    delay = _REJECTION_WAITS.backoff_seconds(number) * rng.uniform(0.5, 1.0)
    decision = within_age(policy, delay, age)
    return NextState(RunState.DEAD, REJECTED) if isinstance(decision, Dead) else NextState.of(decision)
