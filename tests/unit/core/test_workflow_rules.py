"""When a task runs: the table of the five rules, and what its early decisions promise."""

from __future__ import annotations

from itertools import product

import pytest
from tests.support.workflow_graphs import OwnIs, graph
from tests.support.workflow_oracle import table

from noonmark.core.states import RunState, SkipReason
from noonmark.core.transitions import VERDICTS
from noonmark.core.workflows.ancestors import ended_before
from noonmark.core.workflows.definition import Rule
from noonmark.core.workflows.progress import (
    Choice,
    EdgeClass,
    TaskProgress,
    edge_classes,
    progress_of,
)
from noonmark.core.workflows.rules import SKIP_REASONS, Decision, decide, decide_task

PAIRS = """
               SS   SF   SK   FF   FK   KK   SP   FP   KP   PP
all_succeeded  run  uf   us   uf   uf   us   -    uf   -    -
none_failed    run  uf   run  uf   uf   us   -    uf   -    -
all_done       run  run  run  run  run  run  -    -    -    -
one_succeeded  run  run  run  uf   uf   us   run  -    -    -
one_failed     nn   run  nn   run  run  nn   -    run  -    -
"""
WORDS = {
    "run": Decision.RUN,
    "uf": Decision.UPSTREAM_FAILED,
    "us": Decision.UPSTREAM_SKIPPED,
    "nn": Decision.NOT_NEEDED,
    "-": Decision.WAIT,
}
HEADER, *ROWS = (line.split() for line in PAIRS.strip().splitlines())
CELLS = [
    (Rule(rule), pair, WORDS[word]) for rule, *words in ROWS for pair, word in zip(HEADER, words, strict=True)
]
COUNTS = list(product(range(4), repeat=4))


def of_classes(rule: Rule, classes: str) -> Decision:
    return decide(rule, *(classes.count(letter) for letter in "FSKP"))


@pytest.mark.parametrize(("rule", "pair", "expected"), CELLS)
def test_each_cell_of_the_table(rule, pair, expected):
    assert of_classes(rule, pair) is expected


@pytest.mark.parametrize("rule", Rule)
def test_a_task_without_edges_runs(rule):
    assert decide(rule, 0, 0, 0, 0) is Decision.RUN


@pytest.mark.parametrize("rule", Rule)
def test_only_which_classes_there_are_counts_not_how_often(rule):
    for counts in COUNTS:
        assert decide(rule, *counts) is decide(rule, *(min(count, 1) for count in counts))


def test_all_parents_ended_is_as_the_oracle_says():
    for (rule, classes), word in table().items():
        assert of_classes(Rule(rule), "".join(classes)) is WORDS[word]


@pytest.mark.parametrize("rule", Rule)
def test_an_early_decision_is_what_every_end_of_the_others_would_give(rule):
    for failed, succeeded, skipped, pending in COUNTS:
        early = decide(rule, failed, succeeded, skipped, pending)
        later = {
            decide(rule, failed + f, succeeded + s, skipped + pending - f - s, 0)
            for f in range(pending + 1)
            for s in range(pending + 1 - f)
        }
        assert Decision.WAIT not in later
        if early is not Decision.WAIT:
            assert later == {early}
        elif rule is not Rule.ALL_DONE:
            assert len(later) > 1, "it waits although nothing can change the decision"


def test_every_skip_has_a_reason_of_its_own():
    assert set(SKIP_REASONS) == set(Decision) - {Decision.WAIT, Decision.RUN}
    assert len(set(SKIP_REASONS.values())) == len(SKIP_REASONS)


def test_the_classes_of_edges():
    parents = [f"p{no}" for no in range(len(TaskProgress))]
    flow = graph({**{key: {} for key in parents}, "child": {"after": parents}})
    progress = bytes([*TaskProgress, TaskProgress.UNDECIDED])

    found = edge_classes(flow.tasks[-1], progress, b"")

    assert dict(zip(TaskProgress, map(EdgeClass, found), strict=True)) == {
        TaskProgress.UNDECIDED: EdgeClass.PENDING,
        TaskProgress.LIVE: EdgeClass.PENDING,
        TaskProgress.SUCCEEDED: EdgeClass.SUCCEEDED,
        TaskProgress.FAILED: EdgeClass.FAILED,
        TaskProgress.CANCELLED: EdgeClass.FAILED,
        TaskProgress.SKIPPED_BY_FAILURE: EdgeClass.FAILED,
        TaskProgress.SKIPPED: EdgeClass.SKIPPED,
        TaskProgress.SKIPPED_BY_CANCEL: EdgeClass.FAILED,
    }


