"""What routes about one job share: how it is answered, and how a change of it is made and told."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
from starlette.responses import Response

from noonmark.api.backend.database import Session
from noonmark.api.backend.job_creation import job_etag, job_path
from noonmark.api.http.etags import check_if_match
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import AuditedChange, Caller
from noonmark.core.access.roles import Permission
from noonmark.core.schedules.schedule import Schedule
from noonmark.schemas.api.jobs import Job
from noonmark.schemas.events.submissions import JobRef
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.documents.jobs import document_of
from noonmark.store.jobs.locks import lock_job
from noonmark.store.jobs.requests import Taken
from noonmark.store.schedules.time_facts import share_time_facts
from noonmark.store.views import lookups
from noonmark.store.views.jobs import find_job
from noonmark.store.views.paging import Row
from noonmark.store.views.pauses import stored_schedules

_PLAIN: Final = (
    "id", "namespace", "name", "state", "state_reason", "paused_by", "paused_at", "version", "created_at",
    "updated_at", "last_run_at",
)  # fmt: skip


def job_answer(row: Row, schedule: Schedule | None, *, payload: bool, held: int | None = None) -> Job:
    """Return a job as it is answered.

    Args:
        row: of `job_listing`.
        schedule: its stored schedule, read.
        payload: whether the payload is shown.
        held: how many instants a pause holds of it, where they were counted.
    """
    document = document_of(row, schedule)
    if not payload:
        document["payload"] = None
    plain = {name: row[name] for name in _PLAIN}
    return Job(
        **plain,
        next_run_at=row["next_due_at"],
        held_instants=held,
        payload_hidden=not payload,
        document=document,
    )


def read_job(session: Session, job_id: UUID) -> tuple[Row, Schedule | None]:
    """Read a job that the session sees, and its schedule.

    Raises:
        ProblemError: it sees none with this id.
    """
    row = find_job(session.sql, job_id)
    if row is None:
        raise ProblemError(NOT_FOUND, f"there is no job {job_id}")
    return row, stored_schedules(session.sql, [row]).get(job_id)


def etag_of_job(row: Row) -> str:
    """Return the entity tag of a job."""
    return job_etag(row["version"], row["updated_at"])


def namespace_of_job(caller: Caller, job_id: UUID) -> str:
    """Return the namespace of a job, once it is sure that the caller may do there what the route is for.

    Raises:
        ProblemError: there is no such job, or the caller may not.
    """
    with caller.reading() as session:
        namespace = lookups.namespace_of_job(session.sql, job_id)
    if namespace is None:
        raise ProblemError(NOT_FOUND, f"there is no job {job_id}")
    caller.request.scope["noonmark.object"] = f"job:{job_id}"
    caller.require(namespace)
    return namespace


@dataclass(slots=True)
class JobChange:
    """A change of one job: its transaction, in which the job is locked, and the job as it was found."""

    act: AuditedChange
    row: Row
    schedule: Schedule | None

    @property
    def document(self) -> dict[str, Any]:
        """Its document."""
        return document_of(self.row, self.schedule)


@contextmanager
def lock_job_for_change(
    caller: Caller, namespace: str, job_id: UUID, if_match: str | None
) -> Iterator[JobChange]:
    """Open the transaction of a change and lock the job; what `If-Match` says is judged under the lock.

    Raises:
        ProblemError: the job is gone, or another than the caller has seen.
    """
    with caller.changing(namespace) as act:
        yield _locked(act, job_id, if_match)


def _locked(act: AuditedChange, job_id: UUID, if_match: str | None) -> JobChange:
    act.object = f"job:{job_id}"
    # First this lock, then those on the job: who changes facts has it, and then looks at jobs.
    share_time_facts(act.session.raw, wait=True)
    lock_job(act.session.raw, JobRef(job_id, "", None))
    row, schedule = read_job(act.session, job_id)
    check_if_match(if_match, etag_of_job(row))
    act.before = audited(row, schedule)
    return JobChange(act, row, schedule)


@dataclass(frozen=True, slots=True)
class JobChangeRequest:
    """A request to change a job.

    Attributes:
        if_match: the header.
        key: `Idempotency-Key`.
        said: what is asked for, for the key: JSON values.
    """

    job_id: UUID
    if_match: str | None
    key: str | None
    said: Any = None


Submit = Callable[[JobChange], tuple[str, Mapping[str, Any]]]
"""Says which submission makes the change: its type and data."""


def change_job(
    caller: Caller,
    change: JobChangeRequest,
    submit: Submit,
    answer: Callable[[Taken], StoredResponse] | None = None,
) -> Response:
    """Change a job by the submission that an event would carry, and answer with the job as it is then.

    Args:
        caller: authorised here.
        change: the request.
        submit: what makes it.
        answer: instead of the job.

    Raises:
        ProblemError: it is not made.
    """
    job_id = change.job_id
    namespace = namespace_of_job(caller, job_id)
    payload = caller.may(Permission.PAYLOADS_READ, namespace)
    key = IdempotencyKeyHash.make(namespace, change.key, caller.action, str(job_id), change.said, payload)
    made: list[Taken] = []

    def make(act: AuditedChange) -> StoredResponse:
        job = _locked(act, job_id, change.if_match)
        kind, data = submit(job)
        taken = caller.parts.submitter.accept_one(act.session.raw, kind, {**data, "job_id": str(job_id)})
        made.append(taken)
        row, schedule = read_job(act.session, job_id)
        act.after = audited(row, schedule)
        return answer(taken) if answer else _shown(row, schedule, payload=payload)

    reply = run_idempotent(caller, namespace, key, make, changes=f"job:{job_id}")
    for taken in made:
        caller.parts.submitter.record_accepted(taken)
    return reply.response()


def _shown(row: Row, schedule: Schedule | None, *, payload: bool) -> StoredResponse:
    body = job_answer(row, schedule, payload=payload).model_dump(mode="json")
    return StoredResponse(200, body, {"ETag": etag_of_job(row), "Content-Location": job_path(row["id"])})


def audited(row: Row, schedule: Schedule | None) -> dict[str, Any]:
    """Return a job as the audit log keeps it: of its payload only a digest, for it may hold secrets."""
    shown = job_answer(row, schedule, payload=False).model_dump(
        mode="json", exclude={"payload_hidden", "held_instants"}
    )
    document = shown["document"]
    del document["payload"]
    payload = orjson.dumps((row["work"] or {}).get("payload"), option=orjson.OPT_SORT_KEYS)
    document["payload_sha256"] = hashlib.sha256(payload).hexdigest()
    return shown
