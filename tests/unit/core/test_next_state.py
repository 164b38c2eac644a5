"""The retry rule, cell by cell: which state a run has after an attempt that did not succeed."""

import itertools
from random import Random

import pytest

from noonmark.core.failures import Failure, FailureRules, exception_names
from noonmark.core.next_state import REJECTION_BUDGET, NextState, after_failure
from noonmark.core.retry import Age, Dead, DeadReason, Jitter, RetryIn, RetryPolicy
from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState

FAILED, TIMED_OUT = AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT
LOST, REJECTED = AttemptOutcome.LOST, AttemptOutcome.REJECTED
OUTCOMES = (FAILED, TIMED_OUT, LOST, REJECTED)
ONCE, OFTEN = DeliverySemantics.AT_MOST_ONCE, DeliverySemantics.AT_LEAST_ONCE

POLICY = RetryPolicy(max_retries=2, delay_seconds=10, jitter=Jitter.NONE, max_age_seconds=100)
ONLY_TIMEOUTS = RetryPolicy(
    max_retries=2,
    delay_seconds=10,
    jitter=Jitter.NONE,
    only_on=FailureRules(exceptions=frozenset({"OSError"})),
)
NEVER_503 = RetryPolicy(
    max_retries=2, delay_seconds=10, jitter=Jitter.NONE, never_on=FailureRules(status=((503, 503),))
)
KNOWN, UNKNOWN, PERMANENT = Failure(), Failure(unknown=True), Failure(retryable=False)
TIMEOUT = Failure(exception=exception_names(TimeoutError))

AGAIN = NextState(RunState.RETRYING, retry_seconds=10)
CANCELLED = NextState(RunState.CANCELLED)


def dead(reason):
    return NextState(RunState.DEAD, reason)


def after(outcome, failure=KNOWN, *, policy=POLICY, attempt=1, delivery=OFTEN, **more):
    return after_failure(
        outcome, failure, policy=policy, attempt=attempt, delivery=delivery, rng=Random(1), **more
    )


@pytest.mark.parametrize(
    ("outcome", "failure", "delivery"),
    list(itertools.product(OUTCOMES, (KNOWN, UNKNOWN, PERMANENT), DeliverySemantics)),
)
def test_a_requested_cancel_decides_before_everything_else(outcome, failure, delivery):
    assert after(outcome, failure, delivery=delivery, cancel_requested=True) == CANCELLED
    assert after(outcome, failure, delivery=delivery, attempt=9, cancel_requested=True) == CANCELLED


@pytest.mark.parametrize(
    ("outcome", "reason"), [(FAILED, "no_answer"), (TIMED_OUT, "timed_out"), (LOST, "lost")]
)
@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("age", [Age(), Age(99, 5), Age(1000)])
def test_an_unknown_result_of_an_at_most_once_run_is_unknown_whatever_is_left(outcome, reason, attempt, age):
    ended = after(outcome, UNKNOWN, delivery=ONCE, attempt=attempt, age=age)

    assert ended == NextState(RunState.UNKNOWN, reason)


@pytest.mark.parametrize("outcome", [FAILED, TIMED_OUT, LOST])
@pytest.mark.parametrize("delivery", [OFTEN, DeliverySemantics.EXACTLY_ONCE])
def test_an_unknown_result_of_any_other_run_follows_the_policy(outcome, delivery):
    assert after(outcome, UNKNOWN, delivery=delivery) == AGAIN
    assert after(outcome, UNKNOWN, delivery=delivery, attempt=3) == dead("retries_exhausted")


@pytest.mark.parametrize("delivery", DeliverySemantics)
@pytest.mark.parametrize("outcome", [FAILED, TIMED_OUT, LOST])
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, AGAIN),
        ({"attempt": 2}, NextState(RunState.RETRYING, retry_seconds=20)),
        ({"attempt": 3}, dead("retries_exhausted")),
        ({"failure": PERMANENT}, dead("not_retryable")),
        ({"failure": PERMANENT, "attempt": 3}, dead("not_retryable")),
        ({"policy": ONLY_TIMEOUTS}, dead("not_retryable")),
        ({"policy": ONLY_TIMEOUTS, "failure": TIMEOUT}, AGAIN),
        ({"policy": NEVER_503, "failure": Failure(status=503)}, dead("not_retryable")),
        ({"policy": NEVER_503, "failure": Failure(status=500)}, AGAIN),
        ({"failure": Failure(retry_after_seconds=40)}, NextState(RunState.RETRYING, retry_seconds=40)),
        ({"failure": Failure(retry_in=3)}, NextState(RunState.RETRYING, retry_seconds=3)),
        ({"age": Age(91)}, dead("max_age")),
        ({"age": Age(90)}, AGAIN),
        ({"age": Age(20, 30)}, dead("deadline")),
        ({"age": Age(20, 31)}, AGAIN),
        ({"age": Age(1000, 5, counts=False)}, AGAIN),
    ],
)
def test_a_known_failure_follows_the_policy(outcome, delivery, changed, expected):
    assert after(outcome, **{"failure": KNOWN, "delivery": delivery, **changed}) == expected


NO_RETRIES = RetryPolicy(max_retries=0)


@pytest.mark.parametrize("delivery", DeliverySemantics)
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"policy": NO_RETRIES},
        {"policy": ONLY_TIMEOUTS},
        {"policy": NEVER_503},
        {"attempt": 3},
        {"age": Age(90)},
        {"age": Age(20, 31)},
        {"age": Age(1000, 5, counts=False)},
    ],
)
def test_work_that_a_worker_cannot_execute_is_tried_again_whatever_the_policy_says(delivery, changed):
    state = after(REJECTED, delivery=delivery, **changed)

    assert (state.state, state.reason) == (RunState.RETRYING, None)
    assert 2.5 <= state.retry_seconds <= 5


@pytest.mark.parametrize("delivery", DeliverySemantics)
@pytest.mark.parametrize("changed", [{"age": Age(1000)}, {"age": Age(99.9)}, {"age": Age(29, 30)}])
def test_work_that_nobody_executed_in_time_is_dead_as_rejected(delivery, changed):
    assert after(REJECTED, delivery=delivery, **changed) == dead("rejected")


def test_rejections_have_waits_that_outlast_a_rollout_and_a_budget_that_a_redrive_renews():
    states = [after(REJECTED, policy=NO_RETRIES, rejections=before) for before in range(2 * REJECTION_BUDGET)]

    life, redriven = states[:REJECTION_BUDGET], states[REJECTION_BUDGET:]
    assert life[-1] == redriven[-1] == dead("rejected")
    assert {state.state for state in (*life[:-1], *redriven[:-1])} == {RunState.RETRYING}
    for one in (life, redriven):
        waits = [state.retry_seconds for state in one[:-1]]
        longest = [5, 10, 20, 40, 80, 160, 320, 600, 600]
        assert all(most / 2 <= wait <= most for wait, most in zip(waits, longest, strict=True))


@pytest.mark.parametrize("reason", DeadReason)
def test_a_decision_of_the_policy_becomes_a_state(reason):
    assert NextState.of(Dead(reason)) == dead(reason.value)
    assert NextState.of(RetryIn(7)) == NextState(RunState.RETRYING, retry_seconds=7)
