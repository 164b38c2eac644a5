"""Routes that control jobs: cancel, pause, resume, trigger."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Response

from noonmark.api.http.bodies import checked_body, described
from noonmark.api.http.etags import Conditions
from noonmark.api.http.replies import StoredResponse
from noonmark.api.requests.routing import Caller, IdempotencyKey, needs, resource
from noonmark.api.routes.jobs.actions import JobChangeRequest, change_job, namespace_of_job
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.jobs import ChangedJob, JobTriggered, ReasonBody, ResumeBody, TriggerBody
from noonmark.schemas.events.submissions import CANCEL, PAUSE, RESUME, TRIGGER
from noonmark.schemas.problems.pydantic_errors import Document
from noonmark.store.jobs.requests import Taken

router = resource("jobs")

Reasoned = Annotated[ReasonBody, Depends(checked_body(ReasonBody))]
_REASONED = described(ReasonBody, required=False)


def _given(body: Document) -> dict[str, Any]:
    """Return the given fields of a body."""
    return body.model_dump(mode="json", exclude_unset=True)


@router.post("/jobs/{job_id}/cancel", response_model=ChangedJob, openapi_extra=_REASONED)
def cancel(
    job_id: UUID,
    body: Reasoned,
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.cancel"),
) -> Response:
    """Cancel a job: it is never due again, and its unfinished runs are cancelled, including running ones."""
    given = _given(body)
    return change_job(
        caller,
        JobChangeRequest(job_id, conditions, idempotency_key, given, of_state=True),
        lambda _: (CANCEL, given),
    )


@router.post("/jobs/{job_id}/pause", response_model=ChangedJob, openapi_extra=_REASONED)
def pause(
    job_id: UUID,
    body: Reasoned,
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_OPERATE, "job.pause"),
) -> Response:
    """Pause a job: none of its runs start until it is resumed; running ones continue."""
    given = _given(body)
    return change_job(
        caller,
        JobChangeRequest(job_id, conditions, idempotency_key, given, of_state=True),
        lambda _: (PAUSE, given),
    )


@router.post(
    "/jobs/{job_id}/resume",
    response_model=ChangedJob,
    openapi_extra=described(ResumeBody, required=False),
)
def resume(
    job_id: UUID,
    body: Annotated[ResumeBody, Depends(checked_body(ResumeBody))],
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_OPERATE, "job.resume"),
) -> Response:
    """Resume a paused job; `missed` says what to do with instants that came due during the pause."""
    given = _given(body)
    return change_job(
        caller,
        JobChangeRequest(job_id, conditions, idempotency_key, given, of_state=True),
        lambda _: (RESUME, given),
    )


@router.post(
    "/jobs/{job_id}/trigger",
    status_code=202,
    response_model=JobTriggered,
    openapi_extra=described(TriggerBody, required=False),
)
def trigger(
    job_id: UUID,
    body: Annotated[TriggerBody, Depends(checked_body(TriggerBody))],
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_OPERATE, "job.trigger"),
) -> Response:
    """Run a job once now, in addition to its schedule, optionally with another payload or lane.

    Another payload requires the role editor.
    """
    given: dict[str, Any] = {}
    if "payload" in body.model_fields_set:
        # Choosing what is sent, and where to, is equivalent to writing a job.
        caller.require(namespace_of_job(caller, job_id), Permission.JOBS_WRITE)
        given["payload"] = body.payload
    if body.priority is not None:
        given["priority"] = body.priority.label

    def answer(taken: Taken) -> StoredResponse:
        run_id = taken.results[0].run_id
        said = {"job_id": str(job_id), "run_id": str(run_id)}
        return StoredResponse(202, said, {"Location": f"/v1/runs/{run_id}"})

    change = JobChangeRequest(job_id, conditions, idempotency_key, given)
    return change_job(caller, change, lambda _: (TRIGGER, given), answer)
