"""Answers about how a run ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from noonmark.core.states import Origin, RunState, SkipReason
from noonmark.core.why.answers import About, Answer, Blocker, Weight, answer, at, counted
from noonmark.core.why.facts import Facts, RunFacts
from noonmark.core.why.path import of_workers
from noonmark.core.why.progress import about_holder, doing, loss
from noonmark.core.why.tasks import of_skipped_task
from noonmark.core.why.workflows import is_workflow, of_dead_task, of_dead_workflow, own_facts

_SKIPPED: Final = {
    SkipReason.OVERLAP: (Blocker.SKIPPED_OVERLAP, "overlap: another run of the job was unfinished"),
    SkipReason.MISFIRED: (Blocker.MISFIRED, "misfired: it was too late, and the misfire policy is skip"),
    SkipReason.COALESCED: (
        Blocker.COALESCED,
        "coalesced: a later instant was also due, and only the latest one runs",
    ),
    SkipReason.LOOK_BACK: (
        Blocker.LOOK_BACK,
        "look_back: it was older than the job's misfire.look_back_seconds",
    ),
    SkipReason.PAUSED: (
        Blocker.SKIPPED_PAUSED,
        "paused: it came due during a pause, and the resume skipped it",
    ),
    SkipReason.START_DEADLINE: (Blocker.START_DEADLINE, "start_deadline: no worker started it in time"),
    SkipReason.CANCELLED: (Blocker.SKIPPED_CANCELLED, "cancelled: its job was cancelled before it ran"),
    SkipReason.UPSTREAM_FAILED: (
        Blocker.UPSTREAM_FAILED,
        "upstream_failed: a task that it depends on failed",
    ),
    SkipReason.UPSTREAM_SKIPPED: (
        Blocker.UPSTREAM_SKIPPED,
        "upstream_skipped: what it depends on was skipped, or leads to it only under a condition",
    ),
    SkipReason.NOT_NEEDED: (
        Blocker.NOT_NEEDED,
        "not_needed: it runs after a failure, and no task that it depends on failed",
    ),
    SkipReason.CONDITION: (Blocker.CONDITION, "condition: its `when` does not hold"),
}

_MEANT: Final = {
    Origin.SCHEDULE: ("instant", "instants"),
    Origin.MANUAL: ("run triggered at", "triggered runs"),
    Origin.BACKFILL: ("backfilled instant", "backfilled instants"),
    Origin.EVENT: ("run of", "runs"),
    Origin.TASK: ("task of the workflow run of", "tasks of workflow runs"),
}
"""What a skipped run stood for, one and several, by its origin."""


def of_ended(facts: Facts, runs: Sequence[RunFacts]) -> Iterator[Answer]:
    """Say how runs ended that ended in the same way, the latest first; several only if they were skipped."""
    run = runs[0]
    about: About = {
        "run": run.id,
        "scheduled_for": run.scheduled_for,
        "finished_at": run.finished_at,
    }
    assert run.finished_at is not None
    ended = at(run.finished_at)
    if run.state == RunState.SKIPPED:
        yield _skipped(facts, runs, about)
    elif run.state == RunState.DEAD:
        if run.reason == "rejected":
            yield from of_workers(facts)
        yield _dead(facts, run, ended, about)
    elif run.state == RunState.UNKNOWN:
        lost = f"; {loss(run, run.lost_at)}" if run.reason == "lost" and run.lost_at is not None else ""
        sentence = (
            f"it ended as unknown at {ended} ({run.reason}): nothing shows whether it took effect{lost}"
        )
        yield answer(Blocker.UNKNOWN, sentence, reason=run.reason, **about)
    elif run.state == RunState.SUCCEEDED:
        yield answer(
            Blocker.SUCCEEDED, f"it succeeded at {ended}, attempt {run.attempt}", attempt=run.attempt, **about
        )
    else:
        code = Blocker.CANCELLED if run.state == RunState.CANCELLED else Blocker.DISCARDED
        by = f" ({run.reason})" if run.reason else ""
        yield answer(code, f"it was {run.state} at {ended}{by}", reason=run.reason, **about)


def _dead(facts: Facts, run: RunFacts, ended: str, about: About) -> Answer:
    if is_workflow(run):
        return of_dead_workflow(own_facts(facts, run), run)
    why = f": {run.error}" if run.error else ""
    after = f", after {counted(run.attempt, 'attempt')}" if run.attempt else ""
    sentence = f"it has been dead since {ended}{after} ({run.reason}){why}"
    dead = answer(Blocker.DEAD, sentence, attempts=run.attempt, reason=run.reason, error=run.error, **about)
    workflow = facts.workflow
    return of_dead_task(workflow, dead) if workflow is not None and workflow.task is not None else dead


def _skipped(facts: Facts, runs: Sequence[RunFacts], about: About) -> Answer:
    run, workflow = runs[0], facts.workflow
    if workflow is not None and workflow.task is not None:
        return of_skipped_task(workflow, workflow.task, run)
    code, words = _SKIPPED[SkipReason(run.reason or "")]
    instants = sum(one.instants for one in runs)
    one, several = _MEANT[Origin(run.origin)]
    if instants == 1:
        sentence = f"the {one} {at(run.scheduled_for)} was skipped: {words}"
    else:
        sentence = (
            f"the last {instants:,} {several}, from {at(runs[-1].scheduled_for)} to"
            f" {at(run.last_scheduled_for or run.scheduled_for)}, were skipped: {words}"
        )
    holder = facts.slot if run.reason == SkipReason.OVERLAP else None
    if holder is not None and holder.unfinished:
        about |= about_holder(holder)
        sentence += f" (run {holder.id}, {doing(facts, holder)})"
    return answer(
        code,
        sentence,
        weight=Weight.STATES,
        instants=instants,
        first=runs[-1].scheduled_for,
        last=run.last_scheduled_for or run.scheduled_for,
        start_by=run.start_by,
        **about,
    )
