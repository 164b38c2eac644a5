"""What follows when tasks of a workflow run end, task by task."""

from __future__ import annotations

import pytest
from tests.support.workflow_graphs import OwnIs, ResultIs, Run, VerdictIs, graph

from noonmark.core.states import RunState, SkipReason
from noonmark.core.workflows.advancing import advance
from noonmark.core.workflows.progress import Choice, TaskProgress
from noonmark.core.workflows.verdicts import Ending, Stop, WorkflowFailure

DIAMOND = {"a": {}, "b": {"after": ["a"]}, "c": {"after": ["a"]}, "d": {"after": ["b", "c"]}}


def no_result(no):
    raise AssertionError(f"the result of task {no} was read")


# -- starting --------------------------------------------------------------------------------------------


def test_a_diamond_runs_in_order():
    run = Run(graph(DIAMOND))

    assert run.open() == ["a"]
    assert run.succeed("a") == ["b", "c"]
    assert run.succeed("c") == []
    assert run.verdict is None
    assert run.succeed("b") == ["d"]
    assert run.succeed("d") == []
    assert run.verdict == "succeeded"


def test_parents_that_end_in_one_call_start_their_child_once():
    run = Run(graph(DIAMOND))
    run.open()
    run.succeed("a")

    assert run.succeed("b", "c") == ["d"]


def test_an_end_that_is_repeated_changes_nothing():
    run = Run(graph(DIAMOND))
    run.open()
    run.succeed("a")
    run.succeed("b")
    before = run.progress

    assert run.succeed("b", "a", "b") == []
    assert run.fail("b", "a") == []
    assert run.end("c", TaskProgress.LIVE) == []
    assert run.progress == before
    assert run.succeed("c", "c") == ["d"]


def test_the_first_of_two_ends_counts():
    run = Run(graph({"a": {}}))
    run.open()
    run.step([("a", TaskProgress.FAILED), ("a", TaskProgress.SUCCEEDED)])

    assert run.verdict == "dead task_failed a"


def test_an_end_of_a_task_that_never_started_changes_nothing():
    run = Run(graph(DIAMOND))
    run.open()

    assert run.succeed("d", "b") == []
    assert run.of("d") is TaskProgress.UNDECIDED
    assert run.succeed("a") == ["b", "c"]


def test_a_state_of_another_definition_is_refused():
    flow = graph(DIAMOND)

    with pytest.raises(ValueError, match="the state of 3 tasks and 0 conditions"):
        advance(flow, bytes(3), b"", [], results=no_result)
    with pytest.raises(ValueError, match="1 conditions is not that of a workflow of 4 tasks and 0"):
        advance(flow, bytes(4), b"\0", [], results=no_result)


# -- skipping --------------------------------------------------------------------------------------------


def test_a_failure_skips_all_below_it_at_once():
    run = Run(graph({**DIAMOND, "e": {"rule": "all_done", "after": ["d"]}}))
    run.open()
    run.succeed("a")

    assert run.fail("b") == ["e"], "d is skipped while c is live, and e runs whatever d does"
    assert run.skipped == {"d": "upstream_failed"}
    assert run.succeed("c", "e") == []
    assert run.verdict == "dead task_failed b"


def test_tasks_that_wait_for_a_failure_are_skipped_when_none_comes():
    run = Run(graph({"a": {}, "alarm": {"rule": "one_failed", "after": ["a"]}, "more": {"after": ["alarm"]}}))
    run.open()
    run.succeed("a")

    assert run.skipped == {"alarm": "not_needed", "more": "upstream_skipped"}
    assert run.verdict == "succeeded"


@pytest.mark.parametrize(
    "end", [TaskProgress.FAILED, TaskProgress.CANCELLED, TaskProgress.SKIPPED_BY_FAILURE], ids=str
)
def test_however_a_task_fails_its_child_is_decided_at_once(end):
    """taskforcesh/bullmq#2464: lost too often, cancelled alone, past its start deadline."""
    run = Run(graph({"b": {}, "child": {"after": ["b"]}, "alarm": {"rule": "one_failed", "after": ["b"]}}))
    run.open()

    assert run.end("b", end) == ["alarm"]
    assert run.skipped == {"child": "upstream_failed"}
    run.succeed("alarm")
    assert run.verdict == "dead task_failed b"


