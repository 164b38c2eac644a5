"""Workers that are killed, stopped or drained with runs in their hands."""

from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.cluster import SERVICES, Cluster, Node
from tests.support.publish import Load

LEASE_SECONDS = 3.0


def held_by(noonmark: Cluster, load: Load, node: Node) -> set[str]:
    """Runs whose handlers have begun in a process."""
    return {call["run"] for call in noonmark.calls(load.namespace) if call["pid"] == node.pid}


def begin(noonmark: Cluster, count: int, gate: Path, handler: str = "chaos.gate") -> tuple[Load, Node]:
    """A worker with so many runs at a gate."""
    *_, worker = noonmark.start(*SERVICES)
    load = Load()
    load.now(count, handler, payload={"gate": str(gate)})
    noonmark.publish(load)
    noonmark.wait(lambda: len(held_by(noonmark, load, worker)) == count, "every handler to begin")
    return load, worker


def runs(noonmark: Cluster, load: Load) -> list[tuple[Any, ...]]:
    """(state, attempt, losses, fence) of every run, and how many there are of each."""
    return noonmark.rows(
        "select state, attempt, losses, fence, count(*) from runs where namespace = %s group by 1, 2, 3, 4",
        load.namespace,
    )


def attempts(noonmark: Cluster) -> list[tuple[Any, ...]]:
    """(outcome, fence) of every attempt that left a row."""
    return noonmark.rows("select outcome, fence, count(*) from attempts group by 1, 2")


def test_runs_of_a_killed_worker_are_retaken_after_its_lease(noonmark: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    load, victim = begin(noonmark, 12, gate)
    other = noonmark.launch("worker")
    victim.kill()
    (last_beat,) = noonmark.rows("select beat_at from workers where pid = %s", victim.pid)[0]
    noonmark.wait(lambda: len(held_by(noonmark, load, other)) == 12, "the other worker to take them")
    gate.touch()
    report = noonmark.assert_clean(load)
    assert runs(noonmark, load) == [("succeeded", 1, 1, 2, 12)]
    assert attempts(noonmark) == [("lost", 1, 12)]
    assert set(map(tuple, report["duplicates"].values())) == {(1, 2)}
    lapsed_at = noonmark.value("select min(finished_at) from attempts")
    assert (lapsed_at - last_beat).total_seconds() >= LEASE_SECONDS


@pytest.mark.slow
def test_the_late_outcome_of_a_stopped_worker_changes_nothing(noonmark: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    load, victim = begin(noonmark, 12, gate)
    victim.pause()
    other = noonmark.start("worker")[0]
    noonmark.wait(lambda: len(held_by(noonmark, load, other)) == 12, "the other worker to take them")
    gate.touch()
    noonmark.settle(load)
    before = noonmark.rows("select id, state, fence, owner, epoch, finished_at from runs order by id")
    victim.resume()
    # Its handlers end now, too late. Whichever it notices first, nothing of theirs is written.
    noonmark.wait(
        lambda: victim.metric("noonmark_fenced_writes_total") == 12 or victim.logged("runs_abandoned"),
        "the stopped worker to learn of its loss",
    )
    noonmark.wait(
        lambda: len([c for c in noonmark.calls(load.namespace, "end") if c["pid"] == other.pid]) == 12,
        "the other worker's handlers to end",
    )
    noonmark.wait(victim.ready, "the stopped worker to take a new lease")
    assert noonmark.rows("select id, state, fence, owner, epoch, finished_at from runs order by id") == before
    assert runs(noonmark, load) == [("succeeded", 1, 1, 2, 12)]
    more = Load()
    more.now(30)
    noonmark.publish(more)
    noonmark.assert_clean(more)
    noonmark.assert_clean(load)


def test_a_drained_worker_finishes_or_hands_back_what_it_holds(noonmark: Cluster, tmp_path: Path) -> None:
    soon_open, late_open = tmp_path / "soon", tmp_path / "late"
    leaving = noonmark.launch("worker", drain_seconds="2")
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.await_ready(leaving)
    load = Load()
    load.now(6, "chaos.gate", payload={"gate": str(soon_open)})
    load.now(6, "chaos.gate", payload={"gate": str(late_open)})
    load.now(6, "chaos.blocking_gate", payload={"gate": str(late_open)})
    noonmark.publish(load)
    noonmark.wait(lambda: len(held_by(noonmark, load, leaving)) == 18, "every handler to begin")
    staying = noonmark.launch("worker")
    leaving.terminate()
    noonmark.wait(lambda: leaving.logged("service_stopping"), "the drain to begin")
    soon_open.touch()
    assert leaving.process.wait(60) == 0, leaving.log()
    assert attempts(noonmark) == [("handed_back", 1, 12)]
    assert noonmark.states(load.namespace)["succeeded"] == 6
    # A worker that left in good order is not waited for: no lease has to lapse.
    noonmark.wait(lambda: len(held_by(noonmark, load, staying)) == 12, "the other worker to take the rest")
    late_open.touch()
    noonmark.assert_clean(load)
    assert sorted(runs(noonmark, load)) == [("succeeded", 1, 0, 1, 6), ("succeeded", 1, 0, 2, 12)]


def one_begun_one_waiting(noonmark: Cluster, gate: Path, **settings: str) -> tuple[Load, Node]:
    """A worker with one process, in which a run is at a gate; another run waits for the process."""
    worker = noonmark.launch("worker", worker_processes="1", **settings)
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.await_ready(worker)
    load = Load()
    load.now(2, "chaos.child_gate", payload={"gate": str(gate)})
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"running": 2}, "both runs to be taken")
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 1, "one handler to begin")
    return load, worker


