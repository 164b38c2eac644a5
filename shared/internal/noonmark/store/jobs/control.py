"""Orders about existing jobs: found, locked, judged by their sequence, carried out."""

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

Order = UpdateJob | CancelJob | PauseJob | ResumeJob | TriggerJob


def control(
    batch: Batch, order: Order, event: EventRef | None, within: frozenset[str] | None = None
) -> Result:
    """Carry out one order in a savepoint of its own: what is wrong with it fails nothing else.

    Args:
        batch: the transaction.
        order: about one job.
        event: that carried it.
        within: the only namespaces whose jobs it may be about; None: all.
    """
    try:
        with batch.connection.transaction():
            return _control(batch, order, event, within)
    except RejectedRequest as verdict:
        return verdict.result
    except UNFIT as error:
        if isinstance(order, UpdateJob) and isinstance(error, psycopg.errors.UniqueViolation):
            return _key_taken(order, error)
        return unplannable(error)


def cancel_runs(
    batch: Batch, order: CancelRuns, event: EventRef | None, within: frozenset[str] | None = None
) -> Result:
    """Cancel runs by their ids; all of them must be there, and those that have ended stay as they are.

    Args:
        batch: the transaction.
        order: which runs, why, and who asks.
        event: it came by; its source asks, where nobody is named.
        within: the only namespaces whose runs are there for it; None: all.
    """
    found = run_cancel.locate(batch.connection, order.run_ids, within)
    unknown = set(order.run_ids) - {run.id for run, _ in found}
    if unknown:
        first = next(place for place, run_id in enumerate(order.run_ids) if run_id in unknown)
        message = f"no run has the id {order.run_ids[first]}"
        return rejected(Reason.NOT_FOUND, f"/run_ids/{first}", message, "the id of a run")
    who = order.actor or (event.source if event else None)
    reason = run_cancel.because(f"by {who}", order.reason) if who else order.reason
    done = run_cancel.cancel(
        batch.connection, batch.topics, [run for run, _ in found], reason=reason, shards=batch.shards
    )
    batch.queued |= bool(done.ended)
    return Result(Status.ACCEPTED)


def _control(batch: Batch, order: Order, event: EventRef | None, within: frozenset[str] | None) -> Result:
    sequence = event.sequence if event else None
    job = lock_job(batch.connection, order.ref, within)
    if job is None:
        return _not_found(batch, order, sequence)
    if sequence is not None and job.event_sequence is not None and sequence <= job.event_sequence:
        return Result(Status.STALE, job.id)
    return _carry_out(batch, job, order, event)


def _carry_out(batch: Batch, job: LockedJob, order: Order, event: EventRef | None) -> Result:
    sequence = event.sequence if event else None
    match order:
        case UpdateJob():
            return update(batch, job, order, sequence)
        case CancelJob():
            return cancel(batch, job, order, sequence)
        case PauseJob():
            return pause(batch, job, order, sequence)
        case ResumeJob():
            return resume(batch, job, order, sequence)
        case TriggerJob():
            return trigger(batch, job, order, event)


def _not_found(batch: Batch, order: Order, sequence: int | None) -> Result:
    ref: JobRef = order.ref
    if ref.job_id is not None:
        return rejected(Reason.NOT_FOUND, "/job_id", f"no job has the id {ref.job_id}", "the id of a job")
    if isinstance(order, CancelJob) and sequence is not None:
        # The create may still come, late; it must find that it was called off.
        tombstones = insert_tombstone(batch, ref.namespace, ref.name, sequence)
        return Result(Status.ACCEPTED if tombstones else Status.STALE)
    return rejected(
        Reason.NOT_FOUND,
        "/name",
        f"namespace {ref.namespace!r} has no recurring job named {ref.name!r}",
        "the name of a recurring job, or the job_id of any job",
    )


def _key_taken(order: UpdateJob, error: psycopg.errors.UniqueViolation) -> Result:
    if error.diag.constraint_name == "jobs_idempotency_key":
        return rejected(Reason.CONFLICT, "/idempotency_key", "another job of the namespace has this key")
    return rejected(
        Reason.CONFLICT, "/name", f"another job of the namespace is named {order.spec.name!r}", "another name"
    )
