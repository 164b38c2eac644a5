"""Every service is killed at every fault point under load; nothing is lost and nothing ends twice."""

import json

import pytest
from tests.chaos.tally import Held, Row, Tally, judge
from tests.support.cluster import Cluster
from tests.support.publish import Load

from noonmark.core.faults import POINTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

RETRY = {"max_retries": 3, "delay_seconds": 0.3, "jitter": "none"}
MOST_KILLS = 6
ELSEWHERE = {
    *("dispatcher.after_accept", "observer.after_tell", "observer.before_commit", "observer.after_commit"),
    *("workflow.before_commit", "workflow.after_commit"),
}
"""Passed only with an application's outbox, a channel for alerts, an observer, or workflows:
tests/integration/dispatcher/test_app_outbox.py, tests/integration/observer/test_alert_channels.py,
tests/acceptance/test_observer.py and tests/chaos/test_workflow_kills.py kill there."""


def load_of(noonmark: Cluster) -> Load:
    """A few hundred jobs of every kind, spread over the three lanes and some seconds."""
    load, url = Load(), noonmark.target_url
    load.now(90)
    load.once(120, noonmark.soon(1), spread_seconds=0.5)
    load.once(40, noonmark.soon(1.5), spread_seconds=4)
    load.http(20, f"{url}/ok")
    load.http(5, f"{url}/flaky/1", retry=RETRY)
    load.now(15, "chaos.flaky", payload={"fails": 1}, retry=RETRY)
    load.now(5, "chaos.flaky", payload={"fails": 9}, retry=RETRY | {"max_retries": 1}, ends=["dead"])
    load.now(10, "chaos.slow", payload={"seconds": 1})
    load.duplicates(20)
    load.invalid(5)
    return load


def recurring(noonmark: Cluster, load: Load) -> list[dict[str, object]]:
    """Add jobs with several instants; return their events."""
    before = len(load.events)
    load.interval(6, noonmark.soon(1.5), instants=4)
    load.interval(3, noonmark.soon(1.5), instants=4, overlap="skip")
    return load.events[before:]


@pytest.mark.parametrize("point", [point for point in POINTS if point not in ELSEWHERE])
def test_a_kill_at_a_fault_point_loses_nothing(
    noonmark: Cluster, tally: Tally, point: str, request: pytest.FixtureRequest
) -> None:
    service, _, _ = point.partition(".")
    row = Row(service, point)
    tally.rows.append(row)
    assert noonmark.node(service).stop() == 0
    # Taken in after its `end`, a schedule would be refused.
    with noonmark.standing_clock():
        load = load_of(noonmark)
        if service == "intake":
            noonmark.publish(load)
        else:
            recurring(noonmark, load)
            noonmark.take_in(load)
    wanted = request.config.getoption("--chaos-kills")
    while row.counted < wanted:
        # Another pass each time: the first, in the middle of a batch, after some.
        victim = noonmark.launch(service, fault=f"{point}={1 + 2 * len(row.held)}")
        noonmark.wait(lambda: not victim.alive, f"{point} to kill its process", 20)  # noqa: B023
        assert victim.process.wait() == -9, victim.log()
        row.held.append(Held.by(noonmark, victim))
        # What must hold at every moment: no offset is past a record whose fate is not in Postgres, …
        report = noonmark.check(load, partway=True)
        assert report["clean"], json.dumps(report, indent=1)
        assert len(row.held) < MOST_KILLS, f"{row.held}: too few kills hit anything"
    noonmark.start(service)
    if service == "intake":
        # What is taken in just as the clock is stopped would be due after the time at which it stands.
        noonmark.take_in(load, events=[])
        with noonmark.standing_clock():
            noonmark.take_in(load, events=recurring(noonmark, load))
    judge(noonmark, load, row)