def fences_of_calls(noonmark: Cluster, load: Load) -> dict[str, list[int]]:
    """The fences under which each run was called, in order."""
    fences: dict[str, list[int]] = {}
    for call in noonmark.calls(load.namespace):
        fences.setdefault(call["run"], []).append(call["fence"])
    return fences


def test_a_worker_that_wakes_from_a_pause_begins_nothing_of_its_old_lease(
    noonmark: Cluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    # Longer than in other tests: so late can a worker hear, after a pause, that its lease has lapsed.
    load, sleeper = one_begun_one_waiting(noonmark, gate, beat_seconds="1")
    sleeper.pause()
    noonmark.start("worker", worker_processes="2")
    # The paused worker's child ends its run now. Its process is free for the other run as soon as the worker wakes.
    gate.touch()
    noonmark.settle(load)
    before = fences_of_calls(noonmark, load)
    assert sorted(before.values()) == [[1, 2], [2]]

    sleeper.resume()

    noonmark.wait(
        lambda: sleeper.logged("runs_handed_back") or sleeper.logged("runs_abandoned"),
        "the worker to give up what it had taken",
    )
    noonmark.wait(
        lambda: noonmark.value("select count(*) from workers where pid = %s", sleeper.pid) == 2,
        "the worker to take a new lease",
    )
    noonmark.wait(sleeper.ready, "the worker to be ready under its new lease")
    assert fences_of_calls(noonmark, load) == before
    more = Load()
    more.now(6, "chaos.alone")
    noonmark.publish(more)
    noonmark.assert_clean(more)
    noonmark.assert_clean(load)


def test_a_run_that_waits_for_a_process_is_handed_back_at_once_by_a_drain(
    noonmark: Cluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    load, leaving = one_begun_one_waiting(noonmark, gate, drain_seconds="60")
    noonmark.launch("worker", worker_processes="1")
    leaving.terminate()
    noonmark.wait(lambda: attempts(noonmark), "the worker to hand back what had not begun")
    assert attempts(noonmark) == [("handed_back", 1, 1)]
    # The first still runs where it was.
    assert leaving.alive
    assert list(fences_of_calls(noonmark, load).values()) == [[1]]
    gate.touch()
    noonmark.assert_clean(load)
    assert sorted(runs(noonmark, load)) == [("succeeded", 1, 0, 1, 1), ("succeeded", 1, 0, 2, 1)]


@pytest.mark.slow
def test_a_run_that_was_isolated_ends_with_its_killed_worker(noonmark: Cluster, tmp_path: Path) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    load = Load()
    load.now(3, "chaos.blocking_gate", payload={"gate": str(tmp_path / "gate")})
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"queued": 3}, "the runs to be queued")
    for lost in (1, 2):
        worker = noonmark.start("worker")[0]
        noonmark.wait(
            lambda lost=lost: len(noonmark.calls(load.namespace)) == 3 * lost, "every handler to begin"
        )
        worker.kill()
    # Two workers were lost with them: from now on each runs in a separate process.
    before = len(noonmark.calls(load.namespace))
    victim = noonmark.start("worker", worker_processes="3")[0]
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 9, "every handler to begin")
    children = {call["pid"] for call in noonmark.calls(load.namespace)[before:]}
    assert len(children - {victim.pid}) == 3
    victim.kill()
    noonmark.wait(lambda: not any(map(psutil.pid_exists, children)), "its children to end")
    noonmark.start("worker", worker_processes="3")
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 12, "the runs to be retaken")
    (tmp_path / "gate").touch()
    noonmark.assert_clean(load)
    assert runs(noonmark, load) == [("succeeded", 1, 3, 4, 3)]


def test_a_limit_that_a_handler_lowers_is_put_back_and_later_runs_open_files(noonmark: Cluster) -> None:
    *_, worker = noonmark.start(*SERVICES)
    load = Load()
    load.now(1, "chaos.lower_limit")
    noonmark.publish(load)
    noonmark.wait(lambda: worker.logged("limit_restored"), "the limit to be put back")
    later = Load()
    later.now(20, "chaos.open_file", retry={"max_retries": 0})
    noonmark.publish(later)

    noonmark.assert_clean(later)

    assert noonmark.states(load.namespace) == {"succeeded": 1}
    assert worker.logged_field("limit_restored", "limit") == "RLIMIT_NOFILE"
