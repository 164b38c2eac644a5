"""Workflow runs that people redrive, whose document they edit, and that they cancel."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import SHARDS, TOPICS, World, outcome

from noonmark.core.states import RunState
from noonmark.schemas.events.submissions import JobRef, TriggerJob, UpdateJob
from noonmark.settings import Settings
from noonmark.store.jobs.requests import FactCache, Request, Status
from noonmark.store.jobs.submit import accept
from noonmark.store.maintenance import housekeeping
from noonmark.store.runs import cancel, dead_letters
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.schedules.time_facts import read_time_facts

CHAIN: dict[str, Any] = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def stop(flows: Flows, *run_ids: UUID) -> cancel.Cancels:
    keys = [RunKey(run_id, flows.world.run(run_id)["scheduled_for"]) for run_id in run_ids]
    return cancel.cancel(flows.world.db, TOPICS, keys, reason="by me", shards=SHARDS)


def redrive(flows: Flows, run_id: UUID) -> None:
    dead = dead_letters.find(flows.world.db, DeadSelection(runs=[run_id]))
    assert dead_letters.redrive(flows.world.db, TOPICS, dead, shards=SHARDS).done == 1
    flows.hand_over()
    flows.advance()


# redrive


def test_a_failure_that_is_told_and_redriven_is_told_again(flows: Flows) -> None:
    for handles, verdict in (([], "dead"), (["task"], "succeeded")):
        tell = {"depends_on": ["task"], "rule": "one_failed", "handles": handles}
        run_id = flows.open({"task": {}, "tell_us": tell}, name=f"flow {verdict}")
        flows.end(run_id, ["task"], RunState.DEAD)
        flows.end(run_id, ["tell_us"])
        assert flows.world.run(run_id)["state"] == verdict
        if verdict == "dead":
            redrive(flows, run_id)
            assert flows.tasks(run_id) == {"task": "queued", "tell_us": "succeeded"}
            flows.end(run_id, ["task"], RunState.DEAD)
            assert flows.tasks(run_id) == {"task": "dead", "tell_us": "queued"}
            flows.end(run_id, ["tell_us"])
            assert flows.world.run(run_id)["state"] == "dead"
        flows.nothing_is_left(run_id)


def test_a_run_can_be_redriven_again_and_again_and_keeps_what_succeeded(flows: Flows) -> None:
    run_id = flows.open(CHAIN)
    flows.end(run_id, ["a"])
    for _ in range(5):
        flows.end(run_id, ["b"], RunState.DEAD)
        assert flows.world.run(run_id)["state"] == "dead"
        assert_consistent(flows.world)
        redrive(flows, run_id)
    flows.end(run_id, ["b"])
    flows.end(run_id, ["c"])
    assert flows.world.run(run_id)["state"] == "succeeded"
    assert flows.world.count("runs", "origin = 'task' and request_id like '%%/0/0/%%'") == 1
    flows.nothing_is_left(run_id)


def test_a_run_whose_deadline_passed_is_redriven_with_a_new_deadline(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(CHAIN, deadline_seconds=60)
    flows.end(run_id, ["a"])
    world.turn_clock(timedelta(seconds=61))
    flows.advance()
    assert world.run(run_id)["reason"] == "deadline"
    redrive(flows, run_id)
    assert world.run(run_id)["state"] == "running"
    flows.end(run_id, ["b"])
    flows.end(run_id, ["c"])
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


# a document that is edited


def test_open_runs_finish_by_the_document_that_they_began_with_and_so_does_a_redrive(flows: Flows) -> None:
    world = flows.world
    old = {**CHAIN, "d": {"depends_on": ["b"], "rule": "one_failed"}}
    job_id = flows.create(old, name="edited")
    flows.claim()
    ref = JobRef(job_id, "tests", None)
    for _ in range(19):
        flows.submit(TriggerJob(ref, None))
    flows.hand_over()
    flows.advance()
    runs = world.column("select id from runs where origin <> 'task' order by id")
    assert len(runs) == 20
    new = {"z": {}, "a": {"depends_on": ["z"]}, "c": {"depends_on": ["a"], "rule": "all_done"}}
    flows.submit(UpdateJob(ref, flows.document(new, name="edited")))
    newer = runs_after(flows, ref)
    for n, run_id in enumerate(runs):
        flows.end(run_id, ["a"])
        flows.end(run_id, ["b"], RunState.DEAD if n < 2 else RunState.SUCCEEDED)
        flows.end(run_id, ["d" if n < 2 else "c"])
    assert flows.tasks(newer) == {"z": "queued"}
    assert [world.run(one)["state"] for one in runs] == ["dead"] * 2 + ["succeeded"] * 18
    redrive(flows, runs[0])
    assert flows.tasks(runs[0]) == {
        "a": "succeeded",
        "b": "queued",
        "c": "skipped upstream_failed",
        "d": "succeeded",
    }
    flows.end(runs[0], ["b"])
    flows.end(runs[0], ["c"])
    assert world.run(runs[0])["state"] == "succeeded"
    assert set(
        world.column(
            "select job_version from runs where scheduled_for = %s", world.run(runs[0])["scheduled_for"]
        )
    ) == {1}
    for key in ("z", "a", "c"):
        flows.end(newer, [key])
    assert world.run(newer)["state"] == "succeeded"
    flows.nothing_is_left(newer)


def runs_after(flows: Flows, ref: JobRef) -> UUID:
    """Run the edited job once; return the run."""
    before = set(flows.world.column("select id from runs where origin <> 'task'"))
    flows.submit(TriggerJob(ref, None))
    flows.claim()
    flows.hand_over()
    flows.advance()
    after_it = flows.world.column("select id from runs where origin <> 'task' and job_version = 2")
    (run_id, *_) = [one for one in after_it if one not in before]
    return run_id


def test_a_run_with_a_payload_of_its_own_has_the_tasks_of_its_document(flows: Flows) -> None:
    """A workflow has no payload: the request is refused, or its run has tasks; it is never a run that cannot open."""
    world = flows.world
    job_id = flows.create(CHAIN, name="paid")
    request = Request(TriggerJob(JobRef(job_id, "tests", None), b'{"n": 1}'), None)
    with world.db.transaction():
        taken = accept(
            world.db,
            [request],
            topics=TOPICS,
            known=FactCache(),
            shards=SHARDS,
            facts=read_time_facts(world.db),
        )
    flows.claim()
    flows.hand_over()
    flows.advance()
    runs = world.rows("select id, state from runs where origin <> 'task'")
    assert taken.results[0].status in (Status.ACCEPTED, Status.REJECTED)
    assert [one["state"] for one in runs] == ["running"] * len(runs)


def test_the_day_of_an_open_run_is_kept_however_old_it_is(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(CHAIN)
    world.turn_clock(timedelta(days=400))
    housekeeping.run_housekeeping(world.db, Settings())
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b"])
    housekeeping.run_housekeeping(world.db, Settings())
    flows.end(run_id, ["c"])
    assert world.run(run_id)["state"] == "succeeded"
    flows.nothing_is_left(run_id)


# a large cancel


def die(_point: str) -> None:
    raise RuntimeError


@pytest.mark.slow
def test_a_cancel_of_a_thousand_tasks_ends_all_asks_the_running_to_stop_and_runs_the_final_one(
    flows: Flows,
) -> None:
    world = flows.world
    tasks: dict[str, Any] = {f"t{n}": {} for n in range(500)}
    tasks |= {f"u{n}": {"depends_on": [f"t{n}"]} for n in range(500)}
    run_id = flows.open(tasks, **{"finally": {"tidy": {}}})
    worker = world.worker()
    running = world.start(worker, [flows.run_id(run_id, f"t{n}") for n in range(300)])
    assert stop(flows, run_id).stopping
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("noonmark.store.workflows.advance.hit", die)
        with pytest.raises(RuntimeError):
            flows.advance()
    assert world.run(run_id)["state"] == "cancelling"
    assert stop(flows, run_id) == cancel.Cancels(), "it is being cancelled already"
    flows.advance()
    counts = dict(
        world.db.execute("select state, count(*) from runs where origin = 'task' group by 1").fetchall()
    )
    assert counts == {"cancelling": 300, "cancelled": 200, "skipped": 500}
    world.record(worker, [outcome(run, RunState.CANCELLED) for run in running[:200]])
    flows.advance()
    assert "tidy" not in flows.tasks(run_id)
    world.record(worker, [outcome(run) for run in running[200:]])
    flows.advance()
    assert stop(flows, run_id) == cancel.Cancels()
    flows.end(run_id, ["tidy"])
    assert world.run(run_id)["state"] == "cancelled"
    assert stop(flows, run_id) == cancel.Cancels()
    assert world.count("runs", "origin = 'task' and state = 'succeeded'") == 1
    flows.nothing_is_left(run_id)
