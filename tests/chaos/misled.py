"""Planted faults in the workflow run of the good history: what was decided, kept or left is not what follows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.chaos.edits import add, drop, edit, edit_attempt
from tests.chaos.good_rows import NOON, NS, STEP, after, run, tell
from tests.chaos.good_workflow import GRAPH, NEVER, OF_WORKFLOWS, skipped, task

from noonmark.verify import History
from noonmark.verify.history import DeadLetter, Death, Message, OpenState


def start_a_task_before_its_parent_ended(h: History) -> None:
    edit(h, "runs", "flow-join-2", due_at=after(19.5))


def start_a_task_whose_parent_failed(h: History) -> None:
    drop(h, "flow-join-1")
    add(h, task("join", 1, after(2)))


def start_a_task_whose_edge_did_not_hold(h: History) -> None:
    drop(h, "flow-alarm-1")
    add(h, task("alarm", 1, after(1)))
    add(h, skipped("alarm", 2, after(20), "upstream_skipped"))


def start_a_task_whose_condition_did_not_hold(h: History) -> None:
    drop(h, "flow-optional-1")
    add(h, task("optional", 1, after(1)))


def start_a_task_again_that_was_kept(h: History) -> None:
    add(h, task("load", 2, after(20)))


def skip_for_another_reason(h: History) -> None:
    _rewrite(h, "flow-repair-2", "upstream_skipped")


def skip_before_the_rule_said_so(h: History) -> None:
    edit(h, "runs", "flow-repair-2", due_at=after(19.5), finished_at=after(19.5))


def skip_by_a_condition_that_does_not_exist(h: History) -> None:
    """It may fail, and nothing depends on it."""
    drop(h, "flow-allowed-2")
    add(h, skipped("allowed", 2, after(20), "condition"))


def skip_by_a_stop_that_nobody_asked_for(h: History) -> None:
    drop(h, "flow-allowed-2")
    add(h, skipped("allowed", 2, after(20), "cancelled"))


def leave_a_state_of_a_closed_workflow(h: History) -> None:
    h.open_states = [OpenState("flow", 2, bytes(9), bytes(2))]


def leave_a_timer_of_a_closed_workflow(h: History) -> None:
    h.reported = {"flow-clean-2"}


def leave_a_live_task_of_a_closed_workflow(h: History) -> None:
    """Younger than the bound: it is not stuck."""
    edit(h, "runs", "flow-clean-2", state="running", started_at=after(119), finished_at=None, result=None)
    h.lifecycle = [one for one in h.lifecycle if one.run != "flow-clean-2"]
    h.calls = [one._replace(at=after(119) + STEP) if one.run == "flow-clean-2" else one for one in h.calls]


STATE = OpenState("open", 1, bytes([2, 1, 6, 1, 0, 6, 1, 0, 0]), bytes([1, 2]))
"""Its first task has succeeded, `load`, `risky` and `allowed` are live, `alarm` and `optional` were skipped."""


def open_a_workflow(h: History) -> None:
    """Add a workflow run that is under way: `load` has ended, and its timer has yet to tell."""
    began = h.judged_at - timedelta(seconds=5)
    live = {
        "state": "running",
        "started_at": h.judged_at - timedelta(seconds=2),
        "finished_at": None,
        "result": None,
    }
    open_now = {"state": "running", "finished_at": None, "result": None, "origin": "manual", "request": "x"}
    h.runs.append(
        run("open", "flow", NOON, **open_now | {"queued_at": began, "started_at": began}, **OF_WORKFLOWS)
    )
    second = timedelta(seconds=1)
    for made in (
        task("extract", 1, began, "open", result='{"rows": 3}'),
        task("load", 1, began + second, "open"),
        skipped("alarm", 1, began + second, "upstream_skipped", "open"),
        skipped("optional", 1, began + second, "condition", "open"),
    ):
        add(h, made)
    for key in ("risky", "allowed"):
        h.runs.append(task(key, 1, began + second, "open", **live))
        h.messages = [*(h.messages or ()), Message("runs.low", 901, f"open-{key}-1", 1, NS, 1, NOON)]
    h.reported = {"open-load-1"}
    h.open_states = [STATE]


def miscount_a_task(h: History) -> None:
    _open_with(h, progress=bytes([2, 1, 6, 2, 0, 6, 1, 0, 0]))


def forget_the_end_of_a_task(h: History) -> None:
    """No timer tells of it."""
    open_a_workflow(h)
    h.reported = set()


def turn_a_choice_around(h: History) -> None:
    _open_with(h, choices=bytes([2, 2]))


def keep_the_state_of_another_generation(h: History) -> None:
    _open_with(h, generation=2)


def delete_the_state_of_an_open_workflow(h: History) -> None:
    open_a_workflow(h)
    h.open_states = []


def succeed_although_a_task_failed(h: History) -> None:
    """It missed its start deadline, and what follows from that was decided."""
    drop(h, "flow-risky-2")
    times = NEVER | {"queued_at": after(20), "start_by": after(20.5), "finished_at": after(20.6)}
    add(h, task("risky", 2, after(20), state="skipped", reason="start_deadline", **times))
    for name, reason in (("join", "upstream_failed"), ("repair", None)):
        drop(h, f"flow-{name}-2")
        due = after(21)
        add(h, skipped(name, 2, due, reason) if reason else task(name, 2, due))


def die_although_no_task_failed(h: History) -> None:
    _end(h, "task_failed")


def die_of_finally_although_it_succeeded(h: History) -> None:
    _end(h, "finally_failed")


def miss_a_deadline_that_does_not_exist(h: History) -> None:
    _end(h, "deadline")


def lose_a_verdict_of_a_task(h: History) -> None:
    drop(h, "flow-allowed-2")


def finish_before_the_others(h: History) -> None:
    """Its parent had ended, and another task had not."""
    edit(h, "runs", "flow-allowed-2", finished_at=after(22.5))
    edit(h, "lifecycle", "flow-allowed-2", finished_at=after(22.5))
    edit_attempt(h, "flow-allowed-2", 1, finished_at=after(22.5))


def forget_a_task_of_finally(h: History) -> None:
    drop(h, "flow-clean-2")


def run_a_task_of_another_version(h: History) -> None:
    version = next(one for one in h.versions if one.job == "j-flow")
    h.versions.append(version._replace(version=2))
    edit(h, "jobs", "j-flow", version=2)
    h.graphs = {**(h.graphs or {}), ("j-flow", 2): GRAPH}
    edit(h, "runs", "flow-load-1", version=2)
    h.messages = [m._replace(job_version=2) if m.run == "flow-load-1" else m for m in h.messages or ()]


def run_a_task_of_no_workflow(h: History) -> None:
    add(h, task("extract", 1, after(1), "nobody"))


def run_a_task_that_the_workflow_does_not_have(h: History) -> None:
    add(h, task("extract", 1, after(1))._replace(id="extra", request="flow/9/0/1"))


FOUND_BY = {
    **dict.fromkeys(
        (
            "start_a_task_before_its_parent_ended", "start_a_task_whose_parent_failed",
            "start_a_task_whose_edge_did_not_hold", "start_a_task_whose_condition_did_not_hold",
            "start_a_task_again_that_was_kept",
        ),
        "W2",
    ),
    **dict.fromkeys(
        (
            "skip_for_another_reason", "skip_before_the_rule_said_so", "skip_by_a_condition_that_does_not_exist",
            "skip_by_a_stop_that_nobody_asked_for",
        ),
        "W3",
    ),
    **dict.fromkeys(
        (
            "leave_a_state_of_a_closed_workflow", "leave_a_timer_of_a_closed_workflow",
            "leave_a_live_task_of_a_closed_workflow",
        ),
        "W5",
    ),
    **dict.fromkeys(
        (
            "miscount_a_task", "forget_the_end_of_a_task", "turn_a_choice_around",
            "keep_the_state_of_another_generation", "delete_the_state_of_an_open_workflow",
        ),
        "W6",
    ),
    **dict.fromkeys(
        (
            "succeed_although_a_task_failed", "die_although_no_task_failed", "die_of_finally_although_it_succeeded",
            "miss_a_deadline_that_does_not_exist", "lose_a_verdict_of_a_task",
        ),
        "W7",
    ),
    **dict.fromkeys(("finish_before_the_others", "forget_a_task_of_finally"), "W8"),
    **dict.fromkeys(
        (
            "run_a_task_of_another_version", "run_a_task_of_no_workflow",
            "run_a_task_that_the_workflow_does_not_have",
        ),
        "W9",
    ),
}  # fmt: skip
"""The rule that must find each of them."""


def plants() -> dict[str, Any]:
    """Each of them, by name."""
    return {name: globals()[name] for name in FOUND_BY}


def _open_with(h: History, **changes: Any) -> None:
    open_a_workflow(h)
    h.open_states = [STATE._replace(**changes)]


def _rewrite(h: History, name: str, reason: str) -> None:
    edit(h, "runs", name, reason=reason)
    edit(h, "lifecycle", name, reason=reason)


def _end(h: History, reason: str) -> None:
    """Let the workflow run die, with all that a death leaves."""
    dead = {"state": "dead", "reason": reason, "error": "no luck"}
    edit(h, "runs", "flow", **dead)
    flow = next(one for one in h.runs if one.id == "flow")
    h.lifecycle = [one for one in h.lifecycle if one.event != "t-flow"]
    h.lifecycle.append(tell(flow))
    cause = ("workflow", "flow", "1f0c6a39be2d5e72")
    h.dead_letters.append(
        DeadLetter("flow", NS, 1, reason, "no luck", NOON, "j-flow", *cause, flow.finished_at)
    )
    h.deaths = [*(h.deaths or ()), Death("flow", NS, 2, 1, reason, "no luck", *cause, (), NOON)]
