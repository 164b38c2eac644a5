"""Retry: bounded delays at any attempt, the budget, and what a target may ask for."""

import math
from random import Random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.failures import Failure, FailureRules, exception_names
from noonmark.core.retry import (
    MIN_JITTER_SHARE,
    Age,
    Dead,
    DeadReason,
    Jitter,
    RetryIn,
    RetryPolicy,
    decide,
    snooze,
    within_age,
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
    assert decide(RetryPolicy(), 1, Failure(retryable=False), rng=Random(1)) == Dead(DeadReason.NOT_RETRYABLE)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(None, 60), (90, 90), (7200, 3600), (5, 60), (0, 60), (-1, 60), (math.nan, 60), (math.inf, 60)],
)
def test_the_target_can_lengthen_the_delay_up_to_the_cap_and_nonsense_is_ignored(asked, seconds):
    assert decide(EXACT, 1, Failure(retry_after_seconds=asked), rng=Random(1)) == RetryIn(seconds)


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


LISTED = RetryPolicy(max_retries=4, delays=(10, 0, 300), jitter=Jitter.NONE)


def test_listed_delays_come_one_by_one_and_the_last_repeats():
    drawn = [LISTED.delay_for(attempt, Random(1)) for attempt in (1, 2, 3, 4, 1_100, 10**400)]
    assert drawn == [10, 0, 300, 300, 300, 300]


def test_listed_delays_keep_to_the_cap_and_are_spread():
    capped = RetryPolicy(delays=(7200,), jitter=Jitter.NONE)
    assert capped.delay_for(1, Random(1)) == 3600
    drawn = {RetryPolicy(delays=(60,)).delay_for(1, Random(seed)) for seed in range(50)}
    assert len(drawn) == 50
    assert min(drawn) >= 3
    assert max(drawn) <= 60


CARD = Failure(exception=("billing.CardDeclined", "CardDeclined", "builtins.Exception", "Exception"))
BUSY = Failure(status=503)


@pytest.mark.parametrize(
    ("rules", "failure", "again"),
    [
        ({}, Failure(), True),
        ({}, Failure(retryable=False), False),
        ({}, Failure(retryable=True), True),
        ({"only_on": {"status": ["500-599"]}}, BUSY, True),
        ({"only_on": {"status": ["500-599"]}}, Failure(status=499), False),
        ({"only_on": {"status": ["500-599"]}}, CARD, False),
        ({"only_on": {"status": [404]}}, Failure(status=404, retryable=False), True),
        ({"never_on": {"status": [503]}}, BUSY, False),
        ({"never_on": {"status": [503]}}, Failure(status=502), True),
        ({"only_on": {"status": ["500-599"]}, "never_on": {"status": [503]}}, BUSY, False),
        ({"never_on": {"exceptions": ["CardDeclined"]}}, CARD, False),
        ({"never_on": {"exceptions": ["billing.CardDeclined"]}}, CARD, False),
        ({"only_on": {"exceptions": ["Exception"]}}, CARD, True),
        ({"only_on": {"exceptions": ["OSError"]}}, CARD, False),
        ({"only_on": {"grpc": ["UNAVAILABLE"]}}, Failure(grpc="UNAVAILABLE"), True),
        ({"only_on": {"grpc": ["UNAVAILABLE"]}}, Failure(grpc="NOT_FOUND"), False),
        ({"never_on": {"exit_codes": ["64-78", 2]}}, Failure(exit_code=70), False),
        ({"never_on": {"exit_codes": ["64-78", 2]}}, Failure(exit_code=2), False),
        ({"never_on": {"exit_codes": ["64-78", 2]}}, Failure(exit_code=0), True),
        ({"only_on": {"status": [503]}}, Failure(retry_in=5.0), True),
        ({"never_on": {"exceptions": ["Exception"]}}, Failure(exception=("Exception",), retry_in=5.0), False),
    ],
)
def test_never_on_comes_before_only_on_and_that_before_what_the_kind_thinks(rules, failure, again):
    policy = RetryPolicy(**{name: FailureRules.of(written) for name, written in rules.items()})
    expected = RetryIn if again else Dead
    assert isinstance(decide(policy, 1, failure, rng=Random(1)), expected)


def test_exceptions_are_known_by_each_name_of_each_base_class():
    names = exception_names(ConnectionResetError)
    assert names[:2] == ("builtins.ConnectionResetError", "ConnectionResetError")
    assert {"ConnectionError", "builtins.OSError", "Exception", "BaseException"} <= set(names)
    assert "object" not in names


