"""Alert rules on what real services show, well and in trouble: what is recorded is kept for the tests of the chart.

It needs a quiet machine: on another, an alert about slow services may be right. So it runs only on request:

NOONMARK_TEST_RECORD=1 python -m pytest tests/acceptance/test_alert_recordings.py
"""

import os
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from tests.acceptance.test_forged_messages import send
from tests.chart.alert_rules import RECORDED, RECORDINGS, read_series, rule_groups
from tests.support.cluster import SERVICES, Cluster
from tests.support.deploy_tools import tool
from tests.support.node import Node
from tests.support.publish import Load
from tests.support.recordings import Recording, judge

from noonmark.core.states import Lane

PARTS = ("postgres", "kafka", "trigger", "dispatcher", "observer")


class Stage:
    """One installation, and what is done to it for each recording. The states follow each other."""

    def __init__(self, noonmark: Cluster) -> None:
        self.noonmark = noonmark
        nodes = [noonmark.launch(service) for service in (*SERVICES, "observer")]
        nodes.append(noonmark.launch("watchdog", watchdog_seconds="1", watchdog_stale_seconds="30"))
        self.api = noonmark.launch("api", api_port="0")
        for node in (*nodes, self.api):
            noonmark.await_ready(node, 120)

    def living(self) -> list[Node]:
        return [node for node in self.noonmark.nodes if node.expected_alive]

    def kill(self, *services: str) -> None:
        for service in services:
            self.noonmark.node(service).kill()

    def is_well(self) -> bool:
        return self.noonmark.node("watchdog").metric("noonmark_watchdog_part_ok") == len(PARTS)

    def healthy(self) -> Recording:
        recording, nodes = Recording(), self.living()
        for _ in range(15):
            load = Load()
            load.now(6)
            self.noonmark.publish(load)
            self.noonmark.settle(load)
            assert httpx.get(f"{self.api.api_url}/openapi.json", timeout=30).status_code == 200
            # On a machine that is too busy for a while, the watchdog is right to say so.
            self.noonmark.wait(self.is_well, "every part to make progress", 120)
            recording.scrape(nodes, read_series())
        return recording

    def jobs_and_messages_bad(self) -> Recording:
        recording, nodes = Recording(), self.living()
        recording.scrape(nodes, read_series())
        worker = self.noonmark.node("worker")
        send(self.noonmark, Lane.NORMAL, *(b"no json %d" % number for number in range(20)))
        rejected = "noonmark_message_rejected_total"
        self.noonmark.wait(lambda: worker.metric(rejected, reason="malformed") == 20, "refusals")
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
            self.noonmark.publish(load)
            self.noonmark.settle(load)
            recording.scrape(nodes, read_series())
        return recording

    def trigger_and_dispatcher_killed(self) -> Recording:
        watchdog = self.noonmark.node("watchdog")
        watchdog.stop()
        (watchdog,) = self.noonmark.start(
            "watchdog",
            watchdog_seconds="1",
            watchdog_stale_seconds="10",
            watchdog_url="http://127.0.0.1:9/",
        )
        recording, nodes = Recording(), self.living()
        beats = "noonmark_watchdog_beats_total"
        recording.scrape(nodes, read_series())
        for _ in range(8):
            before = watchdog.metric(beats, result="failed")
            self.noonmark.wait(
                lambda before=before: watchdog.metric(beats, result="failed") > before, "a beat to fail"
            )
            recording.scrape(nodes, read_series())
        self.kill("trigger", "dispatcher")
        part = "noonmark_watchdog_part_ok"
        self.noonmark.wait(
            lambda: watchdog.metric(part, part="trigger") + watchdog.metric(part, part="dispatcher") == 0,
            "the watchdog to notice",
        )
        for _ in range(8):
            recording.scrape(nodes, read_series())
        return recording

    def services_killed(self) -> Recording:
        trigger, dispatcher = self.noonmark.start("trigger", "dispatcher")
        self.noonmark.wait(self.is_well, "every part to make progress", 120)
        recording, nodes = Recording(), self.living()
        for _ in range(2):
            recording.scrape(nodes, read_series())
        self.kill("worker")
        load = Load()
        load.now(6, priority="high")
        self.noonmark.take_in(load)
        self.kill("intake", "api", "observer", "watchdog")
        age = "noonmark_start_backlog_seconds"
        self.noonmark.wait(lambda: dispatcher.metric(age, lane="high") > 6, "an old backlog")
        workers = "noonmark_workers"
        self.noonmark.wait(lambda: trigger.metric(workers, state="live") == 0, "no worker to be seen")
        for _ in range(12):
            recording.scrape(nodes, read_series())
        return recording


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("NOONMARK_TEST_RECORD"), reason="records on request (NOONMARK_TEST_RECORD=1)"
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "states",
    [("healthy", "jobs_and_messages_bad"), ("trigger_and_dispatcher_killed", "services_killed")],
    ids=["in use", "killed"],
)
def test_alerts_of_a_state_fire_on_what_the_services_show_and_no_others(
    noonmark: Cluster, tmp_path: Path, states: Sequence[str]
) -> None:
    promtool, stage = tool("promtool"), Stage(noonmark)
    wrong = {}
    for state in states:
        text = getattr(stage, state)().text()
        (RECORDINGS / f"{state}.series").write_text(text, encoding="utf-8")
        wrong[state] = judge(promtool, rule_groups(), text, RECORDED[state], tmp_path)
    assert {state: problem for state, problem in wrong.items() if problem} == {}
