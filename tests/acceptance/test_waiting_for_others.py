"""A worker that drains, and a person's open transaction: neither holds up runs that others can execute."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cluster import Cluster, Node
from tests.support.publish import Load

pytestmark = pytest.mark.slow

QUICK = 10


def busy_worker(noonmark: Cluster, load: Load, gate: Path) -> Node:
    """A worker whose only slot is used until the gate opens; messages of other runs are in its buffers."""
    (worker,) = noonmark.start("worker", worker_slots="1", drain_seconds="300")
    load.now(1, "chaos.blocking_gate", payload={"gate": str(gate)})
    noonmark.publish(load)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 1, "the first run to begin")
    begun = len(load.events)
    load.now(QUICK, "chaos.record")
    noonmark.publish(load, events=load.events[begun:])
    noonmark.wait(lambda: noonmark.states(load.namespace).get("queued") == QUICK, "the others to be queued")
    noonmark.wait(lambda: noonmark.value("select count(*) from outbox where value is null") == 0, "relay")
    return worker


def test_runs_that_a_draining_worker_has_not_begun_are_executed_by_others_while_it_drains(
    noonmark: Cluster, tmp_path: Path
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    load, gate = Load(), tmp_path / "gate"
    leaving = busy_worker(noonmark, load, gate)
    leaving.expected_alive = False

    leaving.terminate()
    noonmark.launch("worker")
    noonmark.wait(lambda: noonmark.states(load.namespace).get("succeeded") == QUICK, "the quick runs to end")

    assert leaving.alive
    assert noonmark.states(load.namespace) == {"succeeded": QUICK, "running": 1}
    gate.touch()
    assert leaving.process.wait(60) == 0, leaving.log()
    noonmark.settle(load, 60)
    # The message of the run in flight went to the other worker, too, and started nothing.
    assert noonmark.rows("select state, attempt, fence, count(*) from runs group by 1, 2, 3") == [
        ("succeeded", 1, 1, QUICK + 1)
    ]
    noonmark.wait(lambda: noonmark.lag() == 0, "the offsets to move past all messages")
    noonmark.assert_clean(load)


def test_a_queued_run_that_a_person_has_locked_holds_up_no_other_start(
    noonmark: Cluster, tmp_path: Path
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    load, gate = Load(), tmp_path / "gate"
    worker = busy_worker(noonmark, load, gate)
    with noonmark.database.transaction():
        noonmark.database.execute("set local idle_in_transaction_session_timeout = 0")
        (locked,) = noonmark.database.execute(
            "select id from runs where state = 'queued' order by id limit 1 for update"
        ).fetchone()
        gate.touch()
        noonmark.wait(lambda: worker.logged("starts_locked"), "the worker to meet the locked run")
        others = "select count(*) from runs where state = 'succeeded'"
        noonmark.wait(lambda: noonmark.database.execute(others).fetchone() == (QUICK,), "the others to end")
        row = noonmark.database.execute("select state from runs where id = %s", [locked]).fetchone()
        assert row == ("queued",)

    noonmark.settle(load, 60)
    assert noonmark.states(load.namespace) == {"succeeded": QUICK + 1}
    noonmark.assert_clean(load)