@pytest.mark.parametrize(
    ("parent", "choice", "expected"),
    [
        (TaskProgress.SUCCEEDED, Choice.HOLDS, EdgeClass.SUCCEEDED),
        (TaskProgress.SUCCEEDED, Choice.DOES_NOT_HOLD, EdgeClass.SKIPPED),
        (TaskProgress.SUCCEEDED, Choice.UNKNOWN, EdgeClass.PENDING),
        (TaskProgress.FAILED, Choice.UNKNOWN, EdgeClass.FAILED),
        (TaskProgress.SKIPPED, Choice.UNKNOWN, EdgeClass.SKIPPED),
        (TaskProgress.LIVE, Choice.UNKNOWN, EdgeClass.PENDING),
    ],
)
def test_the_condition_of_an_edge_counts_if_its_parent_succeeded(parent, choice, expected):
    flow = graph({"a": {}, "b": {}, "c": {"after": ["a", ("b", OwnIs(1))]}})
    progress = bytes([TaskProgress.SUCCEEDED, parent, TaskProgress.UNDECIDED])

    assert list(edge_classes(flow.tasks[2], progress, bytes([choice]))) == [EdgeClass.SUCCEEDED, expected]


def test_a_rule_reads_the_edges_of_its_task():
    flow = graph({"a": {}, "b": {}, "c": {"rule": "one_failed", "after": ["a", "b"]}})

    assert decide_task(flow.tasks[0], bytes(3), b"") is Decision.RUN
    assert decide_task(flow.tasks[2], bytes(3), b"") is Decision.WAIT
    assert decide_task(flow.tasks[2], bytes([TaskProgress.FAILED, 1, 0]), b"") is Decision.RUN


@pytest.mark.parametrize("state", sorted(set(RunState) - VERDICTS))
def test_a_run_that_has_not_ended_is_live(state):
    assert progress_of(state) is TaskProgress.LIVE


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("succeeded", None, TaskProgress.SUCCEEDED),
        ("dead", "retries_exhausted", TaskProgress.FAILED),
        ("unknown", "lost", TaskProgress.FAILED),
        ("discarded", "by_handler", TaskProgress.FAILED),
        ("cancelled", None, TaskProgress.CANCELLED),
        ("skipped", "upstream_failed", TaskProgress.SKIPPED_BY_FAILURE),
        ("skipped", "start_deadline", TaskProgress.SKIPPED_BY_FAILURE),
        ("skipped", "upstream_skipped", TaskProgress.SKIPPED),
        ("skipped", "not_needed", TaskProgress.SKIPPED),
        ("skipped", "condition", TaskProgress.SKIPPED),
        ("skipped", "cancelled", TaskProgress.SKIPPED_BY_CANCEL),
        ("skipped", "overlap", TaskProgress.SKIPPED_BY_FAILURE),
        ("skipped", None, TaskProgress.SKIPPED_BY_FAILURE),
    ],
)
def test_the_progress_of_a_task_by_how_its_run_ended(state, reason, expected):
    assert progress_of(state, reason) is expected


def test_every_final_state_and_every_reason_has_a_progress():
    assert {progress_of(state) for state in VERDICTS} <= set(TaskProgress) - {
        TaskProgress.UNDECIDED,
        TaskProgress.LIVE,
    }
    for reason in SkipReason:
        assert progress_of(RunState.SKIPPED, reason) > TaskProgress.CANCELLED


def names(flow, key):
    before = ended_before(flow.tasks)[flow.numbers[key]]
    return {task.key for task in flow.tasks if before >> task.no & 1}


def test_when_a_task_runs_that_needs_all_parents_their_parents_have_ended_too():
    flow = graph({"a": {}, "b": {"after": ["a"]}, "c": {}, "d": {"after": ["b", "c"]}})

    assert names(flow, "a") == set()
    assert names(flow, "d") == {"a", "b", "c"}


def test_when_a_task_runs_that_needs_one_parent_only_what_all_share_has_ended():
    flow = graph(
        {
            "root": {},
            "left": {"after": ["root"]},
            "right": {"after": ["root"]},
            "any": {"rule": "one_succeeded", "after": ["left", "right"]},
            "below": {"after": ["any"]},
        }
    )

    assert names(flow, "any") == {"root"}
    assert names(flow, "below") == {"root", "any"}


def test_a_parent_that_was_skipped_early_does_not_say_that_its_other_parents_have_ended():
    flow = graph(
        {
            "quick": {},
            "slow": {},
            "both": {"after": ["quick", "slow"]},
            "after_both": {"rule": "all_done", "after": ["both"]},
        }
    )

    assert names(flow, "both") == {"quick", "slow"}
    assert names(flow, "after_both") == {"both"}, "quick may have failed while slow is live"


def test_tasks_of_finally_run_when_all_others_have_ended():
    flow = graph({"a": {}, "b": {}}, {"x": {}, "y": {}, "z": {"rule": "one_failed", "after": ["x", "y"]}})

    assert names(flow, "x") == {"a", "b"}
    assert names(flow, "z") == {"a", "b"}
