"""Capacity and lane shares: high first, a reserve that the lower lanes never fill, a share that they always get."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.worker.hands import NOW, record, started

from noonmark.attempts.running_attempt import Delivery
from noonmark.core.states import Lane
from noonmark.settings import Settings
from noonmark.store.runs.starts import StartRequest
from noonmark.worker.engine.slot_planner import _WINDOW_SECONDS, SlotPlanner
from noonmark.worker.in_flight import Load

TICKET = StartRequest(started().id, NOW, 1)
"""Of every message here: only its lane and its offset are looked at."""

SETTINGS = Settings()
"""Read once: to read all settings takes longer than a plan does."""


class Consumer:
    """Knows which records are of a past assignment, of which each record here has its own."""

    def __init__(self) -> None:
        self.past: set[int] = set()

    def is_current(self, record: Any) -> bool:
        return record.epoch not in self.past


class Reader:
    """A lane with messages in its buffer."""

    def __init__(self, lane: Lane, waiting: int = 0) -> None:
        self.lane = lane
        self.consumer = Consumer()
        self.buffer: deque[Delivery] = deque()
        self.told = 0
        self._next = 0
        self.arrive(waiting)

    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.buffer.append(Delivery(TICKET, record(self._next, epoch=self._next), self.lane))
            self._next += 1

    def taken(self) -> None:
        self.told += 1


NOTHING = Load(0, 0, 0)


def lanes(high: int = 0, normal: int = 0, low: int = 0) -> list[Any]:
    return [Reader(Lane.HIGH, high), Reader(Lane.NORMAL, normal), Reader(Lane.LOW, low)]


def slots(count: int = 100, *, reserve: float = 0.1, share: float = 0.05) -> SlotPlanner:
    wanted = {"worker_slots": count, "worker_high_reserve": reserve, "worker_low_share": share}
    return SlotPlanner(SETTINGS.model_copy(update=wanted))


def by_lane(picked: list[Delivery]) -> Counter[Lane]:
    return Counter(delivery.lane for delivery in picked)


class Worker:
    """Slots in use: starts what is picked, ends what it is told to end."""

    def __init__(self, size: SlotPlanner, readers: list[Any]) -> None:
        self.slots = size
        self.readers = readers
        self.running: deque[Lane] = deque()
        self.started: Counter[Lane] = Counter()

    def start(self) -> list[Delivery]:
        lower = sum(lane is not Lane.HIGH for lane in self.running)
        count = len(self.running)
        picked = self.slots.pick(self.readers, Load(count, count, lower))
        self.running.extend(delivery.lane for delivery in picked)
        self.started.update(by_lane(picked))
        return picked

    def end(self, count: int) -> None:
        for _ in range(min(count, len(self.running))):
            self.running.popleft()


def test_nothing_is_picked_when_every_slot_is_taken():
    assert slots(10).pick(lanes(5, 5, 5), Load(10, 10, 0)) == []


def test_high_is_taken_before_the_lower_lanes_except_for_their_share():
    picked = by_lane(slots(100).pick(lanes(500, 500, 500), NOTHING))

    assert picked == {Lane.HIGH: 90, Lane.NORMAL: 5, Lane.LOW: 5}


def test_a_lane_alone_gets_what_it_can_use():
    assert by_lane(slots(100).pick(lanes(high=500), NOTHING)) == {Lane.HIGH: 100}
    assert by_lane(slots(100).pick(lanes(normal=500), NOTHING)) == {Lane.NORMAL: 90}
    assert by_lane(slots(100).pick(lanes(low=500), NOTHING)) == {Lane.LOW: 90}


def test_normal_is_taken_before_low_except_for_lows_share():
    picked = by_lane(slots(100).pick(lanes(normal=500, low=500), NOTHING))

    assert picked == {Lane.NORMAL: 85, Lane.LOW: 5}


def test_the_lower_lanes_never_fill_the_reserve_of_high():
    readers = lanes(normal=1000, low=1000)
    worker = Worker(slots(100), readers)
    for _ in range(20):
        worker.start()
    assert len(worker.running) == 90

    readers[0].arrive(50)

    assert by_lane(worker.start()) == {Lane.HIGH: 10}


def test_what_a_lane_has_too_little_of_goes_to_the_next():
    picked = by_lane(slots(100).pick(lanes(10, 20, 500), NOTHING))

    assert picked == {Lane.HIGH: 10, Lane.NORMAL: 20, Lane.LOW: 70}


def test_messages_of_a_partition_that_was_lost_are_dropped_and_cost_no_slot():
    readers = lanes(high=10)
    readers[0].consumer.past = {0, 1, 2}

    picked = slots(5).pick(readers, NOTHING)

    assert [delivery.record.offset for delivery in picked] == [3, 4, 5, 6, 7]
    assert readers[0].told == 1


def test_a_lane_whose_messages_were_all_anothers_is_told_that_its_buffer_shrank():
    readers = lanes(high=3)
    readers[0].consumer.past = {0, 1, 2}

    assert slots(5).pick(readers, NOTHING) == []
    assert readers[0].told == 1


@pytest.mark.parametrize("ending", [1, 2, 7, 50])
def test_a_saturated_high_lane_leaves_the_lower_lanes_their_share_of_starts_and_no_more(ending):
    """However few slots come free at a time: slow runs end one by one."""
    readers = lanes(4_200, 4_200, 4_200)
    worker = Worker(slots(100), readers)
    worker.start()
    worker.started.clear()
    for _ in range(4000 // ending):
        worker.end(ending)
        worker.start()

    total = sum(worker.started.values())
    for lane in (Lane.NORMAL, Lane.LOW):
        assert 0.04 * total <= worker.started[lane] <= 0.06 * total


def test_low_is_not_starved_while_both_lanes_above_are_saturated():
    readers = lanes(2_100, 2_100, 2_100)
    worker = Worker(slots(20), readers)
    worker.start()
    since_low = longest = 0
    for _ in range(2000):
        worker.end(1)
        picked = by_lane(worker.start())
        since_low = 0 if picked[Lane.LOW] else since_low + 1
        longest = max(longest, since_low)

    assert longest <= 1 / 0.05 + 1


def test_a_lane_that_was_empty_for_long_has_saved_up_nothing():
    readers = lanes(high=6_000)
    worker = Worker(slots(100), readers)
    for _ in range(100):
        worker.start()
        worker.end(50)
    readers[2].arrive(500)

    assert by_lane(worker.start())[Lane.LOW] <= 6


def test_one_slot_is_enough_for_every_lane_to_be_served():
    readers = lanes(1000, 1000, 1000)
    worker = Worker(slots(1, reserve=0.0), readers)
    for _ in range(500):
        worker.start()
        worker.end(1)

    assert worker.started[Lane.HIGH] >= 400
    assert worker.started[Lane.NORMAL] >= 20
    assert worker.started[Lane.LOW] >= 20


class Pace:
    """A clock, and a worker whose runs end while it goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.slots = slots(count)
        self._load = Load(0, 0, 0)
        self._now = self.slots._measured_at
        monkeypatch.setattr("noonmark.worker.engine.slot_planner.time.monotonic", lambda: self._now)

    def after(self, seconds: float, *, ended: int = 0, busy: float = 0.0) -> int:
        """Return the capacity a while later; so many runs ended in it, and for so long one was open."""
        self._now += seconds
        ended, busy = self._load.ended + ended, self._load.busy_seconds + busy
        self._load = Load(0, 0, 0, ended, busy)
        return self.slots.capacity(self._load)


