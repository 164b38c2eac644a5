"""Answers about workflow runs that are open, or dead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from noonmark.core.states import RunState
from noonmark.core.why.answers import About, Answer, Blocker, answer, at, counted
from noonmark.core.why.facts import UNDECIDED, Facts, RunFacts, WorkflowFacts
from noonmark.core.why.path import stopped
from noonmark.core.why.tasks import MOST_NAMED, of_hold, state_of
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.progress import TaskProgress, all_ended
from noonmark.core.workflows.verdicts import Ending, ending_of

_MOST_LISTED: Final = 20
"""How many tasks the facts of an answer list."""

_UNDER_WAY: Final = frozenset(
    {RunState.WAITING, RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.CANCELLING}
)


def is_workflow(run: RunFacts) -> bool:
    """Whether a run is that of a workflow: triggers handle it, and no worker."""
    return run.pool == WORKFLOW_POOL


def own_facts(facts: Facts, run: RunFacts) -> WorkflowFacts | None:
    """Return the facts about a workflow run; None if they are not known, or are about another one."""
    workflow = facts.workflow
    return workflow if workflow is not None and workflow.id == run.id else None


def of_open_workflow(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    """Say what an open workflow run waits for."""
    workflow, trigger = own_facts(facts, run), facts.path.trigger
    about: About = {"run": run.id, "started_at": run.started_at}
    assert run.started_at is not None
    begun = f"it has been {run.state} since {at(run.started_at)}"
    if workflow is None:
        yield answer(Blocker.WAITS_FOR_TASKS, f"{begun}; its tasks do the work", **about)
    else:
        yield from of_hold(workflow)
        about["tasks"] = dict(Counter(task.state for task in workflow.tasks))
        sentence = f"{begun}: {_progress(workflow)}{_waits(workflow, about)}"
        yield answer(Blocker.WAITS_FOR_TASKS, sentence, **about)
    if not trigger.alive:
        sentence = "no live triggers, so no task is started or skipped"
        yield stopped(Blocker.TRIGGER_STOPPED, trigger, sentence, **about)


def of_dead_workflow(workflow: WorkflowFacts | None, run: RunFacts) -> Answer:
    """Say which tasks made a workflow run dead, with the error of the first."""
    assert run.finished_at is not None
    about: About = {"run": run.id, "finished_at": run.finished_at, "reason": run.reason, "error": run.error}
    begun = f"it has been dead since {at(run.finished_at)} ({run.reason})"
    ending = _ending(workflow) if workflow is not None else None
    if workflow is None or ending is None or ending.first is None:
        return answer(Blocker.DEAD, f"{begun}: {run.error}" if run.error else begun, **about)
    first = workflow.tasks[ending.first]
    about |= {
        "tasks": list(ending.failed),
        "failures": ending.failures,
        "cause": first.key,
        "cause_run": first.run_id,
    }
    more = ending.failures - len(ending.failed)
    names = ", ".join(ending.failed) + (f" and {more} more" if more > 0 else "")
    error = f"; {first.key}: {first.error}" if first.error else ""
    sentence = f"{begun}: {'task' if ending.failures == 1 else 'tasks'} {names} failed{error}"
    remedy = (
        f"`noonmark why {first.run_id}` explains task {first.key}; fix the cause, then `noonmark dead redrive"
        f" {run.id}`: the workflow run continues with the tasks that failed."
    )
    return replace(answer(Blocker.DEAD, sentence, **about), remedy=remedy)


def of_dead_task(workflow: WorkflowFacts, given: Answer) -> Answer:
    """Return an answer about a dead run with what to do if it is that of a task, which has no dead letter."""
    remedy = (
        f"`noonmark run show {given.facts['run']}` has every attempt; fix the cause. When its workflow run is"
        f" dead, `noonmark dead redrive {workflow.id}` continues it with the tasks that failed."
    )
    return replace(given, remedy=remedy)


def _ending(workflow: WorkflowFacts) -> Ending | None:
    if not all_ended(workflow.progress):
        return None
    return ending_of(workflow.definition, workflow.progress, workflow.choices)


def _progress(workflow: WorkflowFacts) -> str:
    """Say how many tasks are in which state, as a clause."""
    states = Counter(task.state for task in workflow.tasks)
    ended = sum(number for state, number in states.items() if state != UNDECIDED and state not in _UNDER_WAY)
    counts = ", ".join(f"{number:,} {state}" for state, number in states.most_common())
    return f"{ended:,} of {counted(len(workflow.tasks), 'task')} have ended ({counts})"


def _waits(workflow: WorkflowFacts, about: About) -> str:
    """Say which tasks are under way, the longest first, as a clause; empty if a hold is why there is none."""
    live = [workflow.tasks[no] for no, one in enumerate(workflow.progress) if one == TaskProgress.LIVE]
    if not live:
        return "" if workflow.held_at is not None else "; a trigger is about to decide what follows"
    live.sort(key=lambda task: (task.state != RunState.RUNNING, task.since is None, task.since))
    about["waits_for"] = [
        {"task": task.key, "state": task.state, "since": task.since, "run": task.run_id}
        for task in live[:_MOST_LISTED]
    ]
    more = len(live) - MOST_NAMED
    names = ", ".join(map(state_of, live[:MOST_NAMED]))
    return f"; it waits for {names}" + (f" and {counted(more, 'more task')}" if more > 0 else "")
