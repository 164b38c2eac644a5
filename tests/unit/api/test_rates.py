"""Token buckets of callers."""

import pytest

from noonmark.api.http.rate_limits import Rates


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def taken(rates, caller, per_minute, times):
    """How many of so many requests went through."""
    return sum(rates.take(caller, per_minute) == 0 for _ in range(times))


def test_a_bucket_begins_full_and_holds_half_a_minute(clock):
    assert taken(Rates(clock), "a", 120, 100) == 60


def test_a_small_rate_still_lets_ten_through_at_once(clock):
    assert taken(Rates(clock), "a", 1, 100) == 10


def test_the_wait_that_is_told_is_the_wait_that_is_needed(clock):
    rates = Rates(clock)
    taken(rates, "a", 60, 30)
    wait = rates.take("a", 60)
    assert wait == pytest.approx(1.0)
    clock.now += wait - 0.01
    assert rates.take("a", 60) > 0
    clock.now += 0.02
    assert rates.take("a", 60) == 0


def test_a_refused_request_costs_nothing(clock):
    rates = Rates(clock)
    taken(rates, "a", 60, 1000)
    clock.now += 30
    assert taken(rates, "a", 60, 1000) == 30


def test_callers_do_not_share_a_bucket(clock):
    rates = Rates(clock)
    taken(rates, "a", 60, 1000)
    assert rates.take("b", 60) == 0


def test_no_more_is_saved_up_than_a_bucket_holds(clock):
    rates = Rates(clock)
    rates.take("a", 60)
    clock.now += 10**6
    assert taken(rates, "a", 60, 1000) == 30


def test_the_caller_unseen_for_longest_is_forgotten_first(clock):
    rates = Rates(clock, most=2)
    taken(rates, "a", 60, 30)
    taken(rates, "b", 60, 30)
    rates.take("a", 60)
    rates.take("c", 60)
    assert rates.take("a", 60) > 0, "seen again, so kept"
    assert rates.take("b", 60) == 0, "forgotten, so full"
