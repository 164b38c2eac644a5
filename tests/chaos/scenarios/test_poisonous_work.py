"""One job that kills whoever runs it, and a pool whose messages nobody takes, among a thousand good ones."""

from __future__ import annotations

import pytest
from tests.chaos.tally import Tally
from tests.support.cluster import Cluster
from tests.support.publish import Load

from noonmark.store.cluster.pools import register_pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

GOOD = 1000
KILLERS, INNOCENT = 5, 8
LONG = 40


def settle(noonmark: Cluster, within: float, *loads: Load) -> int:
    """Replace each worker that dies until all runs have ended; return the number of workers that died.

    Args:
        noonmark: the cluster.
        within: seconds to wait at most.
        loads: whose runs must end.
    """
    lost = 0
    give_up = noonmark.soon(within)
    while True:
        for node in noonmark.nodes:
            if node.service == "worker" and node.expected_alive and not node.alive:
                node.expected_alive = False
                lost += 1
                noonmark.launch("worker")
        if not any(map(noonmark.unsettled, loads)):
            return lost
        assert noonmark.soon(0) < give_up, noonmark.state()


@pytest.mark.timeout(480)
def test_a_handler_that_kills_its_worker_dies_alone_among_a_thousand(noonmark: Cluster, tally: Tally) -> None:
    noonmark.start("intake", "trigger", "dispatcher", "worker", "worker")
    bad, load = Load(), Load()
    bad.now(1, "chaos.kill_worker", ends=["dead"], retry={"max_retries": 0})
    load.now(GOOD // 2, "chaos.slow", payload={"seconds": 0.2})
    noonmark.publish(load)
    noonmark.publish(bad)
    load.now(GOOD // 2)
    noonmark.publish(load, events=load.events[GOOD // 2 :])
    workers_lost = settle(noonmark, 400, load, bad)
    assert noonmark.states(bad.namespace) == {"dead": 1}
    assert noonmark.states(load.namespace) == {"succeeded": GOOD}
    noonmark.assert_clean(load)
    beside = noonmark.value("select count(*) from runs where losses > 0 and namespace = %s", load.namespace)
    again = noonmark.value("select max(losses) from runs where namespace = %s", load.namespace)
    tally.figures.append(
        f"a handler that kills its worker, among {GOOD}: it is dead after costing {workers_lost} workers and then"
        f" children of its own; {beside} runs beside it were lost, at most {again} times each, all succeeded"
    )
    assert workers_lost <= 2
    assert again <= 2


@pytest.mark.timeout(420)
def test_runs_beside_handlers_that_kill_their_workers_are_lost_again_and_again_and_succeed(
    noonmark: Cluster, tally: Tally
) -> None:
    noonmark.start("intake", "trigger", "dispatcher", "worker", "worker")
    killers, innocent = Load(), Load()
    innocent.now(INNOCENT, "chaos.slow", payload={"seconds": 10})
    noonmark.publish(innocent)
    killers.once(KILLERS, noonmark.soon(3), 20.0, "chaos.kill_worker", retry={"max_retries": 0})
    for job in killers.jobs:
        job.ends = ["dead"]
    noonmark.publish(killers)
    lost = settle(noonmark, 360, innocent, killers)
    assert noonmark.states(innocent.namespace) == {"succeeded": INNOCENT}
    assert noonmark.states(killers.namespace) == {"dead": KILLERS}
    reasons = "select distinct reason from runs where namespace = %s"
    assert noonmark.rows(reasons, killers.namespace) == [("retries_exhausted",)]
    noonmark.assert_clean(innocent)
    again = noonmark.value("select max(losses) from runs where namespace = %s", innocent.namespace)
    tally.figures.append(
        f"{KILLERS} handlers that kill their workers beside {INNOCENT} runs of 10 s: {lost} workers were lost, a run"
        f" at most {again} times; every run succeeded, every killer is dead"
    )


@pytest.mark.timeout(420)
def test_long_runs_beside_a_handler_that_exits_are_lost_twice_at_most_and_then_run_side_by_side(
    noonmark: Cluster, tally: Tally
) -> None:
    long, bad = Load(), Load()
    long.now(LONG, "chaos.slow", payload={"seconds": 6})
    # It exits while the others are in flight.
    bad.now(1, "chaos.exit", ends=["dead"], payload={"seconds": 2}, retry={"max_retries": 0})
    noonmark.start("intake", "trigger", "dispatcher", "worker", "worker")
    noonmark.publish(long)
    noonmark.publish(bad)
    lost = settle(noonmark, 300, long, bad)
    assert noonmark.states(long.namespace) == {"succeeded": LONG}
    assert noonmark.rows("select state, reason, losses from runs where namespace = %s", bad.namespace) == [
        ("dead", "retries_exhausted", 2)
    ]
    noonmark.assert_clean(long)
    again = noonmark.value("select max(losses) from runs where namespace = %s", long.namespace)
    suspects = noonmark.value("select count(*) from runs where losses = 2 and namespace = %s", long.namespace)
    tally.figures.append(
        f"{LONG} runs of 6 s beside a handler that exits: {lost} workers and one child were lost; {suspects} runs"
        " were lost twice and ended in children; no run was lost more often, and every run succeeded"
    )
    assert lost == 2
    assert again <= 2
    # The handler began twice in a worker and once in a child, and in no other process.
    assert len(noonmark.calls(bad.namespace)) == 3


def test_messages_of_a_pool_without_topics_at_the_head_of_every_slice_delay_nobody(
    noonmark: Cluster, tally: Tally
) -> None:
    noonmark.start("intake", "trigger", "worker")
    register_pool(noonmark.database, "ghost")
    load, ghost = Load(), Load()
    ghost.now(200, pool="ghost")
    noonmark.take_in(ghost)
    heads = "select count(distinct (slice, lane)) from outbox where pool = 'ghost'"
    noonmark.wait(lambda: noonmark.value(heads) == 12, "the ghosts to stand before all others")
    load.now(300)
    noonmark.take_in(load)
    noonmark.start("dispatcher")
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 300}, "the good ones to settle")
    began = noonmark.value("select min(started_at) from runs where namespace = %s", load.namespace)
    ended = noonmark.value("select max(started_at) from runs where namespace = %s", load.namespace)
    noonmark.wait(lambda: noonmark.states(ghost.namespace) == {"waiting": 200}, "the ghosts to be parked")
    reasons = noonmark.rows("select distinct reason from runs where namespace = %s", ghost.namespace)
    assert reasons == [("undeliverable",)]
    took = (ended - began).total_seconds()
    tally.figures.append(
        f"200 undeliverable messages at the head of every slice: 300 good runs began within {took:.2f} s"
    )
