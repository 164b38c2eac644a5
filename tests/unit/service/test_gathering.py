"""Batches wait for more things only while many arrive, and the longer, the more do."""

from __future__ import annotations

import threading

import pytest

from noonmark.service.gathering import Gathering

MOST_SECONDS = 0.08
ENOUGH = 800


class Clock:
    """A monotonic clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Stop(threading.Event):
    """An event whose waits move a clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self.clock.now += timeout or 0.0
        return self.is_set()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("noonmark.service.gathering.time.monotonic", clock.monotonic)
    return clock


@pytest.fixture
def gathering(clock: Clock) -> Gathering:
    del clock
    return Gathering(ENOUGH)


def arrive(gathering: Gathering, clock: Clock, *, rate: float, every: float = 0.01) -> None:
    """Let things arrive for two seconds; the last batch of them has just begun."""
    for _ in range(round(2 / every)):
        clock.now += every
        gathering.took(round(rate * every))


def held(gathering: Gathering, clock: Clock, waiting: int = 0) -> float:
    """Return how long a batch of so many things is held."""
    began = clock.now
    gathering.hold(Stop(clock), lambda: waiting)
    return clock.now - began


def test_nothing_waits_before_the_first_batch(gathering: Gathering, clock: Clock) -> None:
    assert held(gathering, clock) == 0


@pytest.mark.parametrize("rate", [100, 1000, 5500])
def test_nothing_waits_under_a_light_load(gathering: Gathering, clock: Clock, rate: float) -> None:
    arrive(gathering, clock, rate=rate)

    assert held(gathering, clock) == 0


def test_nothing_waits_after_one_large_batch_of_a_light_load(gathering: Gathering, clock: Clock) -> None:
    arrive(gathering, clock, rate=1000)
    gathering.took(200)

    assert held(gathering, clock) == 0


@pytest.mark.parametrize(("rate", "seconds"), [(8000, 0.025), (10_000, 0.05), (20_000, MOST_SECONDS)])
def test_the_more_arrives_the_longer_a_batch_waits(
    gathering: Gathering, clock: Clock, rate: float, seconds: float
) -> None:
    arrive(gathering, clock, rate=rate)

    assert held(gathering, clock) == pytest.approx(seconds, rel=0.1)


def test_the_time_since_the_last_batch_counts(gathering: Gathering, clock: Clock) -> None:
    arrive(gathering, clock, rate=20_000)
    clock.now += 0.06
    assert held(gathering, clock) == pytest.approx(0.02)
    assert held(gathering, clock) == 0


def test_a_batch_that_is_large_enough_does_not_wait(gathering: Gathering, clock: Clock) -> None:
    arrive(gathering, clock, rate=10_000)

    assert held(gathering, clock, ENOUGH) == 0
    assert held(gathering, clock, ENOUGH - 1) > 0


def test_a_batch_that_becomes_large_enough_waits_no_longer(gathering: Gathering, clock: Clock) -> None:
    arrive(gathering, clock, rate=10_000)
    began = clock.now
    gathering.hold(Stop(clock), lambda: ENOUGH if clock.now > began + 0.02 else 0)

    assert clock.now - began < 0.03


def test_a_stop_ends_the_wait(gathering: Gathering, clock: Clock) -> None:
    arrive(gathering, clock, rate=10_000)
    stop = Stop(clock)
    stop.set()
    began = clock.now

    gathering.hold(stop, lambda: 0)

    assert clock.now == began


def test_nothing_waits_once_little_arrives(gathering: Gathering, clock: Clock) -> None:
    arrive(gathering, clock, rate=10_000)
    clock.now += 1

    gathering.took(10)

    assert held(gathering, clock) == 0
