"""Retry: bounded delays at any attempt, the budget, and what a target may ask for."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.retry import (
    MIN_JITTER_SHARE,
    Dead,
    DeadReason,
    Jitter,
    RetryIn,
    RetryPolicy,
    decide,
)

EXACT = RetryPolicy(jitter=Jitter.NONE)


def test_delays_double_from_a_minute_up_to_the_cap():
    delays = [EXACT.delay_for(attempt, Random(1)) for attempt in range(1, 9)]
    assert delays == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize("attempt", [1_100, 10**6, 10**400])
def test_a_high_attempt_number_gives_the_cap_and_no_overflow(attempt):
    assert EXACT.delay_for(attempt, Random(1)) == 3600
    assert RetryPolicy(factor=1.0, jitter=Jitter.NONE).delay_for(attempt, Random(1)) == 60
    assert RetryPolicy(factor=0.5, jitter=Jitter.NONE).delay_for(attempt, Random(1)) < 1e-9
    assert RetryPolicy(delay_seconds=0, factor=1e6).delay_for(attempt, Random(1)) == 0


def test_three_retries_are_at_most_four_attempts():
    policy = RetryPolicy(max_retries=3)
    assert policy.max_attempts == 4
    decisions = [decide(policy, attempt, rng=Random(1)) for attempt in range(1, 6)]
    assert [isinstance(decision, RetryIn) for decision in decisions] == [True, True, True, False, False]
    assert decisions[3] == Dead(DeadReason.RETRIES_EXHAUSTED)
    assert decide(RetryPolicy(max_retries=0), 1, rng=Random(1)) == Dead(DeadReason.RETRIES_EXHAUSTED)


def test_a_failure_that_cannot_succeed_later_is_dead_at_once():
    assert decide(RetryPolicy(), 1, rng=Random(1), retryable=False) == Dead(DeadReason.NOT_RETRYABLE)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(None, 60), (90, 90), (7200, 3600), (5, 60), (0, 60), (-1, 60), (math.nan, 60), (math.inf, 60)],
)
def test_the_target_can_lengthen_the_delay_up_to_the_cap_and_nonsense_is_ignored(asked, seconds):
    assert decide(EXACT, 1, rng=Random(1), retry_after_seconds=asked) == RetryIn(seconds)


def test_full_jitter_spreads_over_nearly_the_whole_delay():
    rng = Random(7)
    drawn = [RetryPolicy().delay_for(1, rng) for _ in range(2000)]
    assert min(drawn) < 60 * 0.07
    assert max(drawn) > 60 * 0.98
    assert 29 < sum(drawn) / len(drawn) < 34


@given(
    st.builds(
        RetryPolicy,
        max_retries=st.integers(0, 10**6),
        delay_seconds=st.floats(0, 3e9),
        factor=st.floats(1e-6, 1e6),
        max_delay_seconds=st.floats(0, 1e9),
        jitter=st.sampled_from(Jitter),
    ),
    st.integers(1, 10**7),
    st.randoms(use_true_random=False),
)
def test_every_delay_is_finite_and_between_its_floor_and_the_cap(policy, attempt, rng):
    delay = policy.delay_for(attempt, rng)
    assert MIN_JITTER_SHARE * policy.backoff_seconds(attempt) <= delay <= policy.max_delay_seconds
    assert policy.backoff_seconds(attempt) <= policy.delay_seconds or policy.factor > 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_retries": -1},
        {"delay_seconds": -1},
        {"delay_seconds": math.nan},
        {"delay_seconds": 10**400},
        {"max_delay_seconds": math.inf},
        {"factor": 0},
        {"factor": -2},
        {"factor": math.inf},
        {"jitter": "some"},
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_cannot_be_made(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) if "jitter" not in wrong else "Jitter"):
        RetryPolicy(**wrong)


def test_an_attempt_is_numbered_from_one():
    with pytest.raises(ValueError, match="first attempt is number 1"):
        RetryPolicy().delay_for(0, Random(1))