def test_a_fast_pace_raises_the_capacity_up_to_ten_times_the_slots(monkeypatch):
    pace = Pace(monkeypatch, 10)
    assert pace.after(0.1) == 10
    per_second = round(45 / _WINDOW_SECONDS)
    assert [pace.after(0.5, ended=per_second // 2, busy=0.5) for _ in range(20)][-1] in range(40, 46)
    assert [pace.after(0.5, ended=500_000, busy=0.5) for _ in range(20)][-1] == 100
    assert [pace.after(0.5, ended=10, busy=0.5) for _ in range(20)][-1] == 10


def test_behind_a_slow_database_a_start_brings_more_runs_until_the_handlers_are_busy(monkeypatch):
    """A start takes 200 ms; a handler, one of ten at a time, takes 2 ms."""
    pace, capacity = Pace(monkeypatch, 10), 10
    seen = [
        capacity := pace.after(0.2 + busy, ended=capacity, busy=busy)
        for _ in range(20)
        if (busy := capacity * 0.002 / 10)
    ]
    assert seen[-1] == 100


def test_slow_handlers_are_not_started_ahead_however_slow_a_start_is(monkeypatch):
    """A handler takes a second: ten of them end in each."""
    pace = Pace(monkeypatch, 10)
    assert {pace.after(1.2, ended=10, busy=1.0) for _ in range(20)} == {10}


def test_the_pace_of_yesterday_is_forgotten(monkeypatch):
    pace = Pace(monkeypatch, 10)
    assert [pace.after(0.5, ended=500, busy=0.1) for _ in range(20)][-1] == 100
    assert pace.after(1.0) == 100
    assert pace.after(1.5) == 10


def test_runs_that_wait_to_be_recorded_hold_no_slot_but_have_a_bound():
    readers = lanes(normal=5000)
    assert len(slots(100, reserve=0.0).pick(readers, Load(1500, 0, 0))) == 100
    assert len(slots(100, reserve=0.0).pick(readers, Load(1950, 0, 0))) == 50
    assert slots(100, reserve=0.0).pick(readers, Load(2000, 0, 0)) == []


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(1, 40),
    reserve=st.floats(0, 0.9),
    share=st.floats(0.01, 0.25),
    steps=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 40)),
        min_size=1,
        max_size=30,
    ),
)
def test_whatever_arrives_and_ends_the_capacity_holds_and_no_slot_is_wasted(count, reserve, share, steps):
    readers = lanes()
    worker = Worker(slots(count, reserve=reserve, share=share), readers)
    open_to_lower = count - int(count * reserve)
    for *arrivals, ended in steps:
        for reader, arrived in zip(readers, arrivals, strict=True):
            reader.arrive(arrived)
        worker.end(ended)
        worker.start()

        lower = sum(lane is not Lane.HIGH for lane in worker.running)
        assert len(worker.running) <= count
        assert lower <= open_to_lower
        if len(worker.running) < count:
            assert not readers[0].buffer
            assert lower == open_to_lower or not (readers[1].buffer or readers[2].buffer)


@pytest.mark.parametrize(
    ("running", "high", "started"),
    [(900, 0, 0), (501, 0, 0), (500, 0, 500), (99, 0, 901), (900, 1, 100)],
    ids=["almost full", "more than half", "half", "a slot is free", "the high lane waits"],
)
def test_short_runs_are_started_ahead_in_large_batches(monkeypatch, running, high, started):
    size = slots(100, reserve=0.0)
    monkeypatch.setattr(size, "capacity", lambda _load: 1000)
    readers = lanes(high=high, normal=5000)

    assert len(size.pick(readers, Load(running, running, running))) == started


def test_a_single_free_slot_is_filled_at_once():
    size = slots(100, reserve=0.0)
    readers = lanes(normal=5000)

    assert len(size.pick(readers, Load(99, 99, 99))) == 1
