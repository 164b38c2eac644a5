"""The simulated path of runs: nothing is lost in it, it saturates where its parts do, and load makes it later."""

from dataclasses import replace
from itertools import pairwise

import pytest
from benchmarks.figures import percentile
from benchmarks.fleet.costs import Cost, Delay
from benchmarks.fleet.machine import ModelError
from benchmarks.fleet.path import PARTS, Limits, Path, simulate

QUICK = Delay(0.5, 1.0)
PLENTY = 1000.0


def path(**changed):
    """A path whose parts take 1 ms for each batch and 10 µs for each run."""
    costs = dict.fromkeys(PARTS, Cost(1000.0, 10.0))
    return replace(Path(costs, QUICK, QUICK), **changed)


def even(rate, seconds):
    return [number / rate for number in range(round(rate * seconds))]


def p99(passed):
    return percentile(sorted(passed.late), 0.99)


@pytest.mark.parametrize("processes", [(1, 1, 1), (2, 3, 4), (3, 1, 2)])
def test_every_run_gets_its_outcome_once(processes):
    triggers, dispatchers, workers = processes
    many = path(triggers=triggers, dispatchers=dispatchers, workers=workers)
    passed = simulate(many, [0.0] * 4000 + even(1000, 1), cores=4, until=60)
    assert (passed.done, passed.left, len(passed.late)) == (5000, 0, 5000)
    assert min(passed.late) > 0


def test_what_has_no_outcome_at_the_end_is_left():
    passed = simulate(path(), [0.0] * 50_000, cores=2, until=1.0)
    assert passed.done + passed.left == 50_000
    assert passed.left > 0
    assert passed.done > 0


def test_cpu_is_what_runs_and_batches_cost():
    passed = simulate(path(), [0.0] * 5000, cores=4, until=60)
    batches = passed.batches["claim"]
    assert passed.cpu["claim"] == pytest.approx((1000 * batches + 10 * 5000) / 1e6)
    assert passed.cpu["record"] == pytest.approx((1000 * passed.batches["record"] + 10 * 5000) / 1e6)
    # The worker's half for outcomes counts once for each record, the other half for each start.
    pairs = (passed.batches["start"] + passed.batches["record"]) / 2
    assert passed.cpu["worker"] == pytest.approx((1000 * pairs + 10 * 5000) / 1e6)


def test_more_cores_make_a_burst_shorter_until_other_things_bound_it():
    last = [simulate(path(), [0.0] * 6000, cores=cores, until=600).last for cores in (0.25, 0.5, 1, 2)]
    assert all(longer > 1.2 * shorter for longer, shorter in pairwise(last))
    assert simulate(path(), [0.0] * 6000, cores=PLENTY, until=600).last <= 1.1 * last[-1]


def test_others_on_the_machine_make_it_longer():
    alone, beside = (
        simulate(path(others=others), [0.0] * 6000, cores=1, until=600).last for others in (0.0, 0.9)
    )
    assert beside > 2 * alone


def test_a_burst_on_few_cores_takes_the_cpu_of_its_runs_over_the_cores():
    passed = simulate(path(), [0.0] * 50_000, cores=1, until=600)
    used = sum(passed.cpu.values())
    assert passed.last >= used
    assert passed.last == pytest.approx(used, rel=0.1)


def test_one_interpreter_bounds_a_worker_and_a_second_worker_doubles_the_rate():
    slow = {**path().costs, "worker": Cost(1000.0, 200.0)}
    one, two = (
        simulate(replace(path(), costs=slow, workers=workers), [0.0] * 20_000, cores=PLENTY, until=600).last
        for workers in (1, 2)
    )
    assert one >= 20_000 * 200e-6
    assert one == pytest.approx(20_000 * 200e-6, rel=0.25)
    assert one / two == pytest.approx(2.0, rel=0.15)


def test_the_pause_between_claims_bounds_the_claims():
    few = Limits(claim_batch=10, claim_pause=0.015)
    passed = simulate(path(limits=few), [0.0] * 1000, cores=PLENTY, until=60)
    assert passed.batches["claim"] == 100
    assert passed.last >= 99 * 0.015


def test_lateness_below_saturation_stays_and_above_it_grows_with_the_time():
    # One core does 90 µs of work for each run, and more for each batch.
    below = [p99(simulate(path(), even(500, seconds), cores=1, until=60)) for seconds in (2, 4)]
    above = [p99(simulate(path(), even(14_000, seconds), cores=1, until=60)) for seconds in (1, 2)]
    assert below[1] < 1.5 * below[0]
    assert above[1] > 1.5 * above[0]
    assert above[0] > 5 * below[0]


def test_lateness_grows_with_the_load():
    late = [p99(simulate(path(), even(rate, 2), cores=1, until=60)) for rate in (2000, 6000, 12_000)]
    assert late == sorted(late)


def test_slower_commits_make_runs_later():
    quick, slow = (
        p99(simulate(path(commit=commit), even(500, 4), cores=4, until=60))
        for commit in (QUICK, Delay(10.0, 20.0))
    )
    assert slow > quick + 0.015


def test_the_runs_inside_are_the_rate_times_their_stay():
    # Little's law. What is inside is counted from arrivals and records, not from the stays.
    due = even(1000, 1.5)
    passed = simulate(path(), due, cores=4, until=60)
    changes = sorted([(one, 1) for one in due] + [(time, -runs) for time, runs in passed.outcomes])
    inside, area = 0, 0.0
    for (now, change), (then, _) in pairwise(changes):
        inside += change
        assert inside >= 0
        area += inside * (then - now)
    length = changes[-1][0]
    rate = passed.done / length
    assert area / length == pytest.approx(rate * passed.stay / passed.done)


def test_the_same_seed_gives_the_same_result():
    first, again, other = (simulate(path(), even(800, 2), cores=2, until=60, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.late != other.late


def test_nothing_due_is_nothing_done():
    passed = simulate(path(), [], cores=1, until=5)
    assert (passed.done, passed.left, passed.late) == (0, 0, [])


def test_input_that_makes_no_sense_is_refused():
    with pytest.raises(ModelError, match="rise"):
        simulate(path(), [1.0, 0.5], cores=1, until=5)
    with pytest.raises(ModelError, match="core"):
        simulate(path(), [0.0], cores=0, until=5)
    with pytest.raises(ModelError, match="each kind"):
        path(workers=0)
    with pytest.raises(ModelError, match="record"):
        path(costs={part: Cost(1.0, 1.0) for part in PARTS if part != "record"})
