"""Routes of a job's history: versions, and differences between them."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query

from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.jobs import FieldChange, JobDiff, JobVersion, JobVersions
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.views.job_history import Version, differences, versions_of

router = resource("jobs")

Number = Annotated[int, Path(ge=1, lt=1_000_000_000, description="Number of the version.")]


@router.get("/jobs/{job_id}/versions")
def versions(job_id: UUID, caller: Caller = needs(Permission.JOBS_READ)) -> JobVersions:
    """List the last 200 versions of a job, newest first."""
    found, payload = _versions(caller, job_id)
    return JobVersions(items=[_answer(job_id, version, payload=payload) for version in found])


@router.get("/jobs/{job_id}/versions/{version}")
def version(job_id: UUID, version: Number, caller: Caller = needs(Permission.JOBS_READ)) -> JobVersion:
    """Read one version of a job."""
    found, payload = _versions(caller, job_id, version)
    return _answer(job_id, found[0], payload=payload)


@router.get("/jobs/{job_id}/diff")
def diff(
    job_id: UUID,
    from_: Annotated[int, Query(alias="from", ge=1, lt=1_000_000_000, description="The older version.")],
    to: Annotated[int, Query(ge=1, lt=1_000_000_000, description="The newer version.")],
    caller: Caller = needs(Permission.JOBS_READ),
) -> JobDiff:
    """Compare two versions of a job, field by field."""
    found, payload = _versions(caller, job_id, from_, to)
    documents = {version.number: version.document for version in found}
    changes = [
        FieldChange(pointer=pointer, before=before, after=after)
        for pointer, before, after in differences(
            _version_document(documents[from_]), _version_document(documents[to])
        )
    ]
    if not payload:
        changes = _without_payload(changes)
    return JobDiff(
        job_id=job_id, from_version=from_, to_version=to, changes=changes, payload_hidden=not payload
    )


def _version_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that an edit can change; the idempotency key belongs to the job, not to a version."""
    return {name: value for name, value in document.items() if name != "idempotency_key"}


def _without_payload(changes: list[FieldChange]) -> list[FieldChange]:
    """Report a change of the payload without its values."""
    inside = [change for change in changes if (change.pointer + "/").startswith("/payload/")]
    kept = [change for change in changes if change not in inside]
    return [*kept, FieldChange(pointer="/payload", before=None, after=None)] if inside else kept


def _versions(caller: Caller, job_id: UUID, *numbers: int) -> tuple[list[Version], bool]:
    """Return versions of a job, and whether to show payloads. All given versions must exist."""
    with caller.reading() as session:
        found = versions_of(session.sql, job_id, numbers or None)
        namespace = found[0].namespace if found else None
    if namespace is None:
        raise ProblemError(NOT_FOUND, f"there is no job {job_id}, or it has no such version")
    caller.require(namespace)
    missing = set(numbers) - {version.number for version in found}
    if missing:
        raise ProblemError(NOT_FOUND, f"job {job_id} has no version {min(missing)}")
    return found, caller.may(Permission.PAYLOADS_READ, namespace)


def _answer(job_id: UUID, version: Version, *, payload: bool) -> JobVersion:
    document = version.document if payload else {**version.document, "payload": None}
    return JobVersion(
        job_id=job_id,
        version=version.number,
        replaced_at=version.replaced_at,
        payload_hidden=not payload,
        document={**document, "idempotency_key": None},
    )
