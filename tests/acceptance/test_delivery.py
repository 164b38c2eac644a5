"""What is promised about attempts, under SIGKILL: rows that appear once, and runs that are begun once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cluster import Cluster, Node
from tests.support.publish import Load

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def effects(noonmark: Cluster) -> None:
    noonmark.database.execute("create table effects (run_id uuid, fence int)")


def begun(noonmark: Cluster, load: Load, node: Node) -> set[str]:
    return {call["run"] for call in noonmark.calls(load.namespace) if call["pid"] == node.pid}


def appear_once(noonmark: Cluster, count: int) -> None:
    """Every run has one row, and it is of the attempt whose outcome was recorded."""
    rows = noonmark.rows("select run_id, 'fence ' || fence from effects order by run_id")
    assert rows == noonmark.rows("select id, result #>> '{}' from runs order by id")
    assert len(rows) == count


def test_rows_of_handlers_that_were_killed_in_their_middle_appear_once(
    noonmark: Cluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    noonmark.start("intake", "trigger", "dispatcher")
    victim = noonmark.start("worker")[0]
    load = Load()
    load.now(6, "chaos.insert", payload={"gate": str(gate)}, delivery="exactly_once")
    noonmark.publish(load)
    noonmark.wait(lambda: len(begun(noonmark, load, victim)) == 6, "every handler to have written")
    assert noonmark.value("select count(*) from effects") == 0
    victim.kill()
    noonmark.start("worker")
    gate.touch()
    noonmark.assert_clean(load)
    appear_once(noonmark, 6)
    assert noonmark.rows("select distinct fence from effects") == [(2,)]


@pytest.mark.parametrize(("point", "fences"), [("worker.before_outcome", {2}), ("worker.after_outcome", {1})])
def test_a_worker_that_dies_around_the_commit_leaves_the_row_once(
    noonmark: Cluster, point: str, fences: set[int]
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    victim = noonmark.start("worker", fault=f"{point}=1")[0]
    load = Load()
    load.now(1, "chaos.insert", payload={}, delivery="exactly_once")
    noonmark.publish(load)
    noonmark.wait(lambda: victim.process.poll() is not None, "the fault to strike")
    noonmark.start("worker")
    noonmark.assert_clean(load)
    appear_once(noonmark, 1)
    assert {fence for (fence,) in noonmark.rows("select fence from effects")} == fences


def test_a_run_that_is_done_at_most_once_is_never_begun_again(noonmark: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    noonmark.start("intake", "trigger", "dispatcher")
    victim = noonmark.start("worker")[0]
    once, often = Load(), Load()
    once.now(4, "chaos.blocking_gate", ["unknown"], payload={"gate": str(gate)}, delivery="at_most_once")
    often.now(4, "chaos.blocking_gate", payload={"gate": str(gate)})
    for load in (once, often):
        noonmark.publish(load)
        noonmark.wait(lambda load=load: len(begun(noonmark, load, victim)) == 4, "every handler to begin")
    victim.kill()
    other = noonmark.start("worker")[0]
    noonmark.wait(lambda: len(begun(noonmark, often, other)) == 4, "the others to be taken up", 30)
    gate.touch()
    noonmark.assert_clean(often, once)
    assert noonmark.states(once.namespace) == {"unknown": 4}
    assert len(noonmark.calls(once.namespace)) == 4


def test_a_worker_that_leaves_ends_what_may_not_be_begun_again_as_unknown(
    noonmark: Cluster, tmp_path: Path
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    leaving = noonmark.start("worker", drain_seconds="1")[0]
    load = Load()
    for handler in ("chaos.blocking_gate", "chaos.gate"):
        load.now(3, handler, ["unknown"], payload={"gate": str(tmp_path / "never")}, delivery="at_most_once")
    noonmark.publish(load)
    noonmark.wait(lambda: len(begun(noonmark, load, leaving)) == 6, "every handler to begin")
    leaving.terminate()
    assert leaving.process.wait(20) == 0, leaving.log()
    assert noonmark.rows("select state, reason, count(*) from runs group by 1, 2") == [("unknown", "lost", 6)]
    noonmark.start("worker")
    noonmark.assert_clean(load)
    assert len(noonmark.calls(load.namespace)) == 6
