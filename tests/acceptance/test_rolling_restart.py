"""Workers replaced one after the other under load: nothing is lost, nothing burnt, nothing begun twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.cluster import Cluster, Node
from tests.support.publish import Load

MODES = {
    "handlers": "tests.support.chaos_handlers,tests.support.mode_handlers",
    "scripts": "/bin/sh,/usr/bin/dash,/bin/bash,/usr/bin/bash",
    "worker_processes": "4",
}
SCRIPT = """
note() {
    printf '{"event": "%s", "run": "%s", "fence": %s, "attempt": %s, "key": "%s", "scheduled_for": "%s",
"namespace": "%s", "at": 0, "pid": %s, "via": "script"}' "$1" "$NOONMARK_RUN_ID" "$NOONMARK_FENCE" "$NOONMARK_ATTEMPT" \
"$NOONMARK_IDEMPOTENCY_KEY" "$NOONMARK_SCHEDULED_FOR" "$NOONMARK_NAMESPACE" "$$" | tr -d '\\n' > "line.$1"
    echo >> "line.$1"
    cat "line.$1" >> "$LOG"
}
note start
sleep "$SECONDS_TO_TAKE"
note end
"""


def script(noonmark: Cluster, seconds: float) -> dict[str, Any]:
    return {
        "type": "script",
        "handler": None,
        "payload": {
            "argv": ["/bin/sh", "-c", SCRIPT],
            "env": {"LOG": str(noonmark.target_log), "SECONDS_TO_TAKE": str(seconds)},
        },
    }


def every_mode(noonmark: Cluster, load: Load, count: int, seconds: float) -> None:
    """So many runs of each mode."""
    payload = {"seconds": seconds}
    load.now(count, "chaos.slow", payload=payload)
    load.now(count, "modes.thread", payload=payload)
    load.now(count, "modes.process", payload=payload)
    load.now(count, **script(noonmark, seconds))


def starts(noonmark: Cluster, load: Load) -> dict[tuple[str, int], int]:
    """How often each attempt of each run began."""
    counts: dict[tuple[str, int], int] = {}
    for call in noonmark.calls(load.namespace):
        key = (call["run"], call["fence"])
        counts[key] = counts.get(key, 0) + 1
    return counts


def assert_nothing_burnt(noonmark: Cluster, load: Load) -> None:
    """Every run succeeded as its first attempt, and each fence of it began at most once."""
    rows = noonmark.rows(
        "select state, attempt, losses, count(*) from runs where namespace = %s group by 1, 2, 3",
        load.namespace,
    )
    assert rows == [("succeeded", 1, 0, load.instants)]
    assert {outcome for (outcome,) in noonmark.rows("select distinct outcome from attempts")} <= {
        "handed_back"
    }
    assert set(starts(noonmark, load).values()) == {1}


def launch(noonmark: Cluster) -> Node:
    """Start a worker; there are more of them than partitions, so it is not waited until it has one."""
    worker = noonmark.launch("worker", **MODES)
    noonmark.wait(lambda: worker.logged("lease_taken"), "a worker to be there", 30)
    return worker


def replace(noonmark: Cluster, old: Node) -> None:
    """Start a new worker, then end an old one in good order."""
    launch(noonmark)
    below = psutil.Process(old.pid).children(recursive=True)
    old.expected_alive = False
    old.terminate()
    assert old.process.wait(30) == 0, old.log()
    # Neither a child nor what it started outlives its worker.
    assert psutil.wait_procs(below, 5)[1] == []


@pytest.mark.slow
def test_a_rolling_restart_under_load_of_every_mode_loses_burns_and_repeats_nothing(
    noonmark: Cluster,
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    workers = [launch(noonmark) for _ in range(3)]
    load = Load()
    for worker in workers:
        begun = len(load.events)
        every_mode(noonmark, load, 15, 0.3)
        noonmark.publish(load, events=load.events[begun:])
        noonmark.wait(lambda begun=begun: len(noonmark.calls(load.namespace)) > begun, "this wave to begin")
        replace(noonmark, worker)
    noonmark.settle(load, 60)
    assert_nothing_burnt(noonmark, load)


@pytest.mark.slow
def test_a_drain_that_ends_before_the_runs_hands_them_back_once_their_children_are_dead(
    noonmark: Cluster, tmp_path: Path
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    leaving = noonmark.start("worker", drain_seconds="2", **MODES)[0]
    load = Load()
    every_mode(noonmark, load, 2, 60)
    noonmark.publish(load)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 8, "every run to begin")
    pids = {call["pid"] for call in noonmark.calls(load.namespace)} - {leaving.pid}
    assert len(pids) == 4
    leaving.expected_alive = False
    leaving.terminate()
    noonmark.wait(
        lambda: noonmark.value("select count(*) from attempts where outcome = 'handed_back'") >= 4,
        "the children's runs to be handed back",
    )
    assert not any(map(psutil.pid_exists, pids))
    assert leaving.process.wait(60) == 0, leaving.log()
    assert noonmark.states(load.namespace) == {"queued": 8}
    assert noonmark.rows("select distinct attempt, losses from runs") == [(0, 0)]


@pytest.mark.slow
def test_a_second_signal_kills_children_at_once_and_hands_back(noonmark: Cluster) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    settings = {**MODES, "drain_seconds": "600", "kill_grace_seconds": "30"}
    leaving = noonmark.start("worker", **settings)[0]
    load = Load()
    every_mode(noonmark, load, 2, 600)
    noonmark.publish(load)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 8, "every run to begin")
    pids = {call["pid"] for call in noonmark.calls(load.namespace)} - {leaving.pid}
    leaving.expected_alive = False
    leaving.terminate()
    noonmark.wait(lambda: leaving.logged("service_stopping"), "the drain to begin")
    leaving.terminate()
    assert leaving.process.wait(60) == 130, leaving.log()
    assert "Traceback" not in leaving.log()
    assert not any(map(psutil.pid_exists, pids))
    assert noonmark.states(load.namespace) == {"queued": 8}
    assert noonmark.rows("select distinct outcome from attempts") == [("handed_back",)]


@pytest.mark.slow
def test_a_cancel_ends_scripts_and_processes_and_the_verdict_waits_for_their_end(noonmark: Cluster) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", **MODES)
    load = Load()
    load.now(2, "modes.process", payload={"seconds": 600})
    load.now(2, **script(noonmark, 600))
    noonmark.publish(load)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 4, "every run to begin")
    pids = {call["pid"] for call in noonmark.calls(load.namespace)}
    noonmark.database.execute("update runs set state = 'cancelling' where namespace = %s", [load.namespace])
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"cancelled": 4}, "the verdicts")
    assert not any(map(psutil.pid_exists, pids))
    assert json.loads(noonmark.target_log.read_text().splitlines()[0])["event"] == "start"
