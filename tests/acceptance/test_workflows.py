"""Workflows through all services: from a submission event to the verdict of each task and of the whole run."""

from typing import Any

from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load

RECORD = {"type": "python", "handler": "chaos.record"}
FAILS = {"type": "python", "handler": "chaos.flaky", "payload": {"fails": 9}, "max_retries": 0}
FLAKY = {
    "type": "python",
    "handler": "chaos.flaky",
    "payload": {"fails": 1},
    "retry": {"max_retries": 2, "delay_seconds": 0.1, "jitter": "none"},
}
TASKS = {
    "extract": RECORD,
    "left": {**RECORD, "depends_on": ["extract"]},
    "right": {**FLAKY, "depends_on": ["extract"]},
    "join": {**RECORD, "depends_on": ["left", "right"]},
    "choose": {**FLAKY, "depends_on": ["join"], "payload": {"fails": 0}},
    "taken": {**RECORD, "depends_on": [{"task": "choose", "if": {"eq": "attempt 1"}}]},
    "left_out": {**RECORD, "depends_on": [{"task": "choose", "if": {"eq": "other"}}]},
}


def documents(load: Load, count: int, **more: Any) -> list[dict[str, Any]]:
    """Submission events of workflows that are due now."""
    return [
        load.event({"name": f"flow {n}", "type": "workflow", "tasks": TASKS, **more}) for n in range(count)
    ]


def test_workflows_run_to_their_verdicts_while_triggers_and_workers_are_killed(noonmark: Cluster) -> None:
    noonmark.start(*SERVICES)
    noonmark.start("trigger", "worker")
    load = Load()
    events = documents(load, 30, **{"finally": {"tidy": RECORD}})
    events += [
        load.event(
            {"name": "fails", "type": "workflow", "tasks": {"a": FAILS, "b": {**RECORD, "depends_on": ["a"]}}}
        )
    ]
    noonmark.publish(load, events=events)
    noonmark.wait(lambda: _flows(noonmark, load).get("running"), "a workflow to run")
    for service in ("trigger", "worker", "dispatcher"):
        node = noonmark.node(service)
        node.kill()
        noonmark.start(service)
    noonmark.wait(
        lambda: _flows(noonmark, load) == {"succeeded": 30, "dead": 1}, "every workflow to end", within=90
    )
    tasks = dict(
        noonmark.rows(
            "select (state, reason)::text, count(*) from runs where origin = 'task' and namespace = %s group by 1",
            load.namespace,
        )
    )
    assert tasks == {
        "(succeeded,)": 30 * 7,
        "(skipped,upstream_skipped)": 30,
        "(dead,retries_exhausted)": 1,
        "(skipped,upstream_failed)": 1,
    }
    assert noonmark.value("select count(*) from dead_letters") == 1
    assert noonmark.value("select count(*) from workflows") == 0
    assert noonmark.value("select count(*) from timers") == 0


def _flows(noonmark: Cluster, load: Load) -> dict[str, int]:
    return dict(
        noonmark.rows(
            "select state, count(*) from runs where origin <> 'task' and namespace = %s group by 1",
            load.namespace,
        )
    )
