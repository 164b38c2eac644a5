"""Why a task of a workflow has not run, and what a workflow run waits for or died of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.unit.core.test_why import GONE, NOW, RUN_ID, WELL, ago, ended, facts, run

from noonmark.core.states import BY_TASKS, Origin, RunState
from noonmark.core.why.answers import Answer, Blocker, Weight
from noonmark.core.why.facts import UNDECIDED, Facts, TaskFacts, WorkflowFacts
from noonmark.core.why.jobs import explain, lane_in_question, without_errors
from noonmark.core.why.tasks import causes
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.conditions import parse_condition
from noonmark.core.workflows.definition import Definition, Edge, Rule, Task
from noonmark.core.workflows.progress import Choice, TaskProgress, progress_of

WORKFLOW_ID = UUID(int=99)

DIAMOND = Definition(
    [
        Task(0, "a"),
        Task(1, "b", edges=(Edge(0),)),
        Task(2, "c", edges=(Edge(0),)),
        Task(3, "d", edges=(Edge(1), Edge(2))),
    ]
)
CHAIN = Definition([Task(0, "a"), *(Task(no, key, edges=(Edge(no - 1),)) for no, key in enumerate("bcd", 1))])


def workflow(definition: Definition, *states: str, choices: bytes = b"", **more: Any) -> WorkflowFacts:
    """A workflow run whose tasks have these states; a reason follows a colon."""
    tasks, progress = [], []
    for task, state in zip(definition.tasks, states, strict=True):
        word, _, reason = state.partition(":")
        since = None if word == UNDECIDED else ago(60 - task.no)
        run_id = None if word == UNDECIDED else UUID(int=1000 + task.no)
        error = "no such table" if word == "dead" else None
        tasks.append(TaskFacts(task.key, word, reason or None, since, run_id, error))
        progress.append(
            TaskProgress.UNDECIDED if word == UNDECIDED else progress_of(RunState(word), reason or None)
        )
    chosen = choices or bytes(definition.choices)
    return WorkflowFacts(WORKFLOW_ID, "running", definition, tasks, bytes(progress), chosen, **more)


def skipped(reason: str, of: WorkflowFacts, no: int, **more: Any) -> Answer:
    own = ended(RunState.SKIPPED, reason, origin=Origin.TASK.value, **more)
    return explain(facts(run=own, workflow=replace(of, task=no)))[0]


def own_run(state: RunState = RunState.RUNNING, **more: Any) -> Any:
    """The workflow run itself."""
    given = {"owner": BY_TASKS, "started_at": ago(90)} if state in {"running", "cancelling"} else {}
    return run(id=WORKFLOW_ID, state=state.value, pool=WORKFLOW_POOL, **given, **more)


def of_task(of: WorkflowFacts, no: int, **more: Any) -> list[Answer]:
    """The answers about a task that has no run."""
    return explain(facts(run=own_run(), workflow=replace(of, task=no), **more))


# -- skipped tasks -------------------------------------------------------------------------------------------


def test_a_skip_is_followed_to_the_task_that_failed():
    found = skipped(
        "upstream_failed", workflow(CHAIN, "dead:retries_exhausted", *["skipped:upstream_failed"] * 3), 3
    )

    assert found.code is Blocker.UPSTREAM_FAILED
    assert found.sentence == (
        "task d was skipped at 2026-06-01T11:59:55Z (upstream_failed): it runs only if all tasks that it depends"
        " on succeed (rule all_succeeded), and c is skipped (upstream_failed); the first cause is task a, dead"
        " since 2026-06-01T11:59:00Z, retries_exhausted: no such table"
    )
    assert found.facts["path"] == ["d", "c", "b", "a"]
    assert (found.facts["cause"], found.facts["cause_run"]) == ("a", UUID(int=1000))


def test_the_cause_is_named_once_if_it_is_the_parent():
    found = skipped("upstream_failed", workflow(CHAIN, "dead", *["skipped:upstream_failed"] * 3), 1)

    assert found.sentence.endswith("and a is dead: no such table")
    assert found.facts["parents"] == [
        {"task": "a", "state": "dead", "since": ago(60), "run": UUID(int=1000), "counts_as": "failed"}
    ]


def test_the_first_failed_parent_in_the_order_of_the_document_is_followed():
    both = workflow(DIAMOND, "succeeded", "dead", "cancelled", "skipped:upstream_failed")
    one = workflow(DIAMOND, "succeeded", "running", "dead", "skipped:upstream_failed")

    assert causes(both, 3) == [3, 1]
    assert causes(one, 3) == [3, 2]


def test_a_task_that_missed_its_start_deadline_is_a_cause_itself():
    found = workflow(CHAIN, "succeeded", "skipped:start_deadline", *["skipped:upstream_failed"] * 2)

    assert causes(found, 3) == [3, 2, 1]
    own = skipped("start_deadline", found, 1, start_by=ago(1))
    assert own.code is Blocker.START_DEADLINE
    assert own.sentence.endswith("no worker started it in time")


def test_a_condition_that_does_not_hold_is_the_cause_of_a_skip():
    condition = parse_condition({"at": "/total", "gt": 1}, of_edge=True)
    graph = Definition(
        [Task(0, "a"), Task(1, "b", edges=(Edge(0, condition, 0),)), Task(2, "c", edges=(Edge(1),))]
    )
    found = workflow(
        graph,
        *("succeeded", "skipped:upstream_skipped", "skipped:upstream_skipped"),
        choices=bytes([Choice.DOES_NOT_HOLD]),
    )

    own, next_one = skipped("upstream_skipped", found, 1), skipped("upstream_skipped", found, 2)

    assert own.sentence.endswith("and a succeeded, but the condition of this dependency does not hold")
    assert own.facts["parents"][0]["condition"] is False
    assert own.facts["parents"][0]["counts_as"] == "skipped"
    assert next_one.facts["path"] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("reason", "state", "words"),
    [
        ("condition", "running", "its `when` does not hold"),
        ("not_needed", "running", "and none failed"),
        ("cancelled", "cancelling", "its workflow run was cancelled before it could start"),
        ("cancelled", "dead", "its workflow run reached its deadline before it could start"),
    ],
)
def test_each_other_reason_has_its_words(reason, state, words):
    graph = Definition([Task(0, "a"), Task(1, "b", rule=Rule.ONE_FAILED, edges=(Edge(0),))])
    found = skipped(reason, replace(workflow(graph, "succeeded", f"skipped:{reason}"), state=state), 1)

    assert found.sentence.endswith(words)
    assert "path" not in found.facts


# -- undecided tasks -----------------------------------------------------------------------------------------


def test_an_undecided_task_waits_for_the_parents_that_have_not_ended():
    found = of_task(workflow(DIAMOND, "succeeded", "running", UNDECIDED, UNDECIDED), 3)[0]

    assert found.code is Blocker.WAITS_FOR_TASKS
    assert found.sentence == (
        "task d waits for b (running since 2026-06-01T11:59:01Z), c (undecided); it runs only if all tasks that"
        " it depends on succeed (rule all_succeeded)"
    )
    assert [one["task"] for one in found.facts["waits_for"]] == ["b", "c"]


def test_a_task_of_finally_waits_for_all_others():
    graph = Definition([*(Task(no, f"t{no}") for no in range(5)), Task(5, "cleanup", is_final=True)])
    found = of_task(workflow(graph, *["running"] * 5, UNDECIDED), 5)[0]

    assert found.sentence.startswith("task cleanup waits for t0 (running since")
    assert "and 2 more tasks; finally: it runs when all others have ended" in found.sentence


def test_a_task_that_waits_for_nothing_is_about_to_be_decided():
    known = workflow(DIAMOND, "succeeded", "succeeded", "succeeded", UNDECIDED)

    assert [one.code for one in of_task(known, 3)] == [Blocker.ON_ITS_WAY]
    assert [one.code for one in of_task(known, 3, path=WELL._replace(trigger=GONE))] == [
        Blocker.TRIGGER_STOPPED
    ]


def test_a_task_of_a_run_that_is_not_open_waits_for_the_run():
    known = replace(workflow(DIAMOND, *[UNDECIDED] * 4), task=3)
    found = explain(facts(run=own_run(RunState.QUEUED, queued_at=ago(1)), workflow=known))

    assert [one.code for one in found] == [Blocker.ON_ITS_WAY]
    assert "trigger" in found[0].sentence


# -- workflow runs -------------------------------------------------------------------------------------------


def test_an_open_workflow_run_says_how_far_it_is_and_what_it_waits_for():
    known = workflow(DIAMOND, "succeeded", "queued", "running", UNDECIDED)
    found = explain(facts(run=own_run(), workflow=known))[0]

    assert found.code is Blocker.WAITS_FOR_TASKS
    assert found.sentence == (
        "it has been running since 2026-06-01T11:58:30Z: 1 of 4 tasks have ended (1 succeeded, 1 queued,"
        " 1 running, 1 undecided); it waits for c (running since 2026-06-01T11:59:02Z), b (queued since"
        " 2026-06-01T11:59:01Z)"
    )
    assert found.facts["tasks"] == {"succeeded": 1, "queued": 1, "running": 1, UNDECIDED: 1}


def test_an_open_workflow_run_without_a_trigger_does_not_go_on():
    known = workflow(DIAMOND, "succeeded", "queued", "running", UNDECIDED)
    found = explain(facts(run=own_run(), workflow=known, path=WELL._replace(trigger=GONE)))

    assert [one.code for one in found] == [Blocker.TRIGGER_STOPPED, Blocker.WAITS_FOR_TASKS]


def test_a_held_workflow_run_says_since_when_and_how_to_release_it():
    known = workflow(DIAMOND, "succeeded", "queued", "running", UNDECIDED, held_at=ago(30))
    held, waits = explain(facts(run=own_run(), workflow=known))

    assert (held.code, held.weight) == (Blocker.HELD, Weight.BLOCKS)
    assert held.sentence == (
        "it has been held since 2026-06-01T11:59:30Z: what is under way goes on, and no other task starts"
    )
    assert held.remedy == f"`noonmark run release {WORKFLOW_ID}` lets the workflow run go on."
    assert held.facts == {"run": WORKFLOW_ID, "held_at": ago(30)}
    assert waits.sentence.endswith("b (queued since 2026-06-01T11:59:01Z)")


def test_a_held_workflow_run_with_nothing_under_way_does_not_wait_for_a_trigger():
    known = workflow(DIAMOND, "succeeded", *[UNDECIDED] * 3, held_at=ago(30))
    found = explain(facts(run=own_run(), workflow=known))

    assert [one.code for one in found] == [Blocker.HELD, Blocker.WAITS_FOR_TASKS]
    assert found[1].sentence.endswith("1 of 4 tasks have ended (3 undecided, 1 succeeded)")


def test_an_undecided_task_of_a_held_workflow_run_says_that_the_run_is_held():
    decidable = workflow(DIAMOND, *["succeeded"] * 3, UNDECIDED, held_at=ago(30))
    waiting = workflow(DIAMOND, "running", *[UNDECIDED] * 3, held_at=ago(30))

    (held,) = of_task(decidable, 3)
    assert held.code is Blocker.HELD
    assert (
        held.sentence == "its workflow run has been held since 2026-06-01T11:59:30Z, so task d does not start"
    )
    assert held.facts == {"run": WORKFLOW_ID, "held_at": ago(30), "task": "d"}
    assert [one.code for one in of_task(waiting, 3)] == [Blocker.HELD, Blocker.WAITS_FOR_TASKS]


def test_a_pause_of_its_job_is_named_first():
    paused = facts().job._replace(state="paused", paused_by="job", paused_at=ago(9))  # type: ignore[union-attr]
    known = workflow(DIAMOND, "succeeded", "queued", "running", UNDECIDED)

    found = explain(facts(job=paused, run=own_run(), workflow=known))

    assert [one.code for one in found] == [Blocker.JOB_PAUSED, Blocker.WAITS_FOR_TASKS]


def dead(known: WorkflowFacts | None, reason: str = "task_failed") -> Facts:
    own = own_run(RunState.DEAD, reason=reason, finished_at=ago(5), error="task a failed: no such table")
    return facts(run=own, workflow=known)


def test_a_dead_workflow_run_names_the_tasks_that_failed_and_the_error_of_the_first():
    known = workflow(DIAMOND, "succeeded", "dead", "dead", "skipped:upstream_failed")
    found = explain(dead(known))[0]

    assert found.sentence == (
        "it has been dead since 2026-06-01T11:59:55Z (task_failed): tasks b, c failed; b: no such table"
    )
    assert (found.facts["tasks"], found.facts["cause"]) == (["b", "c"], "b")
    assert found.remedy.startswith(f"`noonmark why {UUID(int=1001)}` explains task b")
    assert f"`noonmark dead redrive {WORKFLOW_ID}`" in found.remedy


def test_errors_of_tasks_are_left_out_for_those_who_may_not_read_them():
    known = workflow(DIAMOND, "dead", *["skipped:upstream_failed"] * 3)

    hidden = without_errors(dead(known))

    assert "no such table" not in str(explain(hidden))
    assert "task a failed" in explain(hidden)[0].sentence


def test_a_dead_workflow_run_whose_graph_is_gone_shows_its_own_error():
    found = explain(dead(None))[0]

    assert found.sentence.endswith("(task_failed): task a failed: no such table")


def test_a_dead_task_is_redriven_with_its_workflow_run():
    known = replace(workflow(DIAMOND, "dead", *["skipped:upstream_failed"] * 3), task=0)
    own = ended(RunState.DEAD, "retries_exhausted", attempt=3, error="boom", origin=Origin.TASK.value)

    found = explain(facts(run=own, workflow=known))[0]

    assert f"`noonmark dead redrive {WORKFLOW_ID}`" in found.remedy
    assert f"`noonmark run show {RUN_ID}`" in found.remedy


def test_no_backlog_in_kafka_explains_a_workflow_run():
    queued = own_run(RunState.QUEUED, queued_at=NOW - timedelta(seconds=30))

    assert lane_in_question(facts(run=queued)) is None
    assert [one.code for one in explain(facts(run=queued))] == [Blocker.TRIGGER_BEHIND]
