"""Audit entries of authenticated events: who requested what, and the outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from noonmark.core.access.roles import Principal
from noonmark.intake.batch_checks import CheckedBatch
from noonmark.schemas.events.submissions import CancelRuns, CreateJob, Submission, UpdateJob
from noonmark.store.access.audit import AuditEntry, Outcome
from noonmark.store.jobs.rejections import Place
from noonmark.store.jobs.submit import Request, Result, Status, Taken


def audit_entries(batch: CheckedBatch, taken: Taken | None, new: Collection[Place]) -> list[AuditEntry]:
    """Return the entries of a batch. An actor is named only if its credential was valid.

    Args:
        batch: the checked batch.
        taken: the store's results for its requests.
        new: the refused records that were recorded for the first time; the others get no second entry.
    """
    entries = list(_carried_out(batch, taken, new)) if taken is not None else []
    for place, who in batch.denied.items():
        record, word = batch.refused[place]
        where = (record.topic, record.partition, record.offset)
        if where in new:
            entries.append(
                _entry(who, word, Outcome.DENIED, where, record.event_id, reason=str(record.refused))
            )
    return entries


def _carried_out(batch: CheckedBatch, taken: Taken, new: Collection[Place]) -> Iterator[AuditEntry]:
    for place, who in batch.signers.items():
        (record, word), request, result = batch.sources[place], batch.requests[place], taken.results[place]
        where = (record.topic, record.partition, record.offset)
        failed = result.status is Status.REJECTED
        if where in new if failed else result.status is Status.ACCEPTED:
            for about in _objects(request.submission, result):
                yield _entry(
                    who,
                    word,
                    Outcome.FAILED if failed else Outcome.DONE,
                    where,
                    request.event.id if request.event else None,
                    namespace=_namespace(request),
                    about=about,
                    reason=str(result.refused) if failed else getattr(request.submission, "reason", None),
                )


def _entry(
    who: Principal,
    word: str,
    outcome: Outcome,
    where: Place,
    event_id: str | None,
    *,
    namespace: str | None = None,
    about: str | None = None,
    reason: str | None = None,
) -> AuditEntry:
    kind, _, verb = word.partition("_")
    return AuditEntry(
        actor=who.id,
        actor_name=who.name,
        action=f"{kind}.{verb}" if verb else f"job.{word}",
        namespace=namespace,
        object=about,
        outcome=outcome,
        reason=reason,
        before=None,
        after=None,
        request_id=event_id or "",
        address="/".join(map(str, where)),
    )


def _namespace(request: Request) -> str | None:
    """Return the namespace of a request; None if its credential covers several and it names only an id."""
    if request.within is not None and len(request.within) == 1:
        return next(iter(request.within))
    submission = request.submission
    if isinstance(submission, CreateJob | UpdateJob):
        return submission.spec.namespace
    ref = getattr(submission, "ref", None)
    return ref.namespace if ref is not None and ref.job_id is None else None


def _objects(submission: Submission, result: Result) -> Sequence[str | None]:
    """Return the objects of a request; each gets a separate entry."""
    if isinstance(submission, CancelRuns):
        return [f"run:{run_id}" for run_id in submission.run_ids]
    ref = getattr(submission, "ref", None)
    job_id = result.job_id or (ref.job_id if ref is not None else None)
    return [None if job_id is None else f"job:{job_id}"]
