"""Pausing, resuming and cancelling a locked job, with the runs it has under way."""

from __future__ import annotations

from noonmark.core.words import JobState, RunState, WaitReason
from noonmark.schemas.submissions import CancelJob, PauseJob
from noonmark.store.events import announce, settled_of
from noonmark.store.job_locks import (
    LiveRun,
    LockedJob,
    lock_runs,
    note_sequence,
    refuse_in_state,
    set_state,
    span,
)
from noonmark.store.job_requests import Batch, Result, Status
from noonmark.store.jobs_skip import skip_due
from noonmark.store.rows import ChangedRun, row_of
from noonmark.store.slots import free_slots
from noonmark.store.statements import statement


def pause(batch: Batch, job: LockedJob, order: PauseJob, sequence: int | None) -> Result:
    """Hold a job: what is queued or waits for a retry waits for the resume, what runs goes on."""
    connection = batch.connection
    if job.state == JobState.PAUSED:
        note_sequence(connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    if job.state != JobState.ACTIVE:
        raise refuse_in_state(job, "paused")
    set_state(connection, job, JobState.PAUSED, order.reason, sequence)
    connection.execute(statement("job_plan_timers"), {"job_id": job.id})
    held = [run for run in lock_runs(connection, job) if _can_be_held(run)]
    if held:
        connection.execute(statement("job_hold_runs"), {**span(held), "shard": job.shard})
    connection.execute(statement("job_drop_retries"), {"job_id": job.id})
    return Result(Status.ACCEPTED, job.id)


def resume(batch: Batch, job: LockedJob, sequence: int | None) -> Result:
    """Let a paused job go on, and queue the runs that it held."""
    connection = batch.connection
    if job.state == JobState.ACTIVE:
        note_sequence(connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    if job.state != JobState.PAUSED:
        raise refuse_in_state(job, "resumed")
    set_state(connection, job, JobState.ACTIVE, None, sequence)
    held = connection.execute(statement("job_held_runs"), {"job_id": job.id}).fetchall()
    if held:
        told = connection.execute(
            statement("requeue_runs"),
            {
                "ids": [row[0] for row in held],
                "first": min(row[1] for row in held),
                "last": max(row[1] for row in held),
                "reason": WaitReason.PAUSED.value,
            },
        ).fetchone()
        batch.queued |= bool(told and told[0])
    # What came due in the pause is claimed at once, not at the trigger's next look.
    batch.due_soon = True
    return Result(Status.ACCEPTED, job.id)


def cancel(batch: Batch, job: LockedJob, order: CancelJob, sequence: int | None) -> Result:
    """End a job: nothing of it is due any more, its runs end, and those that run are asked to stop."""
    connection = batch.connection
    if sequence is not None and job.unique_name and not bury_name(batch, job.namespace, job.name, sequence):
        return Result(Status.STALE, job.id)
    if job.state == JobState.CANCELLED:
        note_sequence(connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    set_state(connection, job, JobState.CANCELLED, order.reason, sequence)
    dropped = connection.execute(statement("job_drop_fire_timers"), {"job_id": job.id}).fetchall()
    skip_due(batch, job, [scheduled_for for (scheduled_for,) in dropped])
    runs = [run for run in lock_runs(connection, job) if run.state != RunState.CANCELLING]
    if runs:
        with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
            stopped = cursor.execute(
                statement("job_cancel_runs"), {**span(runs), "shard": job.shard}
            ).fetchall()
        ended = [run for run in stopped if run.state == RunState.CANCELLED]
        free_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
        announce(connection, batch.topics, [settled_of(run) for run in ended], shards=batch.shards)
        batch.queued |= bool(ended)
    connection.execute(statement("job_drop_retries"), {"job_id": job.id})
    return Result(Status.ACCEPTED, job.id)


def bury_name(batch: Batch, namespace: str, name: str | None, sequence: int) -> bool:
    """Leave a tombstone for a name; False where a cancel of the same or a later sequence left one before."""
    row = batch.connection.execute(
        statement("job_bury_name"), {"namespace": namespace, "name": name, "sequence": sequence}
    ).fetchone()
    return row is not None


def _can_be_held(run: LiveRun) -> bool:
    if run.state == RunState.WAITING:
        return run.reason == WaitReason.UNDELIVERABLE
    return run.state in (RunState.QUEUED, RunState.RETRYING)
