"""Handlers that keep the interpreter's lock, and workers that only look as if one did."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.cluster import Cluster
from tests.support.node import Node
from tests.support.publish import Load

HOURS = 4000.0
DUTY_SECONDS = 0.05
"""A twentieth of a core: the process runs so long in each second."""


def begin_keeping(noonmark: Cluster, *, timeout: float, **payload: object) -> tuple[Load, Node, Node]:
    """Start two workers, one with a handler that keeps the lock for hours; return it and the other one."""
    # The lease is long: a heartbeat that is late on a busy machine would let the run begin on the other worker.
    settings = {"kill_grace_seconds": "1", "drain_seconds": "1", "lease_seconds": "60", "beat_seconds": "1"}
    workers = [noonmark.launch("worker", **settings) for _ in range(2)]
    noonmark.start("intake", "trigger", "dispatcher")
    for worker in workers:
        noonmark.await_ready(worker)
    load = Load()
    load.now(
        1,
        "chaos.keep_lock",
        ends=["dead"],
        payload={"seconds": HOURS, **payload},
        retry={"max_retries": 0},
        timeout_seconds=timeout,
    )
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.calls(load.namespace), "the handler to begin")
    pid = noonmark.calls(load.namespace)[0]["pid"]
    seized, other = sorted(workers, key=lambda node: node.pid != pid)
    seized.expected_alive = False
    return load, seized, other


@pytest.mark.parametrize(
    "busy", [pytest.param(False, id="asleep"), pytest.param(True, id="busy", marks=pytest.mark.slow)]
)
def test_a_handler_that_keeps_the_lock_ends_timed_out_and_the_others_move_on(
    noonmark: Cluster, busy: bool
) -> None:
    bad, seized, other = begin_keeping(noonmark, timeout=2, busy=busy)
    good = Load()
    good.now(60)
    noonmark.publish(good)

    noonmark.settle(good)
    noonmark.settle(bad)

    assert not seized.alive
    assert other.alive
    assert noonmark.states(good.namespace) == {"succeeded": 60}
    rows = noonmark.rows(
        "select state, reason, attempt, losses, fence, error from runs where namespace = %s", bad.namespace
    )
    (state, _, attempt, losses, fence, error) = rows[0]
    assert (state, attempt, losses, fence) == ("dead", 1, 0, 1)
    assert "kept the interpreter's lock" in error
    assert len(noonmark.calls(bad.namespace)) == 1
    outcomes = "select outcome from attempts join runs on runs.id = run_id where namespace = %s"
    assert noonmark.rows(outcomes, bad.namespace) == [("timed_out",)]
    assert seized.logged("worker_killed")
    noonmark.assert_clean(good)


@pytest.mark.slow
def test_sigterm_ends_a_worker_whose_interpreter_is_seized(noonmark: Cluster) -> None:
    load, seized, _ = begin_keeping(noonmark, timeout=3600)
    seized.terminate()
    # drain_seconds and kill_grace_seconds are 1 s, the rest of a stop may take 10 s.
    seized.process.wait(60)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 2, "the run to begin elsewhere")
    assert noonmark.rows("select outcome from attempts") == [("lost",)]


def starve(node: Node, over: threading.Event) -> None:
    """Give a process a twentieth of a core, until `over` is set."""
    while not over.is_set():
        node.pause()
        over.wait(1 - DUTY_SECONDS)
        node.resume()
        over.wait(DUTY_SECONDS)


@pytest.mark.slow
def test_a_starved_or_stopped_worker_is_not_killed(noonmark: Cluster, tmp_path: Path) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    # The lease is long: only the watch over the interpreter is in question.
    worker = noonmark.start("worker", kill_grace_seconds="1", lease_seconds="60", beat_seconds="1")[0]
    load = Load()
    gate = tmp_path / "gate"
    load.now(
        4,
        "chaos.blocking_gate",
        payload={"gate": str(gate)},
        timeout_seconds=1,
        retry={"max_retries": 0},
        ends=["dead", "succeeded"],
    )
    noonmark.publish(load)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 4, "the handlers to begin")
    over = threading.Event()
    starving = threading.Thread(target=starve, args=(worker, over))
    starving.start()
    try:
        noonmark.wait(lambda: noonmark.states(load.namespace) == {"dead": 4}, "the timeouts", 120)
    finally:
        over.set()
        starving.join()
    worker.pause()
    began = noonmark.soon(0)
    noonmark.wait(
        lambda: (noonmark.soon(0) - began).total_seconds() > 8, "the worker to be stopped for a while"
    )
    worker.resume()
    gate.touch()
    more = Load()
    more.now(10)
    noonmark.publish(more)
    noonmark.assert_clean(more)
    assert worker.alive
    assert not worker.logged("worker_killed")
