"""Pausing, resuming and cancelling a locked job, with the runs it has under way."""

from __future__ import annotations

from noonmark.core.vocabulary import JobState, RunState
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


def pause(batch: Batch, job: LockedJob, order: PauseJob, sequence: int | None) -> Result:
    """Hold a job: what is queued or waits for a retry waits for the resume, what runs goes on."""
    connection = batch.connection
    if job.state == JobState.PAUSED:
        # Also where its namespace held it: whoever asked for the job itself wants it held on its own account.
        set_state(connection, job, JobState.PAUSED, order.reason, sequence)
        return Result(Status.ACCEPTED, job.id)
    if job.state == JobState.ACTIVE and job.recurring:
        # What an earlier resume chose for its instants would be lost if this pause held them too.
        settle_due(batch, job, of_last_pause=True)
        job = lock_again(connection, job)
    if job.state != JobState.ACTIVE:
        raise refuse_in_state(job, "paused")
    _pause(batch, job, order.reason, sequence, held_by="job")
    return Result(Status.ACCEPTED, job.id)


def pause_for_namespace(batch: Batch, job: LockedJob) -> LockedJob:
    """Hold an active job that an order finds in a paused namespace: that pause has not come to it yet."""
    if job.state != JobState.ACTIVE or job.namespace not in batch.facts.paused:
        return job
    _pause(batch, job, None, None, held_by="namespace")
    return job._replace(state=JobState.PAUSED.value, state_reason=None, paused_by="namespace")


def _pause(batch: Batch, job: LockedJob, reason: str | None, sequence: int | None, *, held_by: str) -> None:
    """Pause a locked job that is active."""
    set_state(batch.connection, job, JobState.PAUSED, reason, sequence, held_by=held_by)
    pause_runs(batch.connection, [job.id], recurring=[job.id] if job.recurring else [], shards=[job.shard])


def resume(batch: Batch, job: LockedJob, order: ResumeJob, sequence: int | None) -> Result:
    """Let a paused job go on, queue the runs that it held, and have its missed instants planned."""
    connection = batch.connection
    if job.state not in (JobState.ACTIVE, JobState.PAUSED):
        raise refuse_in_state(job, "resumed")
    if job.namespace in batch.facts.paused:
        raise _held_by_namespace(job)
    if job.state == JobState.ACTIVE:
        note_sequence(connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    set_state(connection, job, JobState.ACTIVE, None, sequence, missed=order.missed)
    if resume_runs(connection, [job.id]):
        batch.queued = batch.freed = True
    # What came due in the pause is claimed at once, not at the trigger's next look.
    batch.due_soon = True
    return Result(Status.ACCEPTED, job.id)


def cancel(batch: Batch, job: LockedJob, order: CancelJob, sequence: int | None) -> Result:
    """End a job: nothing of it is due any more, its runs end; what runs finishes or is asked to stop."""
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
    set_state(connection, job, JobState.CANCELLED, order.reason, sequence)
    dropped = connection.execute(statement("delete_fire_timers"), {"job_id": job.id}).fetchall()
    left = skip_due(batch, job, [(at, after_at) for at, after_at, _ in dropped])
    if left is not None:
        connection.execute(statement("rewind_cancelled_timer"), {"job_id": job.id, "due": left})
    left_alone = {RunState.CANCELLING} if order.stops_running else {RunState.CANCELLING, RunState.RUNNING}
    runs = [run for run in lock_runs(connection, [job.id]) if run.state not in left_alone]
    if runs:
        with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
            stopped = cursor.execute(
                statement("cancel_runs"),
                {**span(runs), "shards": [job.shard], "reason": because("with its job", order.reason)},
            ).fetchall()
        ended = [run for run in stopped if run.state == RunState.CANCELLED]
        batch.freed |= release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, batch.topics, [settled_of(run) for run in ended], shards=batch.shards)
        batch.queued |= bool(ended)
    connection.execute(statement("delete_retry_timers"), {"ids": [job.id]})
    return Result(Status.ACCEPTED, job.id)


def insert_tombstone(batch: Batch, namespace: str, name: str | None, sequence: int) -> bool:
    """Leave a tombstone for a name; False where a cancel of the same or a later sequence left one before."""
    row = batch.connection.execute(
        statement("insert_tombstone"), {"namespace": namespace, "name": name, "sequence": sequence}
    ).fetchone()
    return row is not None


def _held_by_namespace(job: LockedJob) -> RejectedRequest:
    message = f"{job} cannot be resumed: its namespace {job.namespace!r} is paused"
    return RejectedRequest(
        rejected(Reason.CONFLICT, "", message, "a job of a namespace that is not paused")._replace(
            job_id=job.id
        )
    )