def test_five_thousand_tasks_in_a_chain_are_skipped_in_one_call():
    keys = [f"t{no}" for no in range(5000)]
    run = Run(graph({key: {"after": [f"t{no - 1}"] if no else []} for no, key in enumerate(keys)}))
    run.open()
    run.fail("t0")

    assert list(run.skipped) == keys[1:]
    assert run.verdict == "dead task_failed t0"


def test_a_layer_that_ends_starts_the_next_one():
    layers = [[f"t{layer}_{no}" for no in range(30)] for layer in range(4)]
    tasks = {
        key: {"after": layers[place - 1] if place else []} for place, row in enumerate(layers) for key in row
    }
    run = Run(graph(tasks))
    run.open()

    for row, below in zip(layers, [*layers[1:], []], strict=True):
        assert run.succeed(*row[:10]) == []
        assert run.succeed(*row[10:]) == below
    assert run.verdict == "succeeded"


# -- conditions ------------------------------------------------------------------------------------------


def test_a_branch_that_is_not_chosen_is_skipped_and_does_not_stop_the_join():
    run = Run(
        graph(
            {
                "choose": {},
                "yes": {"after": [("choose", OwnIs("yes"))]},
                "no": {"after": [("choose", OwnIs("no"))]},
                "join": {"rule": "none_failed", "after": ["yes", "no"]},
            }
        ),
        choose="yes",
    )
    run.open()

    assert run.succeed("choose") == ["yes"]
    assert run.skipped == {"no": "upstream_skipped"}
    assert list(run.choices) == [Choice.HOLDS, Choice.DOES_NOT_HOLD]
    assert run.succeed("yes") == ["join"]
    assert run.loaded == ["choose"], "a result is read once, and only where a condition needs it"


def test_a_join_is_skipped_if_its_edge_is_not_chosen_and_its_other_parent_is_skipped():
    """apache/airflow#55187."""
    run = Run(
        graph(
            {
                "branch1": {},
                "branch2": {"after": [("branch1", OwnIs("branch2"))]},
                "dummy": {"when": ResultIs("branch1", "dummy"), "after": ["branch1"]},
                "problematic": {"rule": "none_failed", "after": [("branch1", OwnIs("problematic")), "dummy"]},
            }
        ),
        branch1="branch2",
    )
    run.open()

    assert run.succeed("branch1") == ["branch2"]
    assert run.skipped == {"dummy": "condition", "problematic": "upstream_skipped"}
    run.succeed("branch2")
    assert run.verdict == "succeeded"


def test_all_done_runs_after_tasks_that_were_left_out():
    """argoproj/argo-workflows#3739: b has nothing to do."""
    run = Run(
        graph(
            {
                "a": {},
                "b": {"after": ["a"], "when": ResultIs("a", "something")},
                "c": {"after": ["b"]},
                "d": {"after": ["c"], "rule": "all_done"},
            }
        ),
        a="nothing",
    )
    run.open()

    assert run.succeed("a") == ["d"]
    assert run.skipped == {"b": "condition", "c": "upstream_skipped"}
    run.succeed("d")
    assert run.verdict == "succeeded"


@pytest.mark.parametrize("order", [("p", "q"), ("q", "p")], ids="-".join)
def test_a_task_waits_for_its_slow_parent_in_either_order(order):
    """apache/airflow#27449."""
    run = Run(graph({"p": {}, "q": {}, "m": {"after": [("p", OwnIs([1, 2])), "q"]}}), p=[1, 2])
    first, second = order
    run.open()

    assert run.succeed(first) == []
    assert run.skipped == {}
    assert run.succeed(second) == ["m"]
    run.succeed("m")
    assert run.verdict == "succeeded"


def test_when_is_read_only_after_the_rule_says_run():
    run = Run(graph({"a": {}, "b": {}, "c": {"after": ["a", "b"], "when": ResultIs("a", 1)}}), a=1)
    run.open()
    run.fail("b")

    assert run.skipped == {"c": "upstream_failed"}
    assert run.loaded == []


