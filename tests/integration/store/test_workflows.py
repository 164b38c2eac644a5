"""Workflow runs in the store: opened, advanced, ended; each end of a task is told, and decided once."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import UUID

import pytest
from tests.integration.store.room import settle
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World

from noonmark.core.states import Lane, RunState
from noonmark.schemas.events.submissions import JobRef, PauseJob, ResumeJob
from noonmark.store.runs import cancel, dead_letters
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.workflows import holds
from noonmark.store.workflows.advance import WorkflowPass

DIAMOND = {
    "a": {},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["a"]},
    "d": {"depends_on": ["b", "c"]},
}


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


def test_a_diamond_runs_from_its_root_to_its_join(flows: Flows) -> None:
    run_id = flows.open(DIAMOND)
    assert flows.world.run(run_id)["state"] == "running"
    assert flows.tasks(run_id) == {"a": "queued"}
    flows.end(run_id, ["a"])
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued", "c": "queued"}
    flows.end(run_id, ["b"])
    assert "d" not in flows.tasks(run_id)
    flows.end(run_id, ["c"])
    assert flows.tasks(run_id)["d"] == "queued"
    flows.end(run_id, ["d"])
    row = flows.world.run(run_id)
    assert (row["state"], row["reason"], row["error"]) == ("succeeded", None, None)
    flows.nothing_is_left(run_id)


def test_two_parents_that_end_in_one_batch_start_their_child_once(flows: Flows) -> None:
    run_id = flows.open(DIAMOND)
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b", "c"])
    assert flows.world.count("runs", "origin = 'task'") == 4
    flows.end(run_id, ["d"])
    assert flows.world.run(run_id)["state"] == "succeeded"


def test_runs_of_tasks_are_in_the_day_of_their_workflow_and_due_when_they_were_decided(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(DIAMOND, run_at=(world.now() - timedelta(hours=1)).isoformat())
    flow, task = world.run(run_id), world.run(flows.run_id(run_id, "a"))
    assert task["scheduled_for"] == flow["scheduled_for"]
    assert flow["started_at"] <= task["due_at"] <= world.now()
    assert task["job_version"] == 1
    assert task["request_id"] == f"{run_id}/0/0/1"


def test_a_failure_skips_what_needs_the_task_and_ends_as_one_dead_letter(flows: Flows) -> None:
    run_id = flows.open(DIAMOND)
    flows.end(run_id, ["a"], RunState.DEAD)
    assert flows.tasks(run_id) == {
        "a": "dead",
        "b": "skipped upstream_failed",
        "c": "skipped upstream_failed",
        "d": "skipped upstream_failed",
    }
    row = flows.world.run(run_id)
    assert (row["state"], row["reason"]) == ("dead", "task_failed")
    assert row["error"] == "task a failed: boom"
    assert flows.world.column("select run_id from dead_letters") == [run_id]
    told = [(one["origin"], one["state"]) for one in flows.world.told()]
    assert sorted(told) == [("schedule", "dead"), ("task", "dead"), *[("task", "skipped")] * 3]
    flows.nothing_is_left(run_id)


@pytest.mark.parametrize("state", [RunState.UNKNOWN, RunState.DISCARDED])
def test_every_bad_end_of_a_task_is_a_failure(flows: Flows, state: RunState) -> None:
    run_id = flows.open(DIAMOND)
    flows.end(run_id, ["a"], state, **({"reason": "by_handler"} if state is RunState.DISCARDED else {}))
    assert flows.world.run(run_id)["reason"] == "task_failed"
    flows.nothing_is_left(run_id)


def test_a_failure_that_a_task_handles_does_not_fail_the_run(flows: Flows) -> None:
    run_id = flows.open({"a": {}, "mend": {"depends_on": ["a"], "rule": "one_failed", "handles": ["a"]}})
    flows.end(run_id, ["a"], RunState.DEAD)
    flows.end(run_id, ["mend"])
    assert flows.world.run(run_id)["state"] == "succeeded"
    assert flows.world.count("dead_letters") == 0


def test_edges_and_tasks_look_at_results(flows: Flows) -> None:
    run_id = flows.open(
        {
            "size": {},
            "big": {"depends_on": [{"task": "size", "if": {"at": "/rows", "gt": 10}}]},
            "small": {"depends_on": [{"task": "size", "if": {"at": "/rows", "le": 10}}]},
            "report": {"depends_on": ["big", "small"], "rule": "none_failed"},
            "page": {
                "depends_on": ["report"],
                "when": {"result": "size", "at": "/rows", "gt": 1000},
            },
        }
    )
    flows.end(run_id, ["size"], result='{"rows": 12}')
    assert flows.tasks(run_id)["small"] == "skipped upstream_skipped"
    flows.end(run_id, ["big"])
    flows.end(run_id, ["report"])
    assert flows.tasks(run_id)["page"] == "skipped condition"
    assert flows.world.run(run_id)["state"] == "succeeded"


def test_the_result_of_a_run_is_the_value_that_its_document_points_to(flows: Flows) -> None:
    run_id = flows.open({"a": {}}, result={"result": "a", "at": "/total"})
    flows.end(run_id, ["a"], result='{"total": [1, 2]}')
    assert flows.world.run(run_id)["result"] == [1, 2]


def test_final_tasks_run_after_all_others_whatever_became_of_them(flows: Flows) -> None:
    run_id = flows.open({"a": {}, "b": {"depends_on": ["a"]}}, **{"finally": {"tidy": {}}})
    flows.end(run_id, ["a"], RunState.DEAD)
    assert flows.tasks(run_id)["tidy"] == "queued"
    assert flows.world.run(run_id)["state"] == "running"
    flows.end(run_id, ["tidy"])
    assert flows.world.run(run_id)["reason"] == "task_failed"


def test_a_final_task_that_fails_fails_the_run(flows: Flows) -> None:
    run_id = flows.open({"a": {}}, **{"finally": {"tidy": {}}})
    flows.end(run_id, ["a"])
    flows.end(run_id, ["tidy"], RunState.DEAD)
    assert flows.world.run(run_id)["reason"] == "finally_failed"


# stopping


def _cancel(flows: Flows, run_id: object) -> None:
    row = flows.world.run(run_id)  # type: ignore[arg-type]
    cancel.cancel(
        flows.world.db, TOPICS, [RunKey(row["id"], row["scheduled_for"])], reason="by me", shards=SHARDS
    )


def test_a_cancelled_run_ends_its_tasks_and_runs_the_final_ones(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({**DIAMOND, "x": {}}, **{"finally": {"tidy": {}}})
    worker = world.worker()
    (running,) = world.start(worker, [flows.run_id(run_id, "a")])
    _cancel(flows, run_id)
    assert world.run(run_id)["state"] == "cancelling"
    flows.advance()
    assert flows.tasks(run_id) == {
        "a": "cancelling",
        "x": "cancelled",
        "b": "skipped cancelled",
        "c": "skipped cancelled",
        "d": "skipped cancelled",
    }
    world.record(worker, [_outcome(running)])
    flows.advance()
    assert flows.tasks(run_id)["a"] == "cancelled"
    assert flows.tasks(run_id)["tidy"] == "queued"
    flows.end(run_id, ["tidy"])
    row = world.run(run_id)
    assert (row["state"], row["reason"]) == ("cancelled", "by me")
    flows.nothing_is_left(run_id)


def _outcome(run: object) -> object:
    from tests.integration.store.world import outcome  # noqa: PLC0415

    return outcome(run, RunState.SUCCEEDED)  # type: ignore[arg-type]


def test_a_run_that_was_not_opened_yet_is_cancelled_at_once(flows: Flows) -> None:
    run_id = flows.run_of(flows.create(DIAMOND))
    _cancel(flows, run_id)
    assert flows.world.run(run_id)["state"] == "cancelled"
    flows.hand_over()
    flows.advance()
    flows.nothing_is_left(run_id)


def test_a_deadline_ends_the_run_as_dead(flows: Flows) -> None:
    run_id = flows.open(DIAMOND, deadline_seconds=3600)
    flows.world.turn_clock(timedelta(hours=1, seconds=1))
    flows.advance()
    row = flows.world.run(run_id)
    assert (row["state"], row["reason"]) == ("dead", "deadline")
    assert flows.tasks(run_id)["a"] == "cancelled"
    flows.nothing_is_left(run_id)


# repetition and rivals


def test_a_second_trigger_that_takes_the_other_parent_waits_for_nothing_and_loses_nothing(
    flows: Flows,
) -> None:
    world = flows.world
    run_id = flows.open(DIAMOND)
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b"], advance=False)
    flows.end(run_id, ["c"], advance=False)
    others = [(WorkflowPass(TOPICS, shards=SHARDS), world.another()) for _ in range(4)]
    barrier = threading.Barrier(len(others))

    def go(one: WorkflowPass, connection: object) -> None:
        barrier.wait()
        for _ in range(20):
            for lane in Lane:
                one.run(connection, lane, EVERY_SHARD, 1, arrays=False)  # type: ignore[arg-type]

    threads = [threading.Thread(target=go, args=each) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert flows.tasks(run_id)["d"] == "queued"
    assert world.count("runs", "origin = 'task'") == 4
    assert world.count("timers", "kind = 5") == 0


def test_a_pass_that_dies_before_its_commit_is_repeated(
    flows: Flows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = flows.open(DIAMOND)
    flows.end(run_id, ["a"], advance=False)

    def die(_point: str) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("noonmark.store.workflows.advance.hit", die)
        with pytest.raises(RuntimeError):
            flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded"}
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued", "c": "queued"}


def test_a_workflow_that_cannot_be_advanced_does_not_stop_the_others(
    flows: Flows, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = flows.world
    broken = flows.open({"a": {}, "b": {"depends_on": [{"task": "a", "if": {"at": "/x", "eq": 1}}]}})
    fine = flows.open({"a": {}}, name="other")
    flows.end(broken, ["a"], advance=False)
    flows.end(fine, ["a"], advance=False)
    with monkeypatch.context() as patch:

        def fails(*_: object, **__: object) -> bool:
            raise ValueError("no such thing")

        patch.setattr("noonmark.core.workflows.conditions.Condition.holds", fails)
        done = flows.advance()
    assert [run_id for one in done for run_id, _ in one.broken] == [broken]
    assert world.run(fine)["state"] == "succeeded"
    world.turn_clock(timedelta(seconds=61))
    flows.advance()
    assert world.run(broken)["state"] == "succeeded"


# redrive


def test_a_redrive_keeps_what_succeeded_and_runs_the_rest_in_a_new_generation(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open({**DIAMOND, "after": {"depends_on": ["d"]}}, **{"finally": {"tidy": {}}})
    flows.end(run_id, ["a"])
    flows.end(run_id, ["b"])
    flows.end(run_id, ["c"], RunState.DEAD)
    flows.end(run_id, ["tidy"])
    assert world.run(run_id)["state"] == "dead"
    _redrive(flows, run_id)
    assert flows.tasks(run_id) == {
        "a": "succeeded",
        "b": "succeeded",
        "c": "queued",
        "d": "skipped upstream_failed",
        "after": "skipped upstream_failed",
        "tidy": "succeeded",
    }
    flows.end(run_id, ["c"])
    flows.end(run_id, ["d"])
    flows.end(run_id, ["after"])
    assert world.run(run_id)["state"] == "running"
    flows.end(run_id, ["tidy"])
    row = world.run(run_id)
    assert (row["state"], row["error"]) == ("succeeded", None)
    assert world.count("dead_letters") == 0
    generations = world.column(
        "select split_part(request_id, '/', 4)::int from runs where origin = 'task' and state = 'succeeded'"
        " order by 1"
    )
    assert generations == [1, 1, 1, 2, 2, 2, 2]
    flows.nothing_is_left(run_id)


def test_a_redrive_knows_which_branch_was_taken(flows: Flows) -> None:
    run_id = flows.open(
        {
            "a": {},
            "yes": {"depends_on": [{"task": "a", "if": {"at": "/go", "eq": True}}]},
            "no": {"depends_on": [{"task": "a", "if": {"at": "/go", "eq": False}}]},
            "last": {"depends_on": ["yes"]},
        }
    )
    flows.end(run_id, ["a"], result='{"go": true}')
    flows.end(run_id, ["yes"])
    flows.end(run_id, ["last"], RunState.DEAD)
    _redrive(flows, run_id)
    assert flows.tasks(run_id) == {
        "a": "succeeded",
        "yes": "succeeded",
        "no": "skipped upstream_skipped",
        "last": "queued",
    }


def test_a_handler_of_a_failure_runs_again_with_it(flows: Flows) -> None:
    run_id = flows.open({"a": {}, "tell": {"depends_on": ["a"], "rule": "one_failed"}})
    flows.end(run_id, ["a"], RunState.DEAD)
    flows.end(run_id, ["tell"])
    assert flows.world.run(run_id)["state"] == "dead"
    _redrive(flows, run_id)
    flows.end(run_id, ["a"], RunState.DEAD)
    flows.end(run_id, ["tell"])
    assert flows.world.run(run_id)["state"] == "dead"
    assert flows.world.count("dead_letters") == 1


def _redrive(flows: Flows, run_id: UUID) -> None:
    dead = dead_letters.find(flows.world.db, DeadSelection(runs=[run_id]))
    assert dead_letters.redrive(flows.world.db, TOPICS, dead, shards=SHARDS).done == 1
    flows.hand_over()
    flows.advance()


# pauses and caps


def test_a_paused_workflow_starts_nothing_until_its_resume(flows: Flows) -> None:
    run_id = flows.open(DIAMOND)
    world, job_id = flows.world, flows.world.run(run_id)["job_id"]
    worker = world.worker()
    (running,) = world.start(worker, [flows.run_id(run_id, "a")])
    flows.submit(PauseJob(JobRef(job_id, "tests", None), None))
    world.record(worker, [_outcome(running)])
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded"}
    assert world.count("timers", "kind = 5 and fire_at > now() + interval '1 year'") == 1
    flows.submit(ResumeJob(JobRef(job_id, "tests", None)))
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued", "c": "queued"}


def test_tasks_wait_for_the_cap_of_their_namespace_and_their_workflow_does_not(flows: Flows) -> None:
    world = flows.world
    world.db.execute("insert into namespaces (name, max_in_flight) values ('tests', 1)")
    run_id = flows.open({"a": {}, "b": {}})
    assert world.run(run_id)["state"] == "running"
    settle(world)
    assert sorted(flows.tasks(run_id).values()) == ["queued", "waiting"]
    (first,) = [key for key, state in flows.tasks(run_id).items() if state == "queued"]
    flows.end(run_id, [first])
    settle(world)
    (second,) = {"a", "b"} - {first}
    flows.end(run_id, [second])
    assert world.run(run_id)["state"] == "succeeded"
    assert world.count("limit_slots") == 0


def test_workflow_runs_wait_for_each_other_by_the_overlap_rule_and_their_tasks_do_not(flows: Flows) -> None:
    world = flows.world
    job_id = flows.create(DIAMOND, schedule={"every": "PT1H"}, overlap="queue_one")
    world.db.execute(
        "update timers set fire_at = noonmark_now(), scheduled_for = noonmark_now() - interval '1 s'"
    )
    flows.claim()
    flows.hand_over()
    flows.advance()
    first = flows.run_of(job_id)
    world.db.execute(
        "update timers set fire_at = noonmark_now(), scheduled_for = noonmark_now() where kind in (1, 3)"
    )
    flows.claim()
    second = flows.run_of(job_id)
    assert first != second
    assert (world.run(second)["state"], world.run(second)["reason"]) == ("waiting", "overlap")
    for keys in (["a"], ["b", "c"], ["d"]):
        flows.end(first, keys)
    assert world.run(first)["state"] == "succeeded"
    settle(world)
    flows.hand_over()
    flows.advance()
    assert world.run(second)["state"] == "running"
    assert flows.tasks(second) == {"a": "queued"}


def test_a_held_run_starts_nothing_until_it_is_released(flows: Flows) -> None:
    world = flows.world
    run_id = flows.open(DIAMOND)
    assert holds.hold(world.db, [run_id]) == {run_id}
    flows.end(run_id, ["a"])
    assert flows.tasks(run_id) == {"a": "succeeded"}
    assert holds.release(world.db, [run_id]) == {run_id}
    flows.advance()
    assert flows.tasks(run_id) == {"a": "succeeded", "b": "queued", "c": "queued"}
    for keys in (["b", "c"], ["d"]):
        flows.end(run_id, keys)
    assert holds.hold(world.db, [run_id]) == set()


def test_a_held_run_can_be_cancelled(flows: Flows) -> None:
    run_id = flows.open(DIAMOND)
    holds.hold(flows.world.db, [run_id])
    flows.end(run_id, ["a"])
    _cancel(flows, run_id)
    flows.advance()
    assert flows.world.run(run_id)["state"] == "cancelled"
    flows.nothing_is_left(run_id)
