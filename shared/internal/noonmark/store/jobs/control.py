"""Control requests for existing jobs: finds and locks the job, checks the sequence, and executes."""

from __future__ import annotations

import psycopg

from noonmark.schemas.events.submissions import (
    CancelJob,
    CancelRuns,
    JobRef,
    PauseJob,
    ResumeJob,
    TriggerJob,
    UpdateJob,
)
from noonmark.store.jobs.change import trigger, update
from noonmark.store.jobs.locks import LockedJob, lock_job
from noonmark.store.jobs.pause_and_cancel import cancel, insert_tombstone, pause, resume
from noonmark.store.jobs.requests import (
    UNFIT,
    Batch,
    EventRef,
    Reason,
    RejectedRequest,
    Result,
    Status,
    rejected,
    unplannable,
)
from noonmark.store.runs import cancel as run_cancel

ControlRequest = UpdateJob | CancelJob | PauseJob | ResumeJob | TriggerJob


def control(
    batch: Batch, request: ControlRequest, event: EventRef | None, within: frozenset[str] | None = None
) -> Result:
    """Execute one request in its own savepoint, so that its errors do not affect other requests.

    Args:
        batch: the transaction.
        request: a request for one job.
        event: the event that carried it.
        within: the only namespaces whose jobs it may access; None means all.
    """
    try:
        with batch.connection.transaction():
            return _control(batch, request, event, within)
    except RejectedRequest as verdict:
        return verdict.result
    except UNFIT as error:
        if isinstance(request, UpdateJob) and isinstance(error, psycopg.errors.UniqueViolation):
            return _key_taken(request, error)
        return unplannable(error)


def cancel_runs(
    batch: Batch, request: CancelRuns, event: EventRef | None, within: frozenset[str] | None = None
) -> Result:
    """Cancel runs by their ids. All of them must exist; finished ones stay unchanged.

    Args:
        batch: the transaction.
        request: which runs, why, and who requests it.
        event: the event that carried it; its source is the actor if `request` names none.
        within: the only namespaces whose runs it may access; None means all.
    """
    found = run_cancel.locate(batch.connection, request.run_ids, within)
    unknown = set(request.run_ids) - {run.id for run, _ in found}
    if unknown:
        first = next(place for place, run_id in enumerate(request.run_ids) if run_id in unknown)
        message = f"no run has the id {request.run_ids[first]}"
        return rejected(Reason.NOT_FOUND, f"/run_ids/{first}", message, "the id of a run")
    who = request.actor or (event.source if event else None)
    reason = run_cancel.because(f"by {who}", request.reason) if who else request.reason
    done = run_cancel.cancel(
        batch.connection, batch.topics, [run for run, _ in found], reason=reason, shards=batch.shards
    )
    batch.queued |= bool(done.ended)
    return Result(Status.ACCEPTED)


def _control(
    batch: Batch, request: ControlRequest, event: EventRef | None, within: frozenset[str] | None
) -> Result:
    sequence = event.sequence if event else None
    job = lock_job(batch.connection, request.ref, within)
    if job is None:
        return _not_found(batch, request, sequence)
    if sequence is not None and job.event_sequence is not None and sequence <= job.event_sequence:
        return Result(Status.STALE, job.id)
    return _execute(batch, job, request, event)


def _execute(batch: Batch, job: LockedJob, request: ControlRequest, event: EventRef | None) -> Result:
    sequence = event.sequence if event else None
    match request:
        case UpdateJob():
            return update(batch, job, request, sequence)
        case CancelJob():
            return cancel(batch, job, request, sequence)
        case PauseJob():
            return pause(batch, job, request, sequence)
        case ResumeJob():
            return resume(batch, job, request, sequence)
        case TriggerJob():
            return trigger(batch, job, request, event)


def _not_found(batch: Batch, request: ControlRequest, sequence: int | None) -> Result:
    ref: JobRef = request.ref
    if ref.job_id is not None:
        return rejected(Reason.NOT_FOUND, "/job_id", f"no job has the id {ref.job_id}", "the id of a job")
    if isinstance(request, CancelJob) and sequence is not None:
        # The create may still arrive late; it must find that the job was cancelled.
        tombstones = insert_tombstone(batch, ref.namespace, ref.name, sequence)
        return Result(Status.ACCEPTED if tombstones else Status.STALE)
    return rejected(
        Reason.NOT_FOUND,
        "/name",
        f"namespace {ref.namespace!r} has no recurring job named {ref.name!r}",
        "the name of a recurring job, or the job_id of any job",
    )


def _key_taken(request: UpdateJob, error: psycopg.errors.UniqueViolation) -> Result:
    if error.diag.constraint_name == "jobs_idempotency_key":
        return rejected(Reason.CONFLICT, "/idempotency_key", "another job of the namespace has this key")
    return rejected(
        Reason.CONFLICT,
        "/name",
        f"another job of the namespace is named {request.spec.name!r}",
        "another name",
    )