def test_when_reads_verdicts_of_tasks_far_above():
    run = Run(
        graph(
            {
                "a": {},
                "b": {"after": ["a"], "rule": "all_done"},
                "rescue": {"after": ["b"], "when": VerdictIs("a", "failed")},
                "report": {"after": ["b"], "when": VerdictIs("a", "succeeded")},
            }
        )
    )
    run.open()
    run.fail("a")

    assert run.succeed("b") == ["rescue"]
    assert run.skipped == {"report": "condition"}


def test_the_result_of_a_task_that_did_not_succeed_is_nothing():
    run = Run(
        graph({"a": {}, "b": {"after": ["a"], "rule": "all_done", "when": ResultIs("a", "left behind")}}),
        a="left behind",
    )
    run.open()
    run.fail("a")

    assert run.skipped == {"b": "condition"}
    assert run.loaded == []


def test_a_choice_is_kept_for_a_child_that_was_decided_before():
    run = Run(graph({"a": {}, "b": {}, "c": {"rule": "one_succeeded", "after": ["a", ("b", OwnIs(1))]}}), b=0)
    run.open()

    assert run.succeed("a") == ["c"]
    assert list(run.choices) == [Choice.UNKNOWN]
    assert run.succeed("b") == []
    assert list(run.choices) == [Choice.DOES_NOT_HOLD]


def test_no_result_is_read_without_a_condition():
    flow = graph(DIAMOND)
    opened = advance(flow, bytes(4), b"", [], results=no_result)

    advance(flow, opened.progress, b"", [(0, TaskProgress.SUCCEEDED)], results=no_result)


# -- finally ---------------------------------------------------------------------------------------------

CLEANED = graph(
    {"a": {}, "b": {}},
    {"first": {}, "second": {"after": ["first"]}, "on_failure": {"when": VerdictIs("a", "failed")}},
)


def test_tasks_of_finally_start_when_all_others_have_ended():
    run = Run(CLEANED)

    assert run.open() == ["a", "b"]
    assert run.succeed("a") == []
    assert run.succeed("b") == ["first"]
    assert run.skipped == {"on_failure": "condition"}
    assert run.verdict is None
    assert run.succeed("first") == ["second"]
    assert run.succeed("second") == []
    assert run.verdict == "succeeded"


def test_tasks_of_finally_run_after_failures_too():
    run = Run(CLEANED)
    run.open()
    run.fail("a")

    assert run.succeed("b") == ["first", "on_failure"]
    run.succeed("first", "on_failure")
    run.succeed("second")
    assert run.verdict == "dead task_failed a"


def test_a_failure_in_finally_fails_the_run():
    run = Run(CLEANED)
    run.open()
    run.succeed("a", "b")
    run.fail("first")

    assert run.skipped == {"on_failure": "condition", "second": "upstream_failed"}
    assert run.verdict == "dead finally_failed first"


def test_a_failure_in_finally_that_may_happen_does_not():
    run = Run(graph({"a": {}}, {"tidy": {"may_fail": True}}))
    run.open()
    run.succeed("a")
    run.fail("tidy")

    assert run.verdict == "succeeded"


def test_finally_runs_in_the_call_that_skips_the_last_main_task():
    run = Run(graph({"a": {}, "b": {"after": ["a"]}}, {"tidy": {}}))
    run.open()

    assert run.fail("a") == ["tidy"]


# -- stopping --------------------------------------------------------------------------------------------


def test_a_cancel_skips_what_is_undecided_and_finally_still_runs():
    run = Run(graph(DIAMOND, {"tidy": {}}))
    run.open()
    run.succeed("a")

    assert run.cancel() == []
    assert run.skipped == {"d": "cancelled"}
    assert run.verdict is None
    assert run.end("b", TaskProgress.CANCELLED) == []
    assert run.succeed("c") == ["tidy"]
    assert run.succeed("tidy") == []
    assert run.verdict == "cancelled"


def test_a_cancel_before_anything_started_skips_everything():
    run = Run(graph(DIAMOND, {"tidy": {}}))

    assert run.cancel() == ["tidy"]
    assert run.skipped == dict.fromkeys("abcd", "cancelled")


