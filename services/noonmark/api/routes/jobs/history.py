"""Routes of a job's history: versions, and differences between them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Path, Query

from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.jobs import FieldChange, JobDiff, JobVersion, JobVersions
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.documents.workflows import without_payloads
from noonmark.store.views.job_history import Version, differences, versions_of

router = resource("jobs")

_PAYLOAD: Final = re.compile(r"((?:/(?:tasks|finally)/[^/]+)?/payload)(?:/|$)")
"""Pointers to the payload of a job, or of a task of a workflow, and below."""

Number = Annotated[int, Path(ge=1, lt=1_000_000_000, description="Number of the version.")]


@router.get("/jobs/{job_id}/versions")
def versions(job_id: UUID, caller: Caller = needs(Permission.JOBS_READ)) -> JobVersions:
    """List the last 200 versions of a job, newest first; of a workflow, as many as have 20,000 tasks."""
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
    documents = {version.number: _version_document(version.document) for version in found}
    changes = _changes(documents[from_], documents[to], payload=payload)
    return JobDiff(
        job_id=job_id, from_version=from_, to_version=to, changes=changes, payload_hidden=not payload
    )


def _version_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that an edit can change; the idempotency key belongs to the job, not to a version."""
    return {name: value for name, value in document.items() if name != "idempotency_key"}


def _changes(before: dict[str, Any], after: dict[str, Any], *, payload: bool) -> list[FieldChange]:
    """Return the differences. Without the permission, a change of a payload is reported without values."""
    full = differences(before, after)
    shown = full if payload else differences(without_payloads(before), without_payloads(after))
    changes = [FieldChange(pointer=pointer, before=old, after=new) for pointer, old, new in shown]
    if not payload:
        known = {change.pointer for change in changes}
        hidden = dict.fromkeys(found[1] for pointer, _, _ in full if (found := _PAYLOAD.match(pointer)))
        changes += [
            FieldChange(pointer=pointer, before=None, after=None)
            for pointer in hidden
            if pointer not in known
        ]
    return changes


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
    document = version.document if payload else without_payloads(version.document)
    return JobVersion(
        job_id=job_id,
        version=version.number,
        replaced_at=version.replaced_at,
        payload_hidden=not payload,
        document={**document, "idempotency_key": None},
    )
