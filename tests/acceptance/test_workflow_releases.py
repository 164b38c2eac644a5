"""Workflows while processes of the release before run: refused, or waiting; never lost, doubled or stuck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load
from tests.support.releases import previous_release

pytestmark = pytest.mark.slow

RECORD = {"type": "python", "handler": "chaos.record"}
TASKS = {"a": RECORD, "b": {**RECORD, "depends_on": ["a"]}, "c": {**RECORD, "depends_on": ["b"]}}


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The packages of the release before."""
    found = previous_release(tmp_path / "release")
    if found is None:
        pytest.skip("the history does not reach back to the release before")
    return found[1]


def _flows(load: Load, count: int) -> list[dict[str, Any]]:
    return [load.event({"name": f"flow {n}", "type": "workflow", "tasks": TASKS}) for n in range(count)]


def _states(noonmark: Cluster, load: Load) -> dict[str, int]:
    query = "select state, count(*) from runs where namespace = %s and origin <> 'task' group by 1"
    return dict(noonmark.rows(query, load.namespace))


def test_a_workflow_is_refused_while_a_process_cannot_have_its_part(noonmark: Cluster, before: Path) -> None:
    noonmark.start(*SERVICES)
    (old,) = noonmark.start("worker", code=before)
    load = Load()
    noonmark.publish(load, events=_flows(load, 1))
    noonmark.wait(lambda: noonmark.rows("select errors from rejections"), "the workflow to be refused")
    ((errors,),) = noonmark.rows("select errors from rejections")
    assert errors[0]["pointer"] == "/data/type"
    assert "a worker of pool 'default' is of a release that cannot run workflows" in errors[0]["message"]
    assert old.stop() == 0

    noonmark.publish(load, events=_flows(load, 1))
    noonmark.wait(lambda: _states(noonmark, load) == {"succeeded": 1}, "the workflow to end")


def test_workflows_wait_while_only_the_release_before_runs_and_go_on_with_this_one(
    noonmark: Cluster, before: Path
) -> None:
    noonmark.start(*SERVICES)
    load = Load()
    events = _flows(load, 20)
    noonmark.publish(load, events=events)
    noonmark.wait(lambda: _states(noonmark, load).get("running"), "workflows to be open")
    for service in SERVICES:
        assert noonmark.node(service).stop() == 0
    old = noonmark.start(*SERVICES, code=before)
    plain = Load()
    plain.now(20)
    noonmark.take_in(plain)
    noonmark.settle(plain)
    assert sum(_states(noonmark, load).values()) == 20
    for node in old:
        assert node.stop() == 0

    noonmark.start(*SERVICES)
    # Runs whose message the old dispatcher could not send were parked, and are tried again each minute.
    noonmark.wait(lambda: _states(noonmark, load) == {"succeeded": 20}, "every workflow to end", within=150)
    tasks = noonmark.rows(
        "select state, count(*), max(attempt) from runs where origin = 'task' and namespace = %s group by 1",
        load.namespace,
    )
    assert [(state, count) for state, count, _ in tasks] == [("succeeded", 60)]
    assert noonmark.value("select count(*) from workflows") == 0
    assert noonmark.value("select count(*) from timers") == 0
