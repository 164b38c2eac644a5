"""Answers about tasks of a workflow run: why one was skipped, and what one waits for that is undecided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from noonmark.core.states import RunState, SkipReason
from noonmark.core.why.answers import About, Answer, Blocker, Weight, answer, at, counted
from noonmark.core.why.facts import Facts, RunFacts, TaskFacts, WorkflowFacts
from noonmark.core.why.path import stopped
from noonmark.core.workflows.definition import Edge, Rule, Task
from noonmark.core.workflows.progress import Choice, EdgeClass, TaskProgress, edge_classes, main_ended
from noonmark.core.workflows.rules import Decision, decide_task

MOST_NAMED: Final = 3
"""How many tasks a sentence names."""

_MOST_LISTED: Final = 20
"""How many tasks the facts of an answer list."""

_RULES: Final = {
    Rule.ALL_SUCCEEDED: "it runs only if all tasks that it depends on succeed",
    Rule.NONE_FAILED: "it runs only if no task that it depends on fails, and one succeeds",
    Rule.ALL_DONE: "it runs when all tasks that it depends on have ended",
    Rule.ONE_SUCCEEDED: "it runs as soon as one task that it depends on succeeds",
    Rule.ONE_FAILED: "it runs as soon as one task that it depends on fails",
}
_CODES: Final = {
    SkipReason.UPSTREAM_FAILED: Blocker.UPSTREAM_FAILED,
    SkipReason.UPSTREAM_SKIPPED: Blocker.UPSTREAM_SKIPPED,
    SkipReason.NOT_NEEDED: Blocker.NOT_NEEDED,
    SkipReason.CONDITION: Blocker.CONDITION,
    SkipReason.CANCELLED: Blocker.SKIPPED_CANCELLED,
    SkipReason.START_DEADLINE: Blocker.START_DEADLINE,
}
_FOLLOWED: Final = {
    Decision.UPSTREAM_FAILED: EdgeClass.FAILED,
    Decision.UPSTREAM_SKIPPED: EdgeClass.SKIPPED,
}
_SKIPPED: Final = frozenset({TaskProgress.SKIPPED_BY_FAILURE, TaskProgress.SKIPPED})
_CANCELLED: Final = frozenset({RunState.CANCELLED, RunState.CANCELLING})


def of_skipped_task(workflow: WorkflowFacts, no: int, run: RunFacts) -> Answer:
    """Say why a task was skipped: its rule, the tasks that it depends on, and the first cause.

    Args:
        workflow: its workflow run.
        no: number of the task.
        run: its run, which is skipped.
    """
    task = workflow.definition.tasks[no]
    reason = SkipReason(run.reason or "")
    assert run.finished_at is not None
    about: About = {
        "run": run.id,
        "finished_at": run.finished_at,
        "task": task.key,
        "workflow": workflow.id,
        "rule": task.rule.value,
        "parents": list(_parents(workflow, task, task.edges[:_MOST_LISTED])),
        "start_by": run.start_by,
    }
    path = causes(workflow, no)
    if len(path) > 1:
        cause = workflow.tasks[path[-1]]
        about |= {
            "path": [workflow.tasks[one].key for one in path],
            "cause": cause.key,
            "cause_run": cause.run_id,
        }
    sentence = (
        f"task {task.key} was skipped at {at(run.finished_at)} ({reason}): {_words(workflow, path, reason)}"
    )
    return answer(_CODES[reason], sentence, weight=Weight.STATES, **about)


def causes(workflow: WorkflowFacts, no: int) -> list[int]:
    """Return the numbers of tasks from a skipped one to the one that caused the skip; often only itself."""
    path = [no]
    while True:
        task = workflow.definition.tasks[path[-1]]
        followed = _FOLLOWED.get(decide_task(task, workflow.progress, workflow.choices))
        if followed is None or workflow.progress[task.no] not in _SKIPPED:
            return path
        classes = edge_classes(task, workflow.progress, workflow.choices)
        path.append(
            next(edge.parent for edge, one in zip(task.edges, classes, strict=True) if one == followed)
        )


def of_undecided(facts: Facts, workflow: WorkflowFacts, no: int) -> Iterator[Answer]:
    """Say what a task waits for that has no run yet. The workflow run is open."""
    task = workflow.definition.tasks[no]
    about: About = {"task": task.key, "run": workflow.id, "rule": task.rule.value}
    waits = _waits_for(workflow, task)
    yield from of_hold(workflow, task)
    if waits:
        about["waits_for"] = [_fact(workflow.tasks[one]) for one in waits[:_MOST_LISTED]]
        named = _named([state_of(workflow.tasks[one]) for one in waits])
        whole = (
            "finally: it runs when all others have ended" if task.is_final and _is_before(workflow) else None
        )
        sentence = f"task {task.key} waits for {named}; {whole or _rule(task)}"
        yield answer(Blocker.WAITS_FOR_TASKS, sentence, weight=Weight.BLOCKS, **about)
    elif facts.path.trigger.alive and workflow.held_at is None:
        yield answer(
            Blocker.ON_ITS_WAY, f"task {task.key} can be decided; a trigger is about to do it", **about
        )
    if not facts.path.trigger.alive:
        sentence = "no live triggers, so no task is started or skipped"
        yield stopped(Blocker.TRIGGER_STOPPED, facts.path.trigger, sentence, **about)


def of_hold(workflow: WorkflowFacts, task: Task | None = None) -> Iterator[Answer]:
    """Say that a workflow run is held, if it is.

    Args:
        workflow: the workflow run.
        task: the undecided task that is asked about; None: the question is about the workflow run.
    """
    if workflow.held_at is None:
        return
    about: About = {"run": workflow.id, "held_at": workflow.held_at, "task": task.key if task else None}
    held = f"has been held since {at(workflow.held_at)}"
    if task is None:
        sentence = f"it {held}: what is under way goes on, and no other task starts"
    else:
        sentence = f"its workflow run {held}, so task {task.key} does not start"
    yield answer(Blocker.HELD, sentence, **about)


def state_of(task: TaskFacts) -> str:
    """Name a task with its state: `b (running since 2026-06-01T09:00:00Z)`."""
    since = f" since {at(task.since)}" if task.since is not None else ""
    return f"{task.key} ({task.state}{since})"


def _words(workflow: WorkflowFacts, path: Sequence[int], reason: SkipReason) -> str:
    task = workflow.definition.tasks[path[0]]
    match reason:
        case SkipReason.CONDITION:
            return "its `when` does not hold"
        case SkipReason.START_DEADLINE:
            return "no worker started it in time"
        case SkipReason.CANCELLED:
            stopped_by = "was cancelled" if workflow.state in _CANCELLED else "reached its deadline"
            return f"its workflow run {stopped_by} before it could start"
        case SkipReason.NOT_NEEDED:
            return f"{_rule(task)}, and none failed"
    if len(path) == 1:
        return _rule(task)
    parent, cause = workflow.tasks[path[1]], workflow.tasks[path[-1]]
    return f"{_rule(task)}, and {_ended(parent)}{_first(path, cause)}"


def _ended(parent: TaskFacts) -> str:
    """Say how a parent ended that decided about a task, as a clause."""
    if parent.state == RunState.SUCCEEDED:
        return f"{parent.key} succeeded, but the condition of this dependency does not hold"
    why = f" ({parent.reason})" if parent.reason else ""
    return f"{parent.key} is {parent.state}{why}"


def _first(path: Sequence[int], cause: TaskFacts) -> str:
    """Say which task is the first cause, and its error, as a clause."""
    error = f": {cause.error}" if cause.error else ""
    if len(path) == 2:  # the parent, which is named already
        return error
    reason = f", {cause.reason}" if cause.reason else ""
    since = f" since {at(cause.since)}" if cause.since is not None else ""
    return f"; the first cause is task {cause.key}, {cause.state}{since}{reason}{error}"


def _rule(task: Task) -> str:
    return f"{_RULES[task.rule]} (rule {task.rule})"


def _waits_for(workflow: WorkflowFacts, task: Task) -> list[int]:
    """Return the numbers of tasks that have not ended and that an undecided task waits for."""
    if task.is_final and _is_before(workflow):
        return [
            no for no in range(workflow.definition.main_count) if workflow.progress[no] <= TaskProgress.LIVE
        ]
    if decide_task(task, workflow.progress, workflow.choices) is not Decision.WAIT:
        return []
    return [edge.parent for edge in task.edges if workflow.progress[edge.parent] <= TaskProgress.LIVE]


def _is_before(workflow: WorkflowFacts) -> bool:
    """Whether tasks of `finally` cannot start yet."""
    return not main_ended(workflow.definition, workflow.progress)


def _parents(workflow: WorkflowFacts, task: Task, edges: Sequence[Edge]) -> Iterator[dict[str, Any]]:
    classes = edge_classes(task, workflow.progress, workflow.choices)
    for edge, one in zip(edges, classes, strict=False):
        found = _fact(workflow.tasks[edge.parent]) | {"counts_as": EdgeClass(one).name.lower()}
        if edge.choice >= 0 and (choice := workflow.choices[edge.choice]) != Choice.UNKNOWN:
            found["condition"] = choice == Choice.HOLDS
        yield found


def _fact(task: TaskFacts) -> dict[str, Any]:
    given = {
        "task": task.key,
        "state": task.state,
        "reason": task.reason,
        "since": task.since,
        "run": task.run_id,
    }
    return {name: value for name, value in given.items() if value is not None}


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {counted(more, 'more task')}" if more > 0 else shown
