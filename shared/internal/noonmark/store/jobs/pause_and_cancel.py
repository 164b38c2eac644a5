"""Pausing, resuming and cancelling a locked job, with its unfinished runs."""

from __future__ import annotations

from noonmark.core.states import JobState, Origin, RunState
from noonmark.schemas.events.submissions import CancelJob, PauseJob, ResumeJob
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.jobs.due_instants import settle_due
from noonmark.store.jobs.locks import (
    LockedJob,
    lock_again,
    lock_runs,
    note_sequence,
    refuse_in_state,
    set_state,
    span,
)
from noonmark.store.jobs.pauses import pause_runs, resume_runs
from noonmark.store.jobs.requests import Batch, Reason, RejectedRequest, Result, Status, rejected
from noonmark.store.jobs.skipped_instants import skip_due
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import announce, settled_of
from noonmark.store.runs.cancel import because


def pause(batch: Batch, job: LockedJob, request: PauseJob, sequence: int | None) -> Result:
    """Pause a job: runs that are queued or wait for a retry wait for the resume; running ones continue."""
    connection = batch.connection
    if job.state == JobState.PAUSED:
        # This also applies if the namespace paused it: the job then stays paused when the namespace resumes.
        set_state(connection, job, JobState.PAUSED, request.reason, sequence)
        return Result(Status.ACCEPTED, job.id)
    if job.state == JobState.ACTIVE and job.recurring:
        # Settle the instants of the last pause first, or this pause would override the choice of its resume.
        settle_due(batch, job, of_last_pause=True)
        job = lock_again(connection, job)
    if job.state != JobState.ACTIVE:
        raise refuse_in_state(job, "paused")
    _pause(batch, job, request.reason, sequence, paused_by="job")
    return Result(Status.ACCEPTED, job.id)


def pause_for_namespace(batch: Batch, job: LockedJob) -> LockedJob:
    """Pause an active job of a paused namespace, if the pause of the namespace has not reached it yet."""
    if job.state != JobState.ACTIVE or job.namespace not in batch.facts.paused:
        return job
    _pause(batch, job, None, None, paused_by="namespace")
    return job._replace(state=JobState.PAUSED.value, state_reason=None, paused_by="namespace")


def _pause(batch: Batch, job: LockedJob, reason: str | None, sequence: int | None, *, paused_by: str) -> None:
    """Pause a locked active job."""
    set_state(batch.connection, job, JobState.PAUSED, reason, sequence, paused_by=paused_by)
    pause_runs(batch.connection, [job.id], recurring=[job.id] if job.recurring else [], shards=[job.shard])


def resume(batch: Batch, job: LockedJob, request: ResumeJob, sequence: int | None) -> Result:
    """Resume a paused job, queue its paused runs, and have its missed instants planned."""
    connection = batch.connection
    if job.state not in (JobState.ACTIVE, JobState.PAUSED):
        raise refuse_in_state(job, "resumed")
    if job.namespace in batch.facts.paused:
        raise _namespace_is_paused(job)
    if job.state == JobState.ACTIVE:
        note_sequence(connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    set_state(connection, job, JobState.ACTIVE, None, sequence, missed=request.missed)
    if resume_runs(connection, [job.id]):
        batch.queued = batch.freed = True
    # Instants that came due during the pause are claimed at once, not at the trigger's next poll.
    batch.due_soon = True
    return Result(Status.ACCEPTED, job.id)


def cancel(batch: Batch, job: LockedJob, request: CancelJob, sequence: int | None) -> Result:
    """Cancel a job and its unfinished runs; running ones finish, or are asked to stop."""
    connection = batch.connection
    if (
        sequence is not None
        and job.unique_name
        and not insert_tombstone(batch, job.namespace, job.name, sequence)
    ):
        return Result(Status.STALE, job.id)
    if job.state == JobState.CANCELLED:
        note_sequence(connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    set_state(connection, job, JobState.CANCELLED, request.reason, sequence)
    dropped = connection.execute(statement("delete_fire_timers"), {"job_id": job.id}).fetchall()
    left = skip_due(batch, job, [(at, after_at) for at, after_at, _ in dropped])
    if left is not None:
        connection.execute(statement("rewind_cancelled_timer"), {"job_id": job.id, "due": left})
    kept = {RunState.CANCELLING} if request.stops_running else {RunState.CANCELLING, RunState.RUNNING}
    live = lock_runs(connection, [job.id])
    # Not the runs of tasks: their workflow run may finish, or is stopped, and stops them itself.
    runs = [run for run in live if run.state not in kept and run.origin != Origin.TASK]
    if runs:
        with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
            stopped = cursor.execute(
                statement("cancel_runs"),
                {**span(runs), "shards": [job.shard], "reason": because("with its job", request.reason)},
            ).fetchall()
        ended = [run for run in stopped if run.state == RunState.CANCELLED]
        # Not all retries of the job: tasks of workflow runs that may finish are tried again.
        which = {"job_ids": [job.id], "ids": [run.id for run in ended]}
        connection.execute(statement("delete_cancelled_run_timers"), which)
        batch.freed |= release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, batch.topics, [settled_of(run) for run in ended], shards=batch.shards)
        batch.queued |= bool(ended)
    if job.state == JobState.PAUSED and job.namespace not in batch.facts.paused:
        # Nobody can resume the job any more: tasks of workflow runs that may finish go on.
        going_on = {str(run.id) for run in live if run.state in kept and run.origin != Origin.TASK}
        tasks = {run.id for run in live if run.workflow in going_on}
        batch.queued |= resume_runs(connection, [job.id], tasks) > 0
        batch.due_soon = batch.freed = True
    return Result(Status.ACCEPTED, job.id)


def insert_tombstone(batch: Batch, namespace: str, name: str | None, sequence: int) -> bool:
    """Write a tombstone for a name; return False if a cancel of the same or a later sequence wrote one."""
    row = batch.connection.execute(
        statement("insert_tombstone"), {"namespace": namespace, "name": name, "sequence": sequence}
    ).fetchone()
    return row is not None


def _namespace_is_paused(job: LockedJob) -> RejectedRequest:
    message = (
        f"{job} cannot be resumed: its namespace {job.namespace!r} is paused"
        f" (`noonmark namespace resume {job.namespace}` resumes it)"
    )
    return RejectedRequest(
        rejected(Reason.CONFLICT, "", message, "a job of a namespace that is not paused")._replace(
            job_id=job.id
        )
    )
