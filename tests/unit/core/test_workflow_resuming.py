"""What a redrive and a rerun of a workflow run keep, and what they decide again."""

from __future__ import annotations

import pytest
from tests.support.workflow_graphs import OwnIs, ResultIs, Run, graph

from noonmark.core.workflows.progress import Choice, TaskProgress
from noonmark.core.workflows.resuming import rerun, resume

CHAIN = {"a": {}, "b": {"after": ["a"]}, "c": {"after": ["b"]}}


def ended(flow, *, fail=(), **results):
    """Play a run in which all tasks succeed but some."""
    run = Run(flow, **results)
    live = run.open()
    while live:
        ends = [(key, TaskProgress.FAILED if key in fail else TaskProgress.SUCCEEDED) for key in live]
        live = run.step(ends)
    return run


def to_the_end(run):
    """Let all tasks succeed that a redrive starts, and return their keys."""
    live = run.redrive()
    ran = list(live)
    while live:
        live = run.succeed(*live)
        ran += live
    return ran


def test_a_redrive_continues_with_what_failed():
    run = ended(graph(CHAIN), fail={"b"})

    assert to_the_end(run) == ["b", "c"]
    assert run.verdict == "succeeded"


def test_a_redrive_runs_nothing_again_that_succeeded_next_to_the_failure():
    flow = graph({"a": {}, "b": {"after": ["a"]}, "c": {"after": ["a"]}, "d": {"after": ["b", "c"]}})
    run = ended(flow, fail={"b"})

    assert to_the_end(run) == ["b", "d"]


def test_a_task_that_had_the_one_parent_that_it_needed_is_kept():
    flow = graph(
        {"a": {}, "b": {}, "any": {"rule": "one_succeeded", "after": ["a", "b"]}, "c": {"after": ["any"]}}
    )
    run = ended(flow, fail={"b"})

    assert to_the_end(run) == ["b"]


@pytest.mark.parametrize("rule", ["all_done", "one_failed"])
def test_a_task_that_ran_after_a_failure_is_decided_again(rule):
    flow = graph({"a": {}, "after_a": {"rule": rule, "after": ["a"]}, "below": {"after": ["after_a"]}})
    run = ended(flow, fail={"a"})
    assert run.of("below") is TaskProgress.SUCCEEDED

    assert run.redrive() == ["a"]
    assert run.succeed("a") == (["after_a"] if rule == "all_done" else [])


def test_a_branch_that_was_not_chosen_stays_skipped_and_the_join_below_is_kept():
    flow = graph(
        {
            "choose": {},
            "yes": {"after": [("choose", OwnIs("yes"))]},
            "no": {"after": [("choose", OwnIs("no"))]},
            "join": {"rule": "none_failed", "after": ["yes", "no"]},
            "last": {"after": ["join"]},
        }
    )
    run = ended(flow, fail={"last"}, choose="yes")
    run.loaded.clear()
    run.skipped.clear()

    assert to_the_end(run) == ["last"]
    assert (run.skipped, run.loaded) == ({}, []), "neither skipped again nor read again"


def test_a_task_whose_when_did_not_hold_stays_skipped():
    flow = graph(
        {
            "a": {},
            "b": {"after": ["a"], "when": ResultIs("a", 1)},
            "c": {"rule": "all_done", "after": ["b"]},
            "d": {"after": ["c"]},
        }
    )
    run = ended(flow, fail={"d"}, a=0)

    assert to_the_end(run) == ["d"]


def test_a_skip_below_a_failure_is_decided_again():
    flow = graph(
        {
            "a": {},
            "alarm": {"rule": "one_failed", "after": ["a"]},
            "b": {"after": ["a"]},
            "quiet": {"rule": "one_failed", "after": ["alarm"]},
        }
    )
    run = ended(flow, fail={"a"})
    assert run.skipped == {"b": "upstream_failed", "quiet": "not_needed"}

    assert run.redrive() == ["a"]
    assert run.of("quiet") is TaskProgress.UNDECIDED, "alarm runs again"


def test_a_condition_on_a_task_that_runs_again_is_evaluated_again():
    flow = graph({"a": {}, "b": {"after": [("a", OwnIs(1))], "rule": "all_done"}, "x": {"after": ["b"]}})
    run = ended(flow, fail={"a"}, a=1)
    assert list(run.choices) == [Choice.UNKNOWN]

    run.redrive()
    assert run.succeed("a") == ["b"]
    assert list(run.choices) == [Choice.HOLDS]


