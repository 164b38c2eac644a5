"""Who cannot work for long, by the turns of the loop that polls."""

from __future__ import annotations

import pytest

from noonmark.service import inability
from noonmark.service.inability import Inability


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(inability, "time", made)
    return made


def turns(watched: Inability, clock: Clock, count: int, seconds: float = 0.5) -> list[bool]:
    found = []
    for _ in range(count):
        clock.now += seconds
        found.append(watched.is_long())
    return found


def test_a_loop_that_works_is_able_however_long_it_runs(clock):
    watched = Inability(10.0)
    for _ in range(100):
        watched.mark_able()
        assert turns(watched, clock, 1) == [False]


def test_one_that_never_works_is_unable_after_its_time_and_able_again_at_once(clock):
    watched = Inability(10.0)

    assert turns(watched, clock, 22) == [False] * 20 + [True] * 2
    watched.mark_able()
    assert turns(watched, clock, 20) == [False] * 20 + []


def test_a_pause_of_the_whole_process_counts_as_one_turn(clock):
    watched = Inability(10.0)

    assert turns(watched, clock, 9, seconds=3600.0) == [False] * 9
