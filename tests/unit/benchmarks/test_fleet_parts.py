"""The parts of the model of large installations: simulated cores, fitted costs, and the queue in front."""

import math
import random

import pytest
from benchmarks.fleet.arrivals import Second, scenarios
from benchmarks.fleet.costs import Cost, Delay, Point, fit
from benchmarks.fleet.machine import Cpu, Machine, ModelError, Signal, Wait
from benchmarks.fleet.queue import serve


def finished(machine, *steps):
    """Start a loop for each list of steps; return the list to which each adds the time of its end."""
    ends = {}

    def loop(name, todo):
        yield from todo
        ends[name] = machine.now

    for name, todo in enumerate(steps):
        machine.start(loop(name, todo))
    machine.run(1000.0)
    return ends


@pytest.mark.parametrize(
    ("cores", "loops", "seconds"), [(1, 1, 2.0), (1, 2, 4.0), (2, 2, 2.0), (2, 4, 4.0), (8, 1, 2.0)]
)
def test_loops_share_the_cores_and_none_gets_more_than_one(cores, loops, seconds):
    ends = finished(Machine(cores), *([Cpu(2.0)] for _ in range(loops)))
    assert list(ends.values()) == pytest.approx([seconds] * loops)


def test_loops_of_one_interpreter_share_a_core_whatever_the_machine_has():
    ends = finished(Machine(16), [Cpu(1.0, "worker")], [Cpu(1.0, "worker")], [Cpu(1.0)])
    assert ends == pytest.approx({0: 2.0, 1: 2.0, 2: 1.0})


def test_waits_take_no_core():
    ends = finished(Machine(1), [Wait(3.0)], [Cpu(2.0)])
    assert ends == pytest.approx({0: 3.0, 1: 2.0})


def test_a_signal_wakes_the_loop_that_sleeps_on_it_and_is_kept_for_one_that_does_not_yet():
    machine, signal = Machine(1), Signal()
    ends = []

    def sleeper():
        yield signal
        ends.append(machine.now)
        yield Wait(2.0)
        yield signal
        ends.append(machine.now)

    def waker():
        yield Wait(1.0)
        machine.set(signal)
        yield Wait(1.0)
        machine.set(signal)

    machine.start(sleeper())
    machine.start(waker())
    machine.run(100.0)
    assert ends == pytest.approx([1.0, 3.0])


@pytest.mark.parametrize("cores", [0, -1, math.nan])
def test_a_machine_without_cores_is_refused(cores):
    with pytest.raises(ModelError):
        Machine(cores)


@pytest.mark.parametrize(("fixed", "per_run"), [(1800.0, 15.0), (0.0, 40.0), (2500.0, 0.0)])
def test_a_fit_reproduces_the_points_that_it_was_made_of(fixed, per_run):
    cost = Cost(fixed, per_run)
    points = [Point(batches, cost.of(1.0, batches)) for batches in (0.001, 0.01, 0.06)]
    found = fit(points)
    assert [found.of(1.0, point.batches) for point in points] == pytest.approx([p.cost for p in points])


def test_a_fit_of_two_points_meets_both():
    points = [Point(0.001, 17.0), Point(0.06, 118.0)]
    found = fit(points)
    assert [found.of(1.0, point.batches) for point in points] == pytest.approx([17.0, 118.0])


def test_a_fit_never_has_a_negative_part():
    falling = fit([Point(0.001, 20.0), Point(0.06, 10.0)])
    steep = fit([Point(0.001, 1.0), Point(0.06, 118.0)])
    assert falling.fixed == 0
    assert falling.per_run > 0
    assert steep.per_run == 0
    assert steep.fixed > 0


@pytest.mark.parametrize(
    "points",
    [
        [],
        [Point(0.1, 5.0)],
        [Point(0.1, 5.0), Point(0.1, 6.0)],
        [Point(0.1, 0.0), Point(0.2, 6.0)],
        [Point(-0.1, 5.0), Point(0.2, 6.0)],
    ],
)
def test_a_fit_without_enough_to_go_by_is_refused(points):
    with pytest.raises(ModelError):
        fit(points)