@pytest.mark.parametrize(
    ("age", "policy", "decision"),
    [
        (Age(0), {}, RetryIn(60)),
        (Age(3540), {"max_age_seconds": 3600}, RetryIn(60)),
        (Age(3541), {"max_age_seconds": 3600}, Dead(DeadReason.MAX_AGE)),
        (Age(0, 61), {}, RetryIn(60)),
        (Age(0, 60), {}, Dead(DeadReason.DEADLINE)),
        (Age(500, 100), {}, Dead(DeadReason.DEADLINE)),
        (Age(500, 100), {"max_age_seconds": 1}, Dead(DeadReason.DEADLINE)),
        (Age(10**7, 100, counts=False), {"max_age_seconds": 1}, RetryIn(60)),
    ],
)
def test_no_attempt_begins_past_the_greatest_age_or_the_deadline(age, policy, decision):
    policy = RetryPolicy(jitter=Jitter.NONE, **policy)
    assert decide(policy, 1, rng=Random(1), age=age) == decision


def test_a_used_up_budget_is_the_reason_before_any_age():
    decision = decide(RetryPolicy(max_retries=0), 1, rng=Random(1), age=Age(500, 100))
    assert decision == Dead(DeadReason.RETRIES_EXHAUSTED)


@pytest.mark.parametrize(
    ("chosen", "seconds"), [(0.0, 0), (5.0, 5), (3600.0, 3600), (7200.0, 3600), (math.nan, 60), (-1.0, 60)]
)
def test_a_delay_that_the_handler_chose_takes_the_place_of_the_policys_up_to_its_cap(chosen, seconds):
    assert decide(EXACT, 1, Failure(retry_in=chosen), rng=Random(1)) == RetryIn(seconds)


def test_a_snooze_lasts_a_second_at_least_and_keeps_to_the_deadline():
    assert snooze(EXACT, 0) == RetryIn(1)
    assert snooze(EXACT, 86_400) == RetryIn(86_400)
    assert snooze(EXACT, 3600, age=Age(10, 3000)) == Dead(DeadReason.DEADLINE)
    assert snooze(RetryPolicy(max_retries=0), 60) == RetryIn(60)


def test_an_attempt_that_begins_now_must_be_within_its_bounds():
    assert within_age(EXACT, 0, Age(9, 10)) == RetryIn(0)
    assert within_age(EXACT, 0, Age(10, 10)) == Dead(DeadReason.DEADLINE)
    assert within_age(RetryPolicy(max_age_seconds=10), 0, Age(11)) == Dead(DeadReason.MAX_AGE)


rules = st.none() | st.builds(
    FailureRules,
    status=st.lists(st.tuples(st.integers(100, 300), st.integers(300, 599)), max_size=3).map(tuple),
    grpc=st.frozensets(st.sampled_from(["UNAVAILABLE", "ABORTED"])),
    exceptions=st.frozensets(st.sampled_from(["OSError", "a.B"])),
    exit_codes=st.lists(st.tuples(st.just(7), st.just(7)), min_size=1, max_size=3).map(tuple),
)


@given(
    st.builds(
        RetryPolicy,
        max_retries=st.integers(0, 100),
        delays=st.lists(st.floats(0, 3e9), max_size=4),
        max_delay_seconds=st.floats(0, 1e9),
        max_age_seconds=st.none() | st.floats(0, 1e9),
        jitter=st.sampled_from(Jitter),
        only_on=rules,
        never_on=rules,
    )
)
def test_a_policy_is_stored_and_read_back(policy):
    assert RetryPolicy.of(orjson.loads(orjson.dumps(policy.stored()))) == policy


def test_a_policy_without_the_newer_fields_is_stored_as_ever():
    assert RetryPolicy().stored() == {
        "max_retries": 3,
        "delay_seconds": 60.0,
        "factor": 2.0,
        "max_delay_seconds": 3600.0,
        "jitter": "full",
    }


@given(
    st.builds(
        RetryPolicy,
        max_retries=st.integers(0, 1000),
        delay_seconds=st.floats(0, 3e9),
        factor=st.floats(1e-6, 1e6),
        delays=st.lists(st.floats(0, 3e9), max_size=4),
        max_delay_seconds=st.floats(0, 1e9),
        max_age_seconds=st.none() | st.floats(0, 1e9),
    ),
    st.integers(1, 1100),
    st.builds(
        Failure,
        retry_after_seconds=st.none() | st.floats(),
        retry_in=st.none() | st.floats(),
        retryable=st.sampled_from([None, True, False]),
    ),
    st.builds(Age, seconds=st.floats(0, 1e10), deadline_seconds=st.none() | st.floats(0, 1e10)),
    st.randoms(use_true_random=False),
)
def test_every_decision_keeps_to_the_budget_the_cap_and_the_ages(policy, attempt, failure, age, rng):
    decision = decide(policy, attempt, failure, rng=rng, age=age)
    if isinstance(decision, RetryIn):
        assert attempt <= policy.max_retries
        assert 0 <= decision.seconds <= policy.max_delay_seconds
        begins = age.seconds + decision.seconds
        assert policy.max_age_seconds is None or begins <= policy.max_age_seconds
        # Seconds far beyond what a float tells apart may differ in their last place.
        assert age.deadline_seconds is None or begins <= age.deadline_seconds * (1 + 1e-12)
