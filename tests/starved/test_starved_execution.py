"""Every process of the services gets a twentieth of a core for a minute: all that runs ends as it should."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.starved.evidence import Suffered, ran_seconds, suffered
from tests.support.cluster import ROOT, Cluster
from tests.support.publish import Load
from tests.support.starver import Starver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

STARVED_SECONDS = 60.0
BEAT_SECONDS = 5.0
SETTLE_SECONDS = 120.0
RETRY = {"max_retries": 2, "delay_seconds": 0.5, "jitter": "none"}
NO_RETRY = {"max_retries": 0}
NOTE_RUN = ROOT / "tests" / "support" / "note_run.sh"
MODES = ("starved.thread", "starved.loop", "starved.process")


def add_long_work(load: Load) -> None:
    """Runs of every mode that take most of the minute, and those that must time out."""
    for mode in MODES:
        for seconds in (5.0, 12.0, 25.0):
            load.now(1, mode, payload={"seconds": seconds}, timeout_seconds=seconds + 10)
        load.now(1, mode, payload={"seconds": 5.0}, timeout_seconds=30, delivery="at_most_once")
        load.now(1, mode, payload={"seconds": 20.0}, timeout_seconds=4, retry=NO_RETRY, ends=["dead"])


def add_short_work(noonmark: Cluster, load: Load) -> None:
    """Short runs of every kind, due on arrival."""
    for mode in MODES:
        load.now(2, mode, payload={"seconds": 0.2}, timeout_seconds=15)
    load.now(1, delivery="at_most_once")
    load.now(1, "chaos.flaky", payload={"fails": 1}, retry=RETRY)
    load.now(1, "chaos.flaky", payload={"fails": 9}, retry=RETRY, ends=["dead"])
    load.http(1, f"{noonmark.target_url}/ok", timeout_seconds=20)
    load.http(1, f"{noonmark.target_url}/flaky/1", retry=RETRY, timeout_seconds=20)
    load._job({"type": "script", "payload": {"argv": [str(NOTE_RUN), str(noonmark.target_log)]}}, 1)


def starve(noonmark: Cluster, load: Load) -> Starver:
    """Publish work for a minute while the services are starved; return when they have their CPU again."""
    starver = Starver(lambda: [node.pid for node in noonmark.nodes if node.expected_alive])
    with starver:
        until = time.monotonic() + STARVED_SECONDS
        beat_at = 0.0
        while time.monotonic() < until:
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + BEAT_SECONDS
                published = len(load.events)
                if not published:
                    add_long_work(load)
                add_short_work(noonmark, load)
                noonmark.publish(load, events=load.events[published:])
            time.sleep(0.2)
    return starver


def findings(noonmark: Cluster, load: Load, seen: Suffered) -> Iterator[str]:
    """What a starved minute must not do."""
    if seen.dead_of_loss:
        yield f"{seen.dead_of_loss} runs ended because a worker was lost, though all live"
    if seen.killed:
        yield f"killed: {seen.killed}"
    for run, timeout, ran in seen.timed_out:
        if ran is None or ran < timeout:
            yield f"run {run} timed out {ran} s after its handler began; its timeout is {timeout} s"
    for node in noonmark.nodes:
        if not node.alive:
            yield f"{node.name} {node.ending}"


def test_a_starved_minute_changes_no_outcome(noonmark: Cluster, figures: list[str]) -> None:
    noonmark.start("intake", "trigger", "dispatcher", "worker", "worker")
    load = Load()
    load.interval(3, noonmark.soon(3), instants=20, every_seconds=3.0)
    load.once(30, noonmark.soon(5), spread_seconds=50.0)
    noonmark.take_in(load)
    recurring, load.events = load.events, []
    starver = starve(noonmark, load)
    load.events = recurring + load.events
    noonmark.settle(load, SETTLE_SECONDS)
    seen = suffered(noonmark, load)
    figures += seen.lines("starved", starver, workers=2)
    assert [*findings(noonmark, load, seen)] == []
    assert starver.share < 0.1, "the services were not starved"
    ends = ran_seconds(noonmark, load)
    assert len(ends) >= len(MODES) * 4, "handlers measured themselves"
    noonmark.assert_clean(load)
