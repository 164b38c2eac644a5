"""The rules of the model of runs that are pure functions of the code, and the rules that its mutants break."""

from __future__ import annotations

from functools import cache
from random import Random

from noonmark.core.failures import Failure
from noonmark.core.next_state import after_failure
from noonmark.core.retry import RetryPolicy
from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState
from noonmark.core.transitions import MOVES
from noonmark.kafka.consumers.offsets import PartitionTracker

POLICY = RetryPolicy(max_retries=1, delay_seconds=0)
ALLOWED = {state.value: frozenset(target.value for target in targets) for state, targets in MOVES.items()}

MUTANTS = {
    "no fence at the start": "the start statement does not compare the fence",
    "no fence at the outcome": "the outcome statement does not compare the fence",
    "hand-back keeps the fence": "a run that is handed back is queued under its old fence",
    "loss keeps the fence": "a run whose worker was lost is queued under its old fence",
    "retry keeps the fence": "a retry that is due is queued under its old fence",
    "lease without epoch": "the start statement does not check that the worker's lease is live",
    "offset before record": "a worker commits offsets of records that it has polled and not settled",
    "highest offset": "a worker commits the highest settled offset, past records that are not settled",
    "no start batch": "a start does not write which runs the worker holds",
    "requeue without outbox": "a lost run is queued in one transaction and its message written in another",
    "outcome twice": "the outcome statement does not compare the state",
    "success beats cancel": "an outcome of a run that was asked to stop is written as it is",
    "lost is repeated": "a lost run is tried again although its job asks for at most one attempt",
    "lapsed start is settled": "a message that a worker without a lease could not start counts as settled",
}


@cache
def after_attempt(delivery: DeliverySemantics, attempt: int) -> str:
    """Return the state after a failed attempt, by the rule that the worker uses."""
    unknown = delivery is DeliverySemantics.AT_MOST_ONCE
    decided = after_failure(
        AttemptOutcome.FAILED,
        Failure(unknown=unknown),
        policy=POLICY,
        attempt=attempt,
        delivery=delivery,
        rng=Random(0),
    )
    assert decided.state in MOVES[RunState.RUNNING]
    return decided.state.value


@cache
def commit_position(base: int, position: int, unsettled: tuple[int, ...]) -> int:
    """Return the offset that a worker commits, by the tracker that the worker uses."""
    tracker = PartitionTracker(epoch=1, window=100)
    tracker.polled_many(range(base, position))
    tracker.settled_many(set(range(base, position)) - set(unsettled))
    mark = tracker.commit_position()
    return base if mark is None else mark