def test_a_wait_is_drawn_with_its_median_its_p99_and_its_mean():
    delay, numbers = Delay(2.0, 8.0), random.Random(1)
    drawn = sorted(delay.draw(numbers) for _ in range(40_000))
    assert 1000 * drawn[20_000] == pytest.approx(2.0, rel=0.05)
    assert 1000 * drawn[39_600] == pytest.approx(8.0, rel=0.05)
    assert sum(drawn) / len(drawn) == pytest.approx(delay.mean_seconds, rel=0.05)


@pytest.mark.parametrize("p50_p99", [(0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (1.0, math.inf)])
def test_an_impossible_wait_is_refused(p50_p99):
    with pytest.raises(ModelError):
        Delay(*p50_p99)


def load(count=180):
    """Three minutes, with bursts at their beginnings, the second one too large for its minute."""
    bursts = {0: 900.0, 60: 9000.0, 120: 50.0}
    return [Second(bursts.get(second, 0.0), 40.0) for second in range(count)]


def test_every_run_that_became_due_has_started_or_waits():
    due = started = 0.0
    for minute in serve(load(), 100.0):
        due, started = due + minute.due, started + minute.started
        assert due == pytest.approx(started + minute.backlog)
    assert due == pytest.approx(sum(one.at_once + one.spread for one in load()))


def test_the_backlog_is_the_rate_times_the_mean_wait():
    # Little's law, over a time that begins and ends without a backlog; the area in steps of a thousandth.
    capacity, backlog, area = 100.0, 0.0, 0.0
    for second in load(400):
        backlog += second.at_once
        for _ in range(1000):
            after = max(0.0, backlog + (second.spread - capacity) / 1000)
            area += (backlog + after) / 2000
            backlog = after
    assert backlog == 0
    minutes = serve(load(400), capacity)
    assert sum(minute.waited for minute in minutes) == pytest.approx(area, rel=0.01)


def test_a_burst_waits_as_long_as_the_capacity_says():
    [minute] = serve([Second(1000.0, 0.0)] + [Second(0.0, 0.0)] * 59, 100.0)
    assert minute.backlog == 0
    assert minute.p50 == pytest.approx(5.0, rel=0.06)
    assert minute.p99 == pytest.approx(9.9, rel=0.03)


def test_a_load_at_the_capacity_never_waits_and_one_above_it_waits_ever_longer():
    steady = serve([Second(0.0, 100.0)] * 300, 100.0)
    assert [minute.p99 for minute in steady] == [0.0] * 5
    above = [minute.p99 for minute in serve([Second(0.0, 110.0)] * 300, 100.0)]
    assert above == sorted(above)
    assert above[0] > 0
    assert above[-1] == pytest.approx(0.1 * 300, rel=0.05)


def test_waits_grow_with_the_load_and_fall_with_the_capacity():
    more = [Second(1.2 * one.at_once, 1.2 * one.spread) for one in load()]
    for less, greater in (
        (serve(load(), 100.0), serve(more, 100.0)),
        (serve(load(), 130.0), serve(load(), 100.0)),
    ):
        pairs = list(zip(less, greater, strict=True))
        assert all(a.p50 <= b.p50 and a.p99 <= b.p99 and a.backlog <= b.backlog for a, b in pairs)
        assert any(a.p99 < b.p99 for a, b in pairs)


@pytest.mark.parametrize("capacity", [0.0, -1.0, math.nan])
def test_an_installation_that_starts_nothing_is_refused(capacity):
    with pytest.raises(ModelError):
        serve(load(), capacity)


def test_a_negative_load_is_refused():
    with pytest.raises(ModelError):
        serve([Second(-1.0, 0.0)], 10.0)


@pytest.mark.parametrize("name", ["peak", "day", "midnight"])
def test_a_scenario_has_the_runs_that_its_name_says(name):
    scenario = scenarios()[name]
    seconds = list(scenario.seconds())
    assert len(seconds) == scenario.window
    assert sum(one.at_once + one.spread for one in seconds) == pytest.approx(scenario.runs)


def test_the_day_is_busiest_in_the_afternoon_and_has_bursts_on_the_minute():
    seconds = list(scenarios()["day"].seconds())
    minutes = [sum(one.at_once + one.spread for one in seconds[at : at + 60]) for at in range(0, 86_400, 60)]
    assert minutes.index(max(minutes)) == 14 * 60
    assert max(minutes) / 60 == pytest.approx(scenarios()["day"].sustained)
    assert {index % 60 for index, one in enumerate(seconds) if one.at_once} == {0}