def test_tasks_of_finally_run_again():
    run = ended(graph(CHAIN, {"tidy": {}, "tell": {"after": ["tidy"]}}), fail={"tidy"})
    assert run.verdict == "dead finally_failed tidy"

    assert to_the_end(run) == ["tidy", "tell"]
    assert run.verdict == "succeeded"


def test_a_redrive_after_the_deadline_continues_where_it_stopped():
    run = Run(graph(CHAIN, {"tidy": {}}))
    run.open()
    run.miss_deadline()
    assert run.succeed("a") == ["tidy"]
    run.succeed("tidy")
    assert run.verdict == "dead deadline"

    assert to_the_end(run) == ["b", "c", "tidy"]


def test_to_resume_twice_is_to_resume_once():
    run = ended(graph(CHAIN, {"tidy": {}}), fail={"b"})
    once = resume(run.definition, run.progress, run.choices)

    assert resume(run.definition, *once) == once
    assert once == (bytes([TaskProgress.SUCCEEDED, 0, 0, 0]), b"")


def test_a_run_with_a_live_task_cannot_be_redriven_or_rerun():
    run = Run(graph(CHAIN))
    run.open()

    with pytest.raises(ValueError, match="a task has not ended"):
        resume(run.definition, run.progress, run.choices)
    with pytest.raises(ValueError, match="the workflow run has not ended"):
        rerun(run.definition, run.progress, run.choices, [0], downstream=True)


def test_a_run_with_an_undecided_task_cannot_be_rerun():
    with pytest.raises(ValueError, match="the workflow run has not ended"):
        rerun(graph(CHAIN), bytes(3), b"", [0], downstream=True)


# -- rerun -----------------------------------------------------------------------------------------------


def test_a_rerun_of_a_task_alone_keeps_what_depends_on_it():
    run = ended(graph(CHAIN))

    assert run.rerun("b", downstream=False) == ["b"]
    assert run.succeed("b") == []
    assert run.verdict == "succeeded"


def test_a_rerun_with_all_below_it():
    run = ended(graph({**CHAIN, "x": {"after": ["a"]}}))

    assert run.rerun("b") == ["b"]
    assert run.succeed("b") == ["c"]
    run.succeed("c")
    assert run.verdict == "succeeded"


def test_a_rerun_of_two_tasks_includes_what_is_between_them():
    run = ended(graph({**CHAIN, "x": {"after": ["a"]}, "d": {"after": ["c"]}}))

    assert run.rerun("a", "c", downstream=False) == ["a"]
    assert run.succeed("a") == ["b"]
    assert run.succeed("b") == ["c"]
    assert run.succeed("c") == []
    assert run.verdict == "succeeded"


def test_a_rerun_of_a_main_task_runs_finally_again():
    run = ended(graph(CHAIN, {"tidy": {}}))

    assert run.rerun("c", downstream=False) == ["c"]
    assert run.succeed("c") == ["tidy"]


def test_a_rerun_of_a_task_of_finally_runs_only_that():
    run = ended(graph(CHAIN, {"tidy": {}, "tell": {}}))

    assert run.rerun("tell") == ["tell"]
    run.succeed("tell")
    assert run.verdict == "succeeded"


def test_a_rerun_evaluates_conditions_on_its_tasks_again():
    run = ended(graph({"a": {}, "b": {"after": [("a", OwnIs(1))]}}), a=1)
    run.rerun("a")
    run.results["a"] = 2

    assert run.succeed("a") == []
    assert run.skipped == {"b": "upstream_skipped"}
    assert list(run.choices) == [Choice.DOES_NOT_HOLD]


def test_a_rerun_of_a_task_whose_parent_failed_skips_it_again():
    run = ended(graph(CHAIN), fail={"a"})

    assert run.rerun("b") == []
    assert run.skipped == {"b": "upstream_failed", "c": "upstream_failed"}
    assert run.verdict == "dead task_failed a"


def test_a_rerun_of_a_failed_task_alone_leaves_the_run_dead_if_what_it_held_up_has_not_run():
    run = ended(graph(CHAIN), fail={"b"})

    assert run.rerun("b", downstream=False) == ["b"]
    run.succeed("b")
    assert run.verdict == "dead task_failed c", "c was skipped because of a failure that is no more"
