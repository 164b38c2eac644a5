"""The checker knows workflow runs and the runs of their tasks: a sound one is clean, each planted fault is found."""

from typing import Any

import pytest
from tests.chaos.edits import edit
from tests.chaos.good_history import (
    BOUND,
    FIRST,
    MADE,
    NOON,
    NS,
    SHARDS,
    STEP,
    after,
    call,
    letter,
    run,
    tell,
)

from noonmark.verify import History, judge
from noonmark.verify.case import Case, Judging
from noonmark.verify.history import Attempt, DeadLetter, Death, Job, Message, Run, Version, Worker
from noonmark.verify.judge import Report
from noonmark.verify.liveness import nothing_is_stuck

FLOW = run(
    "flow",
    "now",
    NOON,
    state="dead",
    reason="task_failed",
    error="load: no luck",
    result=None,
    finished_at=after(31),
    owner=-1,
    epoch=0,
    pool="$workflow",
    shard=0,
    holds_slot=True,
)._replace(job="j-flow")
"""Slot, limits and late start are its own; its tasks overlap, are of another shard, and were due later."""


def task(no: int, due: float, **other: Any) -> Run:
    """The run of a task of the workflow run."""
    more = {"due_at": after(due), "queued_at": after(due), "started_at": after(due) + STEP}
    made = run(f"task{no}", "now", NOON, origin="task", request=f"flow/{no}/0/0", shard=3, **more)
    ends = {"finished_at": after(due + 10), "start_by": after(due + 5)}
    return made._replace(job="j-flow", **ends)._replace(**other)


NEVER = {"result": None, "attempt": 0, "started_at": None, "owner": None, "epoch": None, "start_by": None}
TASKS = (
    task(0, 0),
    task(1, 0, attempt=3, fence=3, started_at=after(5), lane=0),
    task(2, 10, state="dead", reason="not_retryable", error="no luck", result=None, finished_at=after(11)),
    task(3, 10, queued_at=None, state="skipped", reason="upstream_failed", finished_at=after(10), **NEVER),
)


def sound() -> History:
    """A workflow run that died with one of its tasks; two others succeeded, and one was skipped."""
    attempts = [
        Attempt("task1", 1, 1, "failed", STEP + NOON, after(1), "bad luck", FIRST.id),
        Attempt("task1", 2, 2, "failed", after(2), after(3), "bad luck", FIRST.id),
        Attempt("task2", 1, 1, "failed", after(10) + STEP, after(11), "no luck", FIRST.id),
    ]
    started = [(one.id, one.fence) for one in TASKS if one.started_at]
    started += [(one.run, one.fence) for one in attempts if one.fence < 3 and one.run != "task2"]
    cause = {
        "job": "j-flow",
        "reason": "task_failed",
        "error": FLOW.error,
        "attempts": 1,
        "died_at": after(31),
    }
    lettered = letter("flow")._replace(run="flow", **cause)
    calls = [call(one, one.fence, one.started_at + STEP, one.attempt) for one in TASKS if one.started_at]
    return History(
        judged_at=after(200),
        jobs=[Job("j-flow", NS, "flow", "cancelled", 1, MADE, after(5), 0)],
        # Neither budget nor overlap nor limits of the job are those of its tasks.
        versions=[Version("j-flow", 1, None, MADE, None, 1, "at_least_once", "skip", (("stripe", None),), False)],
        runs=[FLOW, *TASKS],
        attempts=attempts,
        dead_letters=[lettered],
        messages=[Message("runs.low", n, name, fence, NS, 1, NOON) for n, (name, fence) in enumerate(started)],
        calls=sorted(calls, key=lambda one: one.at),
        lifecycle=[tell(one) for one in (FLOW, *TASKS)],
        deaths=[_death(lettered, FLOW)],
        workers=[FIRST],
        shards=SHARDS,
        zone_releases={1},
        limits={(NS, "stripe"): 1},
        faults=[],
    )  # fmt: skip


def _death(of: DeadLetter, run_of: Run) -> Death:
    said = (of.run, NS, run_of.fence, of.attempts or 0, of.reason, of.error, of.kind, of.name, of.fingerprint)
    return Death(*said, (), NOON)


def judged(history: History) -> Report:
    return judge(history, bound=BOUND)


def test_a_sound_workflow_run_has_no_violation_and_counts_as_one_instant() -> None:
    report = judged(sound())
    assert report.violations == []
    assert report.planned == 1
    assert report.ran == 3, "tasks that were started"
    assert not report.skipped, "a skipped task is no skipped instant"


def _letter_of_a_task(h: History) -> None:
    h.dead_letters.append(letter("task2")._replace(run="task2", job="j-flow", attempts=1, died_at=after(11)))
    h.dead_letters[-1] = h.dead_letters[-1]._replace(reason="not_retryable")


def _no_letter(h: History) -> None:
    h.dead_letters.clear()


def _attempt_of_a_workflow(h: History) -> None:
    h.attempts.append(Attempt("flow", 1, 1, "failed", FLOW.started_at, after(31), FLOW.error, -1))


def _by_a_worker(h: History) -> None:
    h.workers = [FIRST, Worker(5, "$workflow", 44, 1, MADE, None, NOON)]
    edit(h, "runs", "flow", owner=5, epoch=1)


def _no_message(h: History) -> None:
    h.messages = [one for one in h.messages or () if one.run != "task0"]


FAULTS = {
    "a dead letter of a task": (_letter_of_a_task, "S11"),
    "no dead letter of the workflow run": (_no_letter, "S11"),
    "an attempt of a workflow run": (_attempt_of_a_workflow, "S15 S19"),
    "a workflow run on a worker": (_by_a_worker, "S19"),
    "a task without a message": (_no_message, "S6"),
    "a task before it was due": (lambda h: edit(h, "runs", "task0", due_at=after(1)), "S7"),
    "a task after its deadline": (lambda h: edit(h, "runs", "task1", start_by=after(-90), due_at=after(-91)), "S7"),
    "a task in a shard that does not exist": (lambda h: edit(h, "runs", "task0", shard=SHARDS), "S18"),
    "a workflow run in another shard": (lambda h: edit(h, "runs", "flow", shard=1), "S18"),
    "two runs of one task": (lambda h: edit(h, "runs", "task1", request="flow/0/0/0"), "S1 S18"),
    "only runs of tasks": (lambda h: setattr(h, "runs", list(TASKS)), "S4 S11 V1 W9"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_workflow_is_found(name: str) -> None:
    plant, by = FAULTS[name]
    history = sound()
    plant(history)
    assert {one.invariant for one in judged(history).violations} == set(by.split())


@pytest.mark.parametrize(
    ("of_a_task", "stuck"),
    [
        ({"state": "running"}, {"task2"}),
        ({"state": "dead", "finished_at": after(190)}, set()),
        ({"state": "dead", "finished_at": after(11)}, {"flow"}),
    ],
)
def test_an_open_workflow_run_is_stuck_once_nothing_of_it_is_under_way(
    of_a_task: dict[str, Any], stuck: set[str]
) -> None:
    history = sound()
    edit(history, "runs", "flow", state="running", finished_at=None)
    edit(history, "runs", "task2", **{"finished_at": None, **of_a_task})

    found = list(nothing_is_stuck(Case(history, None, Judging(BOUND, partway=False))))

    assert {one.rows[0]["id"] for one in found} == stuck
