"""Steps of `noonmark verify` take at most their share of the time."""

from __future__ import annotations

import pytest

from noonmark.cli.verify.pacing import Pacer


class Time:
    """A clock that only moves when somebody works or sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def work(pacer: Pacer, time: Time, *, steps: list[float], between: float = 0.0) -> None:
    for seconds in steps:
        with pacer.step():
            time.now += seconds
        time.now += between


def test_a_step_of_100_ms_is_followed_by_400_ms_at_a_fifth_of_the_time():
    time = Time()
    pacer = Pacer(0.2, clock=time.clock, sleep=time.sleep)

    work(pacer, time, steps=[0.1, 0.1, 0.3, 0.1])

    assert time.slept == pytest.approx([0.4, 0.4, 1.2])  # none after the last
    assert pacer.busy_seconds == pytest.approx(0.6)
    assert pacer.steps == 4


@pytest.mark.parametrize("share", [0.05, 0.25, 0.5, 0.9])
def test_the_share_holds_for_steps_of_any_length(share):
    time = Time()
    pacer = Pacer(share, clock=time.clock, sleep=time.sleep)

    work(pacer, time, steps=[0.01, 2.0, 0.3, 0.0, 0.7, 0.0])

    assert pacer.busy_seconds / (time.now - 100.0) == pytest.approx(share)


def test_what_is_done_between_two_steps_counts_towards_the_pause():
    time = Time()
    pacer = Pacer(0.5, clock=time.clock, sleep=time.sleep)

    work(pacer, time, steps=[1.0, 1.0], between=0.4)
    work(pacer, time, steps=[1.0], between=2.0)
    work(pacer, time, steps=[1.0])

    assert time.slept == pytest.approx([0.6, 0.6])


def test_at_the_whole_time_there_is_no_pause():
    time = Time()

    work(Pacer(1, clock=time.clock, sleep=time.sleep), time, steps=[1.0, 2.0])

    assert time.slept == []
