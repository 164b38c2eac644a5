"""Parts that routes of single jobs share: response, change, audit entry."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson
from starlette.responses import Response

from noonmark.api.backend.database import Session
from noonmark.api.backend.job_creation import job_etag, job_path
from noonmark.api.http.etags import Preconditions
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import AuditedChange, Caller
from noonmark.core.access.roles import Permission
from noonmark.core.schedules.schedule import Schedule
from noonmark.schemas.api.jobs import ChangedJob, Job
from noonmark.schemas.events.submissions import JobRef
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.documents.jobs import document_of, readable
from noonmark.store.documents.workflows import KIND, payloads_of, without_payloads
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
_STATE: Final = ("state", "state_reason", "paused_by")


def job_answer(
    row: Row, schedule: Schedule | None, *, payload: bool, instants_in_pause: int | None = None
) -> Job:
    """Build the response of a job.

    Args:
        row: row of `job_listing`.
        schedule: the parsed schedule of the job.
        payload: whether to include the payload.
        instants_in_pause: number of instants that came due during the pause, if counted.
    """
    document = document_of(row, schedule)
    if not payload:
        document = without_payloads(document)
    plain = {name: row[name] for name in _PLAIN}
    return Job(
        **plain,
        next_run_at=row["next_due_at"],
        held_instants=instants_in_pause,
        payload_hidden=not payload,
        document=document,
    )


def read_job(session: Session, job_id: UUID) -> tuple[Row, Schedule | None]:
    """Read a job and its schedule.

    Raises:
        ProblemError: if the session sees no job with this id.
    """
    row = find_job(session.sql, job_id)
    if row is None:
        raise ProblemError(NOT_FOUND, f"there is no job {job_id}")
    return row, stored_schedules(session.sql, [row]).get(job_id)


def etag_of_job(row: Row) -> str:
    """Return the entity tag of a job."""
    return job_etag(row["version"], row["updated_at"])


def namespace_of_job(caller: Caller, job_id: UUID) -> str:
    """Return the namespace of a job, after the caller is authorised for it.

    Raises:
        ProblemError: if the job does not exist, or the caller lacks the permission.
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
    """A change of one job: its transaction, which has locked it, and the job before the change."""

    act: AuditedChange
    row: Row
    schedule: Schedule | None

    @property
    def document(self) -> dict[str, Any]:
        """The document of the job."""
        return document_of(self.row, self.schedule)


def _locked(act: AuditedChange, job_id: UUID, conditions: Preconditions) -> JobChange:
    """Lock the job in the transaction of a change, and check the preconditions under the lock."""
    act.object = f"job:{job_id}"
    # First this lock, then the job's: changes of time facts take them in the same order.
    share_time_facts(act.session.raw, wait=True)
    lock_job(act.session.raw, JobRef(job_id, "", None))
    row, schedule = read_job(act.session, job_id)
    conditions.check(etag_of_job(row))
    act.before = audited(row, schedule)
    return JobChange(act, row, schedule)


@dataclass(frozen=True, slots=True)
class JobChangeRequest:
    """A request to change a job.

    Attributes:
        conditions: what must be true of the job.
        key: value of `Idempotency-Key`.
        said: content of the request, for the key: JSON values.
        of_state: it changes the state of the job; the response says whether it did.
    """

    job_id: UUID
    conditions: Preconditions
    key: str | None
    said: Any = None
    of_state: bool = False


Submit = Callable[[JobChange], tuple[str, Mapping[str, Any]]]
"""Returns the submission that makes the change: its type and data."""


def change_job(
    caller: Caller,
    change: JobChangeRequest,
    submit: Submit,
    answer: Callable[[Taken], StoredResponse] | None = None,
) -> Response:
    """Change a job through the same submission as an event, and respond with the changed job.

    Args:
        caller: the caller; it is authorised here.
        change: the request.
        submit: returns the submission.
        answer: builds another response than the job.

    Raises:
        ProblemError: if the change is refused.
    """
    job_id = change.job_id
    namespace = namespace_of_job(caller, job_id)
    payload = caller.may(Permission.PAYLOADS_READ, namespace)
    key = IdempotencyKeyHash.make(namespace, change.key, caller.action, str(job_id), change.said, payload)
    made: list[Taken] = []

    def make(act: AuditedChange) -> StoredResponse:
        job = _locked(act, job_id, change.conditions)
        kind, data = submit(job)
        taken = caller.parts.submitter.accept_one(act.session.raw, kind, {**data, "job_id": str(job_id)})
        made.append(taken)
        row, schedule = read_job(act.session, job_id)
        act.after = audited(row, schedule)
        if answer:
            return answer(taken)
        before = job.row if change.of_state else None
        return _shown(row, schedule, payload=payload, before=before)

    reply = run_idempotent(caller, namespace, key, make, changes=f"job:{job_id}")
    for taken in made:
        caller.parts.submitter.record_accepted(taken)
    return reply.response()


def _shown(row: Row, schedule: Schedule | None, *, payload: bool, before: Row | None) -> StoredResponse:
    shown = job_answer(row, schedule, payload=payload)
    if before is not None:
        # Both rows were read under the lock of the job.
        changed = any(row[name] != before[name] for name in _STATE)
        shown = ChangedJob(**dict(shown), changed=changed)
    body = shown.model_dump(mode="json")
    return StoredResponse(200, body, {"ETag": etag_of_job(row), "Content-Location": job_path(row["id"])})


def audited(row: Row, schedule: Schedule | None) -> dict[str, Any]:
    """Return a job for the audit log, with only a digest of its payloads, which may contain secrets."""
    shown = job_answer(row, schedule, payload=False).model_dump(
        mode="json", exclude={"payload_hidden", "held_instants"}
    )
    document = shown["document"]
    document.pop("payload", None)
    is_workflow = row["kind"] == KIND
    payloads = (
        payloads_of(document_of(row, schedule)) if is_workflow else readable(row["work"]).get("payload")
    )
    payload = orjson.dumps(payloads, option=orjson.OPT_SORT_KEYS)
    document["payload_sha256"] = hashlib.sha256(payload).hexdigest()
    return shown
