"""Workflows through all services whose tasks end in ways that nobody wants: each run has its verdict all the same."""

from pathlib import Path
from typing import Any

from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.world import open_world
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load

from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import cancel
from noonmark.store.runs.cancel import RunKey

RECORD = {"type": "python", "handler": "chaos.record"}
NONE = {"max_retries": 0}
STORED = ("64 KB", "null", "a list", "no number")
REFUSED = ("a NUL", "too much", "half a surrogate pair", "no JSON", "deep")
RESULTS = (*STORED, *REFUSED)
"""What `chaos.returns` returns."""


def after(task: str, **more: Any) -> dict[str, Any]:
    """A task that follows another."""
    return {**RECORD, "depends_on": [task], **more}


def verdicts(noonmark: Cluster, load: Load) -> dict[str, tuple[str, str | None]]:
    """State and reason of the workflow run of each job."""
    rows = noonmark.rows(
        "select name, runs.state, reason from runs join jobs on jobs.id = job_id"
        " where origin <> 'task' and runs.namespace = %s",
        load.namespace,
    )
    return {name: (state, reason) for name, state, reason in rows}


def tasks(noonmark: Cluster, load: Load, name: str) -> dict[str, str]:
    """State of each task of a job."""
    return dict(
        noonmark.rows(
            "select task.key, run.state from runs as run join jobs on jobs.id = run.job_id"
            " join workflow_tasks as task on task.job_id = run.job_id and task.version = run.job_version"
            " and task.task_no::text = split_part(run.request_id, '/', 2)"
            " where run.origin = 'task' and run.namespace = %s and jobs.name = %s",
            load.namespace,
            name,
        )
    )


def ended(noonmark: Cluster, load: Load, expected: dict[str, tuple[str, str | None]], within: float) -> None:
    noonmark.wait(
        lambda: verdicts(noonmark, load) == expected, f"{expected}: {verdicts(noonmark, load)}", within
    )
    with open_world(noonmark.dsn) as world:
        assert_consistent(world)


def test_whatever_a_handler_returns_its_children_are_decided(noonmark: Cluster) -> None:
    noonmark.start(*SERVICES)
    load, events = Load(), []
    for what in RESULTS:
        first = {"type": "python", "handler": "chaos.returns", "payload": {"what": what}, "retry": NONE}
        done = {
            "a": first,
            "b": after("a"),
            "c": {**RECORD, "depends_on": [{"task": "a", "if": {"at": "/x", "exists": True}}]},
            "d": after("c", rule="all_done", when={"verdict": "a", "in": ["succeeded", "failed"]}),
        }
        events.append(
            load.event({"name": what, "type": "workflow", "tasks": done, "result": {"result": "a", "at": ""}})
        )
    noonmark.publish(load, events=events)
    expected = {what: ("dead", "task_failed") if what in REFUSED else ("succeeded", None) for what in RESULTS}
    noonmark.wait(
        lambda: (
            len(verdicts(noonmark, load)) == len(RESULTS)
            and {state for state, _ in verdicts(noonmark, load).values()} <= {"dead", "succeeded"}
        ),
        "all to end",
        60,
    )
    ended(noonmark, load, expected, 1)


def test_a_task_that_kills_its_workers_is_decided_when_its_budget_of_losses_is_used_up(
    noonmark: Cluster,
) -> None:
    noonmark.start(*SERVICES)
    load = Load()
    kills = {"type": "python", "handler": "chaos.kill_worker", "retry": NONE}
    chain = {"a": RECORD, "b": {**kills, "depends_on": ["a"]}, "c": after("b")}
    told = {"tell": after("b", rule="one_failed", handles=["b"])}
    noonmark.publish(
        load,
        events=[
            load.event({"name": "killer", "type": "workflow", "tasks": chain}),
            load.event({"name": "told", "type": "workflow", "tasks": {**chain, **told}}),
        ],
    )
    worker = noonmark.node("worker")

    def look() -> bool:
        nonlocal worker
        worker.expected_alive = False
        if not worker.alive:
            worker = noonmark.launch("worker")
        return all(state in ("dead", "succeeded") for state, _ in verdicts(noonmark, load).values()) and (
            len(verdicts(noonmark, load)) == 2
        )

    noonmark.wait(look, "the budget of losses to be used up", 100)
    ended(noonmark, load, {"killer": ("dead", "task_failed"), "told": ("succeeded", None)}, 10)
    assert tasks(noonmark, load, "killer")["c"] == "skipped"


def test_a_cancel_of_many_tasks_ends_all_although_the_trigger_dies_of_it(
    noonmark: Cluster, tmp_path: Path
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", worker_slots="30")
    load = Load()
    gate = {"type": "python", "handler": "chaos.gate", "payload": {"gate": str(tmp_path / "gate")}}
    many = {f"t{n}": gate for n in range(50)} | {f"u{n}": after(f"t{n}") for n in range(50)}
    noonmark.publish(
        load,
        events=[load.event({"name": "many", "type": "workflow", "tasks": many, "finally": {"tidy": RECORD}})],
    )
    noonmark.wait(lambda: list(tasks(noonmark, load, "many").values()).count("running") >= 20, "many to run")
    assert noonmark.node("trigger").stop() == 0
    key = RunKey(*noonmark.rows("select run_id, scheduled_for from workflows")[0])
    topics = EventTopics(noonmark.topics.lifecycle, noonmark.topics.dead)
    with open_world(noonmark.dsn) as world:
        assert cancel.cancel(world.db, topics, [key], reason="by me", shards=4).stopping == [key]
    victim = noonmark.launch("trigger", fault="workflow.before_commit=1")
    noonmark.wait(lambda: not victim.alive, "the trigger to die", 30)
    assert victim.process.wait() == -9
    assert verdicts(noonmark, load) == {"many": ("cancelling", "by me")}
    with open_world(noonmark.dsn) as world:
        assert not cancel.cancel(world.db, topics, [key], reason="again", shards=4).stopping
    noonmark.start("trigger")
    ended(noonmark, load, {"many": ("cancelled", "by me")}, 60)
    states = tasks(noonmark, load, "many")
    assert states.pop("tidy") == "succeeded"
    assert sorted({state for key, state in states.items() if key[0] == "t"}) == ["cancelled"]
    assert {state for key, state in states.items() if key[0] == "u"} == {"skipped"}
    assert sum(call["run"] in finals(noonmark) for call in noonmark.calls(load.namespace)) == 1


def finals(noonmark: Cluster) -> set[str]:
    """Runs of tasks of `finally`."""
    return {
        row[0]
        for row in noonmark.rows(
            "select run.id::text from runs as run join workflow_tasks as task on task.job_id = run.job_id"
            " and task.task_no::text = split_part(run.request_id, '/', 2) where run.origin = 'task' and key = 'tidy'"
        )
    }
