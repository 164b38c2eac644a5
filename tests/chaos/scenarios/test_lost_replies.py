"""The connection between a worker and Postgres is cut at the worst moment."""

from __future__ import annotations

import pytest
from tests.chaos.scenarios.conftest import Way
from tests.chaos.tally import Tally
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load

from noonmark.store.database.planned_once import function_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

RUNS = 30
START = function_of("start_runs").encode()
FINISH = function_of("finish_plain").encode()
COMMIT = b"commit"


def outcomes(noonmark: Cluster) -> list[tuple[object, ...]]:
    """(state, losses, attempt) of all runs."""
    return noonmark.rows("select state, losses, attempt, count(*) from runs group by 1, 2, 3")


@pytest.mark.parametrize("reply", [True, False], ids=["the_reply_is_lost", "the_request_is_lost"])
@pytest.mark.parametrize("pattern", [START, FINISH], ids=["start", "outcome"])
def test_a_statement_whose_fate_nobody_knows_is_carried_out_once(
    noonmark: Cluster, way: Way, tally: Tally, pattern: bytes, reply: bool
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", database_url=way.url)
    trap = way.proxy.trap(pattern, reply=reply)
    load = Load()
    load.now(RUNS)
    noonmark.publish(load)
    report = noonmark.assert_clean(load)
    assert trap.caught.is_set()
    assert outcomes(noonmark) == [("succeeded", 0, 1, RUNS)]
    assert report["calls"] >= RUNS
    again = len(report["duplicates"])
    what = "start" if pattern == START else "outcome"
    tally.figures.append(
        f"{'reply to' if reply else 'request of'} a {what} lost: {RUNS} runs succeeded, {again} called again"
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_starts_whichever_of_its_first_commits_gets_no_reply(
    noonmark: Cluster, way: Way, service: str
) -> None:
    passes = 0
    while True:
        trap = way.proxy.trap(COMMIT, reply=True, passes=passes)
        (node,) = noonmark.start(service, database_url=way.url)
        noonmark.wait(node.ready, f"the {service} to be ready, with its commit number {passes + 1} lost")
        if not trap.caught.is_set() or passes == 3:
            break
        assert node.stop() == 0
        passes += 1
    assert passes >= 1


@pytest.mark.parametrize("passes", range(4))
def test_a_commit_whose_fate_nobody_knows_is_looked_up(
    noonmark: Cluster, way: Way, tally: Tally, passes: int
) -> None:
    """The server has committed, the reply is lost: whatever transaction of the worker it was."""
    noonmark.database.execute("create table effects (run_id uuid, fence int)")
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", database_url=way.url)
    load = Load()
    load.now(RUNS, "chaos.flaky", payload={"fails": 1}, retry={"max_retries": 2, "delay_seconds": 0.1})
    load.now(5, "chaos.insert", payload={}, delivery="exactly_once")
    trap = way.proxy.trap(COMMIT, reply=True, passes=passes)
    noonmark.publish(load)
    noonmark.assert_clean(load)
    assert trap.caught.is_set()
    assert noonmark.value("select count(*) from effects") == 5
    assert noonmark.rows("select distinct losses from runs") == [(0,)]
    assert noonmark.value("select count(*) from attempts where outcome = 'failed'") == RUNS
    tally.figures.append(
        f"COMMIT number {passes + 1} of a worker without a reply: {RUNS + 5} runs, each once"
    )
