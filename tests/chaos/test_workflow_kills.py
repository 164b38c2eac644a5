"""Every service that moves workflows is killed between two of its steps: each task has one verdict, each run succeeds."""

import json
from collections import Counter, defaultdict

import pytest
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.world import open_world
from tests.support.cluster import Cluster
from tests.support.publish import Load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

INSTANCES = 60
INSTANCES_OF_PASSES = 200
"""More for the points of the pass itself: what it takes up is spread over many passes."""
KILLS = 3
CHAIN = {
    f"t{n}": {"type": "python", "handler": "chaos.record", **({"depends_on": [f"t{n - 1}"]} if n else {})}
    for n in range(5)
}
POINTS = (
    "workflow.before_commit",
    "workflow.after_commit",
    "worker.before_outcome",
    "worker.after_outcome",
    "dispatcher.after_produce",
)
SERVICES = {"workflow": "trigger"}


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_fault_point_loses_no_task_and_runs_none_again_that_has_succeeded(
    noonmark: Cluster, point: str
) -> None:
    part, _, _ = point.partition(".")
    service = SERVICES.get(part, part)
    count = INSTANCES_OF_PASSES if part == "workflow" else INSTANCES
    load = Load()
    events = [load.event({"name": f"chain {n}", "type": "workflow", "tasks": CHAIN}) for n in range(count)]
    assert noonmark.node(service).stop() == 0
    noonmark.publish(load, events=events)
    for kill in range(KILLS):
        # A chain of five needs at least six steps of each service: after these, some are left in any case.
        victim = noonmark.launch(service, fault=f"{point}={1 + kill % 2}")
        noonmark.wait(lambda: not victim.alive, f"{point} to kill its process", 30)  # noqa: B023
        assert victim.process.wait() == -9, victim.log()
    noonmark.start(service)
    noonmark.wait(
        lambda: states(noonmark, load) == {"succeeded": count},
        f"workflows to end: {states(noonmark, load)}",
        60,
    )
    tasks = noonmark.rows(
        "select id::text, state, request_id, finished_at from runs where origin = 'task' and namespace = %s",
        load.namespace,
    )
    assert Counter(state for _, state, _, _ in tasks) == {"succeeded": 5 * count}
    assert len({key for _, _, key, _ in tasks}) == 5 * count
    calls = defaultdict(list)
    for call in noonmark.calls(load.namespace):
        calls[call["run"]].append(call["at"])
    assert set(calls) == {run_id for run_id, _, _, _ in tasks}, "each was called"
    # Another test may have turned the database's clock; calls are dated by the host's.
    behind = float(noonmark.value("select extract(epoch from clock_timestamp() - noonmark_now())"))
    late = [
        (run_id, at)
        for run_id, _, _, finished_at in tasks
        for at in calls[run_id]
        if at > finished_at.timestamp() + behind + 0.001
    ]
    assert late == [], json.dumps(late)
    with open_world(noonmark.dsn) as world:
        assert_consistent(world)


def states(noonmark: Cluster, load: Load) -> dict[str, int]:
    """How many workflow runs are in each state."""
    return dict(
        noonmark.rows(
            "select state, count(*) from runs where origin <> 'task' and namespace = %s group by 1",
            load.namespace,
        )
    )
