"""High never waits for low, the lowest lane has its share, and a noisy namespace delays no other.

Bounds are counts of runs that were started in between, never seconds: a slow machine is slow for all.
"""

from collections import Counter
from itertools import pairwise

import pytest
from tests.support.cluster import Cluster
from tests.support.publish import Load
from tests.support.settings_orders import set_max_in_flight

from noonmark.store.limits.limits import Figures, set_limit

SLOTS = 64
MOST_IN_HAND = 10 * SLOTS
"""What a worker starts ahead of short handlers at most."""

WORK = {"handler": "chaos.slow", "payload": {"seconds": 0.02}}

BETWEEN = """
    select (select count(*) from runs as other
            where other.namespace = %(other)s and other.started_at > mine.queued_at and other.started_at <= mine.started_at)
    from runs as mine where mine.namespace = %(mine)s order by 1
"""
"""For each run of a namespace: how many of another were started between its queueing and its start."""


def done(noonmark: Cluster, load: Load) -> bool:
    return noonmark.states(load.namespace) == {"succeeded": load.instants}


def started(noonmark: Cluster, load: Load) -> int:
    return noonmark.value(
        "select count(*) from runs where namespace = %s and started_at is not null", load.namespace
    )


def between(noonmark: Cluster, mine: Load, other: Load) -> list[int]:
    rows = noonmark.database.execute(BETWEEN, {"mine": mine.namespace, "other": other.namespace})
    return [row[0] for row in rows]


def queue(noonmark: Cluster, count: int, priority: str) -> Load:
    """Runs that are queued, whose messages no worker has read."""
    load = Load()
    load.now(count, priority=priority, **WORK)
    noonmark.publish(load)
    noonmark.wait(
        lambda: (
            noonmark.states(load.namespace) == {"queued": count}
            and not noonmark.value("select count(*) from outbox")
        ),
        f"{count} {priority} runs to be in Kafka",
        within=120,
    )
    return load


@pytest.mark.slow
def test_high_and_normal_start_while_a_burst_of_low_drains(noonmark: Cluster) -> None:
    noonmark.prepare()
    noonmark.start("intake", "trigger", "dispatcher")
    low = queue(noonmark, 20_000, "low")
    noonmark.start("worker", worker_slots=str(SLOTS))
    noonmark.wait(lambda: started(noonmark, low) > 1_000, "low to be under way", within=60)

    urgent = {}
    for lane in ("high", "normal"):
        urgent[lane] = Load()
        urgent[lane].now(200, priority=lane, **WORK)
        noonmark.publish(urgent[lane])
    noonmark.wait(
        lambda: all(done(noonmark, load) for load in (low, *urgent.values())), "all to end", within=120
    )

    last_low = noonmark.value("select max(started_at) from runs where namespace = %s", low.namespace)
    for load in urgent.values():
        assert (
            noonmark.value("select max(started_at) from runs where namespace = %s", load.namespace) < last_low
        )
        passed_by = between(noonmark, load, low)
        # In hand when it came, and picked while its message was on its way.
        assert passed_by[len(passed_by) // 2] <= 2 * MOST_IN_HAND
        assert passed_by[-1] <= low.instants // 4


@pytest.mark.slow
def test_low_has_its_share_while_high_and_normal_fill_every_slot(noonmark: Cluster) -> None:
    noonmark.prepare()
    noonmark.start("intake", "trigger", "dispatcher")
    loads = {
        lane: queue(noonmark, count, lane)
        for lane, count in (("high", 6_000), ("normal", 6_000), ("low", 300))
    }
    noonmark.start("worker", worker_slots=str(SLOTS), worker_low_share="0.05")
    noonmark.wait(lambda: all(done(noonmark, load) for load in loads.values()), "all to end", within=120)

    order = [
        row[0]
        for row in noonmark.rows(
            "select lane from runs where namespace = any (%s) order by started_at",
            [load.namespace for load in loads.values()],
        )
    ]
    half = Counter(order[: len(order) // 2])
    # A twentieth of half of all starts is more low runs than there are: nearly all of them have begun.
    assert half[2] >= 100
    assert half[1] >= 100
    assert half[0] > half[1] > half[2]


@pytest.mark.slow
def test_a_noisy_namespace_with_a_cap_delays_no_other(noonmark: Cluster) -> None:
    cap = 32
    noisy, quiet = Load(), Load()
    set_max_in_flight(noonmark.database, noisy.namespace, cap)
    noonmark.prepare()
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", worker_slots=str(SLOTS))
    noisy.now(3_000, priority="normal", **WORK)
    noonmark.publish(noisy)
    noonmark.wait(
        lambda: sum(noonmark.states(noisy.namespace).values()) > 2_900, "the noise to be due", within=60
    )

    quiet.now(30, priority="normal", **WORK)
    noonmark.publish(quiet)
    noonmark.wait(lambda: done(noonmark, quiet) and done(noonmark, noisy), "all to end", within=180)

    last_noise = noonmark.value("select max(started_at) from runs where namespace = %s", noisy.namespace)
    assert (
        noonmark.value("select max(started_at) from runs where namespace = %s", quiet.namespace) < last_noise
    )
    assert between(noonmark, quiet, noisy)[-1] <= 20 * cap
    assert noonmark.rows("select * from limit_slots") == []


@pytest.mark.slow
def test_a_limit_is_kept_by_real_workers_through_retries(noonmark: Cluster) -> None:
    load = Load()
    set_limit(noonmark.database, load.namespace, "api", Figures(max_running=3))
    noonmark.prepare()
    noonmark.start("intake", "trigger", "dispatcher", "worker", "worker")
    load.now(120, handler="chaos.slow", payload={"seconds": 0.05}, limits=["api"])
    load.now(20, handler="chaos.flaky", payload={"fails": 1}, limits=["api"], retry_delay_seconds=0)
    noonmark.publish(load)
    noonmark.wait(lambda: done(noonmark, load), "all to end", within=120)

    calls = [(line["at"], 1) for line in noonmark.calls(load.namespace) if line["attempt"] == 1]
    assert len(calls) == 140
    ends = [(line["at"], -1) for line in noonmark.calls(load.namespace, "end")]
    slow = {line["run"] for line in noonmark.calls(load.namespace, "end")}
    begins = [(line["at"], 1) for line in noonmark.calls(load.namespace) if line["run"] in slow]
    depth = most = 0
    for (_, step), _ in pairwise([*sorted([*begins, *ends]), (0.0, 0)]):
        depth += step
        most = max(most, depth)
    assert 1 <= most <= 3
    assert noonmark.rows("select * from limit_slots") == []
    assert noonmark.rows("select * from waits") == []