def test_the_deadline_skips_what_is_undecided_and_makes_the_run_dead():
    run = Run(graph(DIAMOND))
    run.open()
    run.miss_deadline()
    run.end("a", TaskProgress.CANCELLED)

    assert run.skipped == dict.fromkeys("bcd", "cancelled")
    assert run.verdict == "dead deadline"


def test_a_run_whose_only_task_was_stopped_is_cancelled():
    run = Run(graph({"a": {}}))
    run.open()
    run.cancel()
    run.end("a", TaskProgress.CANCELLED)

    assert run.verdict == "cancelled"


def test_a_task_that_ends_in_the_call_of_the_cancel_starts_nothing():
    run = Run(graph({"a": {}, "b": {"after": [("a", OwnIs(1))]}}), a=1)
    run.open()
    run.stop = Stop.CANCELLED

    assert run.succeed("a") == []
    assert run.skipped == {"b": "cancelled"}
    assert list(run.choices) == [Choice.HOLDS], "a redrive knows it without reading results again"
    assert run.verdict == "cancelled"


# -- the verdict of the run ------------------------------------------------------------------------------


def test_an_ending_names_five_tasks_and_counts_all():
    keys = [f"t{no}" for no in range(7)]
    run = Run(graph({key: {} for key in keys}))
    run.open()
    run.fail(*reversed(keys))

    assert run.last is not None
    assert run.last.ending == Ending(
        RunState.DEAD, WorkflowFailure.TASK_FAILED, tuple(keys[:5]), first=0, failures=7
    )


def test_a_task_that_may_fail_does_not_fail_the_run_but_what_needs_it_is_skipped():
    run = Run(graph({"a": {"may_fail": True}, "b": {"after": ["a"]}}))
    run.open()
    run.fail("a")

    assert run.skipped == {"b": "upstream_failed"}
    assert run.verdict == "succeeded"


TOLD = {"task": {}, "tell_us": {"rule": "one_failed", "after": ["task"]}}


def test_a_handler_of_failures_does_not_make_the_run_succeed():
    """kestra-io/kestra#1032."""
    run = Run(graph(TOLD))
    run.open()
    assert run.fail("task") == ["tell_us"]
    run.succeed("tell_us")
    assert run.verdict == "dead task_failed task"

    assert run.redrive() == ["task"]
    assert run.fail("task") == ["tell_us"]
    run.succeed("tell_us")
    assert run.verdict == "dead task_failed task"


def test_a_failure_that_a_task_handles_does_not_fail_the_run_if_that_task_succeeds():
    flow = graph({**TOLD, "tell_us": {**TOLD["tell_us"], "handles": ["task"]}})
    run = Run(flow)
    run.open()
    run.fail("task")
    run.succeed("tell_us")

    assert run.last is not None
    assert run.last.ending == Ending(RunState.SUCCEEDED, handled=("task",))

    run = Run(flow)
    run.open()
    run.fail("task")
    run.fail("tell_us")
    assert run.verdict == "dead task_failed task tell_us"


def test_a_missed_start_deadline_is_a_failure_of_the_task_itself():
    run = Run(graph({"a": {}, "b": {"after": ["a"]}, "c": {"after": ["b"]}}))
    run.open()
    run.succeed("a")
    run.end("b", TaskProgress.SKIPPED_BY_FAILURE)

    assert run.skipped == {"c": "upstream_failed"}
    assert run.verdict == "dead task_failed b"


def test_an_ending_is_the_same_if_it_is_asked_for_again():
    run = Run(graph({"a": {}}))
    run.open()
    run.succeed("a")
    run.step([])

    assert run.verdict == "succeeded"


def test_skips_come_with_their_reasons_in_the_order_of_the_tasks():
    run = Run(
        graph(
            {
                "a": {},
                "z": {"after": ["a"]},
                "b": {"after": ["z"]},
                "c": {"after": ["a"], "rule": "one_failed"},
            }
        )
    )
    run.open()
    run.fail("a")
    assert run.last is not None

    assert run.last.skipped == [(1, SkipReason.UPSTREAM_FAILED), (2, SkipReason.UPSTREAM_FAILED)]
    assert run.last.started == [3]
