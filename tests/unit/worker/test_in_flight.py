"""The runs of a worker in flight: who ends each, and how many are open, by lane."""

from __future__ import annotations

import threading

import pytest
from tests.unit.worker.hands import hand

from noonmark.core.states import Lane
from noonmark.worker.in_flight import Load, RunsInFlight


def begun(*lanes: Lane) -> tuple[RunsInFlight, list]:
    runs = RunsInFlight()
    attempts = [hand(lane=lane) for lane in lanes]
    runs.add(attempts)
    runs.open(attempts)
    return runs, attempts


def counts(runs: RunsInFlight) -> tuple[int, int, int]:
    load = runs.load()
    return load.in_flight, load.open, load.open_lower


def test_a_run_holds_a_slot_until_it_ends_and_is_in_flight_until_it_is_recorded():
    runs, (high, low) = begun(Lane.HIGH, Lane.LOW)
    assert counts(runs) == (2, 2, 1)
    assert runs.end([low.key]) == [low]
    assert runs.end([low.key]) == [None]
    assert counts(runs) == (2, 1, 0)
    runs.remove([low.key, high.key])
    assert counts(runs) == (0, 1, 0)
    assert runs.end_all() == [high.key]
    assert counts(runs) == (0, 0, 0)
    assert runs.load().ended == 2


def test_a_run_that_is_opened_again_counts_once():
    runs, attempts = begun(Lane.LOW)
    runs.open(attempts)
    assert counts(runs) == (1, 1, 1)


def test_only_the_time_in_which_a_run_is_open_counts(monkeypatch: pytest.MonkeyPatch):
    now = [10.0]
    monkeypatch.setattr("noonmark.worker.in_flight.time.monotonic", lambda: now[0])
    runs, (first, second) = begun(Lane.HIGH, Lane.HIGH)
    now[0] = 11.0
    assert runs.load().busy_seconds == 1.0
    runs.end([first.key])
    now[0] = 13.0
    runs.end([second.key])
    now[0] = 50.0
    assert runs.load() == Load(2, 0, 0, 2, 3.0)
    runs.open([first])
    now[0] = 50.5
    assert runs.end_all() == [first.key]
    assert runs.load().busy_seconds == 3.5


def test_threads_that_end_the_same_runs_count_each_once():
    runs, attempts = begun(*[Lane.NORMAL, Lane.HIGH] * 500)
    won: list[object] = []

    def end_all() -> None:
        for attempt in attempts:
            won.extend(each for each in runs.end([attempt.key, attempt.key]) if each is not None)

    threads = [threading.Thread(target=end_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1000
    assert counts(runs) == (1000, 0, 0)
    assert runs.load().ended == 1000
