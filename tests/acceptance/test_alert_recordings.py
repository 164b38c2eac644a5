"""Alert rules on what real services show, well and in trouble. The recordings are kept for the tests of the chart:

NOONMARK_RECORD=1 python -m pytest tests/acceptance/test_alert_recordings.py
"""

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.acceptance.test_forged_messages import send
from tests.chart.alert_rules import RECORDED, RECORDINGS, read_series, rule_groups
from tests.support.cluster import SERVICES, Cluster
from tests.support.deploy_tools import tool
from tests.support.publish import Load
from tests.support.recordings import Recording, judge

from noonmark.core.states import Lane

pytestmark = pytest.mark.slow


def start(noonmark: Cluster) -> Recording:
    """Every service, with a watchdog that can reach its URL in no way."""
    noonmark.start(*SERVICES, "observer")
    noonmark.start("api", api_port="0")
    noonmark.start(
        "watchdog", watchdog_seconds="1", watchdog_stale_seconds="10", watchdog_url="http://127.0.0.1:9/"
    )
    return Recording()


def scrape(noonmark: Cluster, recording: Recording, steps: int = 1) -> None:
    for _ in range(steps):
        recording.scrape(noonmark.nodes, read_series())


def kill(noonmark: Cluster, *services: str) -> None:
    for service in services:
        noonmark.node(service).kill()


def healthy(noonmark: Cluster) -> Recording:
    noonmark.start(*SERVICES, "observer")
    noonmark.start("watchdog", watchdog_seconds="1")
    (api,) = noonmark.start("api", api_port="0")
    recording = Recording()
    for _ in range(20):
        load = Load()
        load.now(6)
        noonmark.publish(load)
        noonmark.settle(load)
        assert httpx.get(f"{api.api_url}/openapi.json").status_code == 200
        scrape(noonmark, recording)
    return recording


def services_killed(noonmark: Cluster) -> Recording:
    recording = start(noonmark)
    scrape(noonmark, recording, 2)
    kill(noonmark, "worker")
    load = Load()
    load.now(6, priority="high")
    noonmark.take_in(load)
    kill(noonmark, "intake", "api", "observer", "watchdog")
    dispatcher, trigger = noonmark.node("dispatcher"), noonmark.node("trigger")
    noonmark.wait(
        lambda: dispatcher.metric("noonmark_start_backlog_seconds", lane="high") > 6, "an old backlog"
    )
    noonmark.wait(lambda: trigger.metric("noonmark_workers", state="live") == 0, "no worker to be seen")
    scrape(noonmark, recording, 12)
    return recording


def trigger_and_dispatcher_killed(noonmark: Cluster) -> Recording:
    recording = start(noonmark)
    watchdog = noonmark.node("watchdog")
    failed = "noonmark_watchdog_beats_total"
    for beats in range(1, 9):
        noonmark.wait(lambda beats=beats: watchdog.metric(failed, result="failed") >= beats, "beats to fail")
        scrape(noonmark, recording)
    kill(noonmark, "trigger", "dispatcher")
    part = "noonmark_watchdog_part_ok"
    noonmark.wait(
        lambda: watchdog.metric(part, part="trigger") + watchdog.metric(part, part="dispatcher") == 0,
        "the watchdog to notice",
    )
    scrape(noonmark, recording, 8)
    return recording


def jobs_and_messages_bad(noonmark: Cluster) -> Recording:
    recording = start(noonmark)
    scrape(noonmark, recording)
    worker = noonmark.node("worker")
    send(noonmark, Lane.NORMAL, *(b"no json %d" % number for number in range(20)))
    rejected = "noonmark_message_rejected_total"
    noonmark.wait(lambda: worker.metric(rejected, reason="malformed") == 20, "refusals")
    for _ in range(18):
        load = Load()
        load.now(
            *(40, "chaos.flaky"),
            ends=("dead",),
            payload={"fails": 9},
            retry_delay_seconds=0,
            max_retries=2,
        )
        load.invalid(10)
        noonmark.publish(load)
        noonmark.settle(load)
        scrape(noonmark, recording)
    return recording


STATES: dict[str, Callable[[Cluster], Recording]] = {
    state.__name__: state
    for state in (healthy, services_killed, trigger_and_dispatcher_killed, jobs_and_messages_bad)
}


@pytest.mark.parametrize("state", STATES)
def test_the_alerts_of_a_state_fire_on_what_the_services_show_and_no_others(
    noonmark: Cluster, state: str, tmp_path: Path
) -> None:
    promtool = tool("promtool")
    text = STATES[state](noonmark).text()
    if os.environ.get("NOONMARK_RECORD"):
        (RECORDINGS / f"{state}.series").write_text(text, encoding="utf-8")
    assert judge(promtool, rule_groups(), text, RECORDED[state], tmp_path) == ""
