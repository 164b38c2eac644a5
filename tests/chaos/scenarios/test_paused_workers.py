"""A worker that stands still for longer than its lease, and one that cannot get rid of a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.chaos.tally import Tally
from tests.support.cluster import Cluster, Node
from tests.support.publish import Load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ROWS = "select id, state, attempt, fence, owner, epoch, started_at, finished_at, result::text from runs order by id"
SLEEP_SECONDS = 8.0


def begun(noonmark: Cluster, load: Load, node: Node, event: str = "start") -> list[dict[str, Any]]:
    return [call for call in noonmark.calls(load.namespace, event) if call["pid"] == node.pid]


def scripts_of(fence: int, runs: set[str]) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if environment.get("NOONMARK_RUN_ID") in runs and environment.get("NOONMARK_FENCE") == str(fence):
            found.append(process.pid)
    return found


def test_a_worker_that_wakes_after_its_lease_writes_nothing_and_stops_what_it_runs(
    noonmark: Cluster, tally: Tally
) -> None:
    noonmark.settings["NOONMARK_SCRIPTS"] = "*"
    noonmark.start("intake", "trigger", "dispatcher")
    victim = noonmark.start("worker")[0]
    load = Load()
    load.now(6, "chaos.slow", payload={"seconds": SLEEP_SECONDS})
    script = {"argv": ["/bin/sh", "-c", f"sleep {SLEEP_SECONDS}"]}
    for index in range(2):
        load._job({"type": "script", "payload": script}, index)
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"running": 8}, "every run to begin")
    runs = {row[0] for row in noonmark.rows("select id::text from runs")}
    noonmark.wait(lambda: len(scripts_of(1, runs)) >= 2, "the scripts to begin")
    noonmark.wait(lambda: len(begun(noonmark, load, victim)) == 6, "the handlers to begin")
    victim.pause()
    other = noonmark.start("worker")[0]
    taken = "select count(*) from runs where fence = 2 and state in ('running', 'succeeded')"
    noonmark.wait(lambda: noonmark.value(taken) == 8, "the other worker to take them", 30)
    before = noonmark.rows("select count(*), max(fence) from attempts where outcome = 'lost'")
    victim.resume()
    noonmark.wait(lambda: victim.logged("runs_abandoned"), "the worker to learn that it was thought lost")
    noonmark.wait(lambda: not scripts_of(1, runs), "its scripts to be gone")
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 8}, "the others to end", 30)
    late = begun(noonmark, load, victim, "end")
    fenced = victim.metric("noonmark_fenced_writes_total")
    owners = noonmark.rows("select distinct w.pid, r.fence from runs r join workers w on w.id = r.owner")
    tally.figures += [
        f"paused past its lease: {before[0][0]} runs lost under fence 1, taken over under fence 2"
    ]
    tally.figures.append(
        f"  after it woke: {len(late)} of its 6 handlers went on to their end, 0 of its 2 scripts live,"
        f" {fenced:.0f} writes refused; every run recorded by the other worker: {owners == [(other.pid, 2)]}"
    )
    assert before == [(8, 1)]
    assert late == []
    assert owners == [(other.pid, 2)]
    assert noonmark.rows("select distinct state, attempt, losses, fence from runs") == [
        ("succeeded", 1, 1, 2)
    ]
    noonmark.wait(victim.ready, "the worker to take a new lease")


def test_a_run_is_handed_back_though_its_thread_cannot_be_stopped(
    noonmark: Cluster, tally: Tally, tmp_path: Path
) -> None:
    """The thread goes on in the old worker; what it returns in the end is nobody's outcome any more."""
    gate = tmp_path / "gate"
    noonmark.start("intake", "trigger", "dispatcher")
    victim = noonmark.start("worker")[0]
    load = Load()
    load.now(6, "chaos.blocking_gate", payload={"gate": str(gate)})
    noonmark.publish(load)
    noonmark.wait(lambda: len(begun(noonmark, load, victim)) == 6, "every handler to begin")
    victim.pause()
    other = noonmark.start("worker")[0]
    noonmark.wait(lambda: len(begun(noonmark, load, other)) == 6, "the other worker to take them", 30)
    victim.resume()
    noonmark.wait(lambda: victim.logged("runs_abandoned"), "the worker to give them up")
    gate.touch()
    noonmark.wait(lambda: len(begun(noonmark, load, other, "end")) == 6, "the new handlers to end")
    noonmark.settle(load)
    rows = noonmark.rows(ROWS)
    # The old threads were never stopped: they end as well, and nothing comes of it.
    noonmark.wait(lambda: len(begun(noonmark, load, victim, "end")) == 6, "the old threads to end")
    more = Load()
    more.now(20)
    noonmark.publish(more)
    noonmark.assert_clean(more)
    assert [row for row in noonmark.rows(ROWS) if row in rows] == rows
    report = noonmark.assert_clean(load)
    assert report["duplicates_with_rising_fence"] == 6
    tally.figures.append(
        "handed back with 6 threads that nobody can stop: 6 late returns, 0 writes of theirs"
    )


def test_runs_of_a_killed_worker_begin_elsewhere_soon_after_its_lease(
    noonmark: Cluster, tally: Tally, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    noonmark.start("intake", "trigger", "dispatcher")
    victim = noonmark.start("worker")[0]
    load = Load()
    load.now(100, "chaos.gate", payload={"gate": str(gate)})
    noonmark.publish(load)
    noonmark.wait(lambda: len(begun(noonmark, load, victim)) == 100, "every handler to begin")
    other = noonmark.start("worker")[0]
    killed_at = noonmark.soon(0)
    victim.kill()
    noonmark.wait(lambda: len(begun(noonmark, load, other)) == 100, "the other worker to take them", 30)
    gate.touch()
    noonmark.assert_clean(load)
    lease = noonmark.value("select max(lease_seconds) from workers")
    latest = noonmark.value("select max(started_at) from runs")
    took = (latest - killed_at).total_seconds()
    tally.figures.append(
        f"100 runs of a killed worker began elsewhere {took:.2f} s after the kill"
        f" (lease {lease:g} s, aim: at most lease + 2 s)"
    )
    assert noonmark.rows("select distinct losses, attempt, fence from runs") == [(1, 1, 2)]
