"""Answers about a job as a whole, and `explain`, which returns all answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from noonmark.core.states import BY_TASKS, JobState, Lane, RunState, WaitReason
from noonmark.core.why.answers import (
    About,
    Answer,
    Blocker,
    Weight,
    answer,
    at,
    counted,
    ranked,
    without_worker,
)
from noonmark.core.why.endings import of_ended
from noonmark.core.why.facts import Facts, JobFacts, RunFacts, ScheduleFacts, TimerFacts, WorkflowFacts
from noonmark.core.why.path import of_overdue, of_workers, stopped
from noonmark.core.why.runs import of_run
from noonmark.core.why.stranded import NO_TIMER
from noonmark.core.why.tasks import of_undecided
from noonmark.core.why.workflows import is_workflow
from noonmark.core.workflows import WORKFLOW_POOL


def explain(facts: Facts) -> list[Answer]:
    """Return the answers, the real cause first; there is always at least one."""
    answers: list[Answer] = []
    if facts.run is not None:
        paused = facts.run.state == RunState.WAITING and facts.run.reason == WaitReason.PAUSED
        # A pause stops the tasks of a workflow run that have not started.
        is_open = facts.run.unfinished and is_workflow(facts.run) and facts.run.started_at is not None
        if facts.job is not None and (paused or is_open):
            answers += _of_state(facts, facts.job)
        answers += _of_run(facts, facts.run)
    elif facts.job is not None:
        answers += _of_job(facts, facts.job)
    if any(of_workers(facts)):
        answers = [without_worker(one) for one in answers]
    return ranked(answers) or [
        answer(Blocker.NOTHING_LEFT, "nothing is planned, and the ledger has no runs of it")
    ]


def _of_run(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    workflow = facts.workflow
    if workflow is not None and workflow.task is not None and run.id == workflow.id and run.owner == BY_TASKS:
        yield from of_undecided(facts, workflow, workflow.task)
    else:
        yield from of_run(facts, run)


def _of_job(facts: Facts, job: JobFacts) -> Iterator[Answer]:
    yield from _of_state(facts, job)
    unfinished = [run for run in facts.runs if run.unfinished]
    # The others wait for the oldest.
    for run in reversed(unfinished):
        yield from of_run(facts, run)
    yield from _of_past(facts, alone=not unfinished)
    if job.state == JobState.COMPLETED:
        yield from _of_end(facts.schedule, job)
    elif facts.timer is not None and job.state in (JobState.ACTIVE, JobState.PAUSED):
        yield from _of_timer(facts, job, facts.timer)
    elif facts.timer_missing:
        about: About = {"job": job.name or job.id, "namespace": job.namespace}
        yield answer(Blocker.TIMER_MISSING, f"the job: {NO_TIMER.format(state=job.state)}", **about)


def _of_state(facts: Facts, job: JobFacts) -> Iterator[Answer]:
    about: About = {"job": job.name or job.id, "namespace": job.namespace}
    why = f": {job.state_reason}" if job.state_reason else ""
    if job.state == JobState.CANCELLED:
        yield answer(
            Blocker.JOB_CANCELLED,
            f"the job was cancelled at {at(job.updated_at)}{why}",
            since=job.updated_at,
            reason=job.state_reason,
            **about,
        )
    elif job.state == JobState.BROKEN:
        yield answer(
            Blocker.JOB_BROKEN,
            f"the job {job.state_reason or 'cannot be planned'};"
            f" it has been broken since {at(job.updated_at)}",
            since=job.updated_at,
            reason=job.state_reason,
            **about,
        )
    elif job.state == JobState.PAUSED and job.paused_by != "namespace":
        yield _paused(facts, job)
    if job.namespace_paused_at is not None:
        by = f" by {job.namespace_actor}" if job.namespace_actor else ""
        why = f": {job.namespace_pause_reason}" if job.namespace_pause_reason else ""
        yield answer(
            Blocker.NAMESPACE_PAUSED,
            f"its namespace {job.namespace} has been paused since {at(job.namespace_paused_at)}{by}{why}",
            since=job.namespace_paused_at,
            reason=job.namespace_pause_reason,
            by=job.namespace_actor,
            **_deferred(facts),
            **about,
        )
    elif job.state == JobState.PAUSED and job.paused_by == "namespace":
        yield answer(
            Blocker.NAMESPACE_PAUSED,
            f"its namespace {job.namespace} was resumed, but the resume has not reached this job yet",
            since=job.paused_at,
            **about,
        )


def _paused(facts: Facts, job: JobFacts) -> Answer:
    since = at(job.paused_at or job.updated_at)
    about: About = {
        "job": job.name or job.id,
        "namespace": job.namespace,
        "since": job.paused_at,
        **_deferred(facts),
    }
    if job.pauses_itself:
        why = f": {job.state_reason}" if job.state_reason else " after equal failures in a row"
        sentence = f"the job paused itself at {since}{why}"
        return answer(Blocker.JOB_PAUSED_ITSELF, sentence, reason=job.state_reason, **about)
    by = f" by {job.paused_actor}" if job.paused_actor else ""
    why = f": {job.state_reason}" if job.state_reason else ", no reason given"
    sentence = f"the job has been paused since {since}{by}{why}"
    return answer(Blocker.JOB_PAUSED, sentence, reason=job.state_reason, by=job.paused_actor, **about)


def _deferred(facts: Facts) -> About:
    return {"held_instants": facts.schedule.held if facts.schedule is not None else None}


def _of_past(facts: Facts, *, alone: bool) -> Iterator[Answer]:
    """Say how the latest instants ended, as far as that explains why the job has not run."""
    if not facts.runs:
        return
    last = facts.runs[0]
    skipped = list(
        takewhile(
            lambda run: (
                run.state == RunState.SKIPPED and (run.reason, run.origin) == (last.reason, last.origin)
            ),
            facts.runs,
        )
    )
    if skipped or alone:
        yield from of_ended(facts, skipped or [last])


def _of_end(schedule: ScheduleFacts | None, job: JobFacts) -> Iterator[Answer]:
    about: About = {"job": job.name or job.id, "since": job.updated_at}
    if schedule is not None and schedule.max_runs is not None and not schedule.over:
        yield answer(
            Blocker.MAX_RUNS,
            f"its schedule allowed {counted(schedule.max_runs, 'run')}; the last one came due by"
            f" {at(job.updated_at)}",
            max_runs=schedule.max_runs,
            **about,
        )
    elif schedule is not None:
        end = f" ended at {at(schedule.end)}" if schedule.end else " has no further instants"
        yield answer(Blocker.SCHEDULE_ENDED, f"its schedule{end}", end=schedule.end, **about)


def _of_timer(facts: Facts, job: JobFacts, timer: TimerFacts) -> Iterator[Answer]:
    if timer.fault is not None:
        about: About = {"job": job.name or job.id, "namespace": job.namespace}
        yield answer(
            Blocker.TIMER_WRONG, f"{timer.fault}: the job does not run as its schedule says", **about
        )
        return
    if timer.fires_at is None:
        if job.state == JobState.ACTIVE and timer.place:
            names = list(facts.schedule.calendars) if facts.schedule is not None else []
            shown = f" ({', '.join(names)})" if names else ""
            yield answer(
                Blocker.NO_NEXT_INSTANT,
                f"its calendars{shown} exclude all further instants of its schedule",
                job=job.name or job.id,
                calendars=names,
                last_instant=timer.at,
            )
        return
    if timer.fires_at <= facts.now:
        yield from of_overdue(facts, timer.fires_at, job.shard, job.lane, zoned=timer.zoned)
        yield from of_workers(facts, weight=Weight.ADDS)
        return
    yield from _of_future(facts, job, timer)
    if not facts.path.trigger.alive:
        sentence = "no live triggers: it will not be claimed when it comes due"
        yield stopped(Blocker.TRIGGER_STOPPED, facts.path.trigger, sentence, weight=Weight.ADDS)
    yield from of_workers(facts, weight=Weight.ADDS)


def _of_future(facts: Facts, job: JobFacts, timer: TimerFacts) -> Iterator[Answer]:
    assert timer.fires_at is not None
    about: About = {
        "job": job.name or job.id,
        "namespace": job.namespace,
        "at": timer.at,
        "fires_at": timer.fires_at,
    }
    cut_off = facts.schedule.cut_off if facts.schedule is not None else ()
    for code, found in (
        (Blocker.CALENDAR, [one for one in cut_off if one.calendar]),
        (Blocker.CLOCK_CHANGE, [one for one in cut_off if not one.calendar]),
    ):
        if found:
            times = [one.local.isoformat(timespec="seconds") for one in found]
            more = f", and {len(found) - 1} more before its next instant" if len(found) > 1 else ""
            sentence = (
                f"{times[0]} local time does not fire ({found[0].note}){more}; it is due at {at(timer.at)}"
            )
            calendars = list(facts.schedule.calendars) if facts.schedule is not None else None
            yield answer(
                code, sentence, times=times, note=found[0].note, calendars=calendars or None, **about
            )
    if timer.at <= facts.now:
        sentence = f"it was due at {at(timer.at)}; its jitter delays the start to {at(timer.fires_at)}"
        yield answer(Blocker.JITTER, sentence, **about)
        return
    yield answer(Blocker.NOT_DUE, f"it is due at {at(timer.at)}", **about)
    if timer.fires_at > timer.at:
        sentence = f"its jitter delays the start to {at(timer.fires_at)}"
        yield answer(Blocker.JITTER, sentence, weight=Weight.ADDS, **about)


def lane_in_question(facts: Facts) -> tuple[str, Lane] | None:
    """Return the pool and lane whose backlog in Kafka would explain more; None: no backlog would."""
    for run in (facts.run,) if facts.run is not None else facts.runs:
        if run.state == RunState.QUEUED and run.unsent_since is None and run.pool != WORKFLOW_POOL:
            return run.pool, Lane(run.lane)
    return None


def without_errors(facts: Facts) -> Facts:
    """Return the facts without error texts of attempts, for users who may not read them."""
    job = facts.job
    if job is not None and job.pauses_itself:
        job = job._replace(state_reason=None)
    return replace(
        facts,
        job=job,
        run=_without_error(facts.run) if facts.run is not None else None,
        workflow=_without_task_errors(facts.workflow) if facts.workflow is not None else None,
        runs=[_without_error(run) for run in facts.runs],
    )


def _without_error(run: RunFacts) -> RunFacts:
    # Kafka's reason for refusing a message is not an error of an attempt.
    return run if run.reason == WaitReason.UNDELIVERABLE else run._replace(error=None)


def _without_task_errors(workflow: WorkflowFacts) -> WorkflowFacts:
    return replace(workflow, tasks=[task._replace(error=None) for task in workflow.tasks])
