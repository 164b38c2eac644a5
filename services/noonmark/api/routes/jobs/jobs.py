"""Routes of jobs: create, list, read, replace, patch, delete."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Query, Request, Response

from noonmark.api.backend.database import repeated
from noonmark.api.backend.group_commit import TooBusyError
from noonmark.api.backend.job_creation import CreateRequest
from noonmark.api.http.bodies import checked_body, described, document_body, parse_document
from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.etags import Conditions
from noonmark.api.http.merge_patch import patched
from noonmark.api.http.parameter_errors import query_error
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import priority_error
from noonmark.api.http.replies import IdempotencyKeyHash
from noonmark.api.requests.direct_route import DirectRoute, too_busy
from noonmark.api.requests.routing import (
    LONGEST_KEY,
    Caller,
    IdempotencyKey,
    NamespaceParameter,
    Needs,
    check_query,
    named_namespace,
    needs,
    needs_of,
    resource,
)
from noonmark.api.routes.jobs.actions import (
    JobChange,
    JobChangeRequest,
    change_job,
    etag_of_job,
    job_answer,
    read_job,
)
from noonmark.api.routes.jobs.bulk import create_many
from noonmark.core.access.roles import Permission
from noonmark.core.states import JobState, Lane
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.jobs import BulkBody, ChangedJob, Job, JobMade, JobsMade
from noonmark.schemas.events.submissions import CANCEL, UPDATE
from noonmark.schemas.jobs.documents import JobType
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import MALFORMED
from noonmark.store.access.audit import Outcome
from noonmark.store.views.jobs import JobsWanted, list_jobs
from noonmark.store.views.pauses import held_instants, stored_schedules

router = resource("jobs")


async def create(
    document: Annotated[dict[str, Any], Depends(document_body)],
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.create"),
) -> Response:
    """Create a job. The response is sent after its commit."""
    try:
        reply = await caller.parts.creations.submit(_creation(document, idempotency_key, caller))
    except TooBusyError as error:
        raise too_busy(error) from None
    caller.request.scope["noonmark.audited"] = True
    return reply.response()


def _creation(document: dict[str, Any], idempotency_key: str | None, caller: Caller) -> CreateRequest:
    namespace = caller.namespace(named_namespace(document))
    caller.request.scope["noonmark.namespace"] = namespace
    key = IdempotencyKeyHash.make(namespace, idempotency_key, caller.action, document)
    entry = caller.entry(namespace, Outcome.DONE)
    trace = caller.parts.begin_trace(caller.request)
    return CreateRequest(namespace, {"namespace": namespace, **document}, key, entry, trace)


class _CreateRoute(DirectRoute):
    """Calls `create` without FastAPI's dependencies."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that reads the request as the signature of `create` declares."""
        need = self._need

        async def handle(request: Request) -> Response:
            caller = need.authorize(request)
            check_query(request)
            key = _checked_key(request.headers.get("idempotency-key"))
            return await create(await document_body(request), key, caller)

        return handle

    def read(self, request: Request, headers: Mapping[str, str], body: bytes) -> CreateRequest:
        """Do what the handler does, for a body that has arrived."""
        caller = self._need.authorize(request)
        key = _checked_key(headers.get("idempotency-key"))
        return _creation(parse_document(body), key, caller)

    @cached_property
    def _need(self) -> Needs:
        need = needs_of(self)
        assert need is not None
        return need


def _checked_key(key: str | None) -> str | None:
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        problem = f"header Idempotency-Key has {len(key)} characters; use 1 to {LONGEST_KEY}"
        raise ProblemError(MALFORMED, problem)
    return key


router.add_api_route(
    "/jobs",
    create,
    methods=["POST"],
    status_code=202,
    response_model=JobMade,
    responses={200: {"model": JobMade, "description": "A job with this `idempotency_key` already existed."}},
    route_class_override=_CreateRoute,
)


@router.post("/jobs/bulk", status_code=200, response_model=JobsMade, openapi_extra=described(BulkBody))
def create_bulk(
    body: Annotated[BulkBody, Depends(checked_body(BulkBody))],
    namespace: NamespaceParameter = None,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.create"),
) -> Response:
    """Create up to 10,000 jobs in one transaction; each one is accepted or refused separately."""
    return repeated(lambda: create_many(caller, body.jobs, namespace, idempotency_key)).response()


@router.get("/jobs")
def list_(  # noqa: PLR0917 - one parameter for each filter
    namespace: NamespaceParameter = None,
    state: Annotated[list[JobState], Query(description="Only jobs in these states; repeatable.")] = [],  # noqa: B006
    priority: Annotated[
        list[str], Query(description="Only these lanes: high, normal, low; repeatable.")
    ] = [],  # noqa: B006
    pool: Annotated[str | None, Query(max_length=48, description="Only jobs of this pool.")] = None,
    kind: Annotated[JobType | None, Query(alias="type", description="Only jobs of this kind.")] = None,
    handler: Annotated[
        str | None, Query(max_length=200, description="Only jobs with this Python handler.")
    ] = None,
    owner: Annotated[str | None, Query(max_length=200, description="Only jobs with this `owner`.")] = None,
    label: Annotated[
        list[str],
        Query(
            max_length=32,
            description="Only jobs with all of these labels: `key:value` or `key=value`; repeatable.",
        ),
    ] = [],  # noqa: B006
    name: Annotated[
        str | None, Query(max_length=200, description="Only the job with exactly this name.")
    ] = None,
    search: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=200,
            description="Only jobs with this text in the name or a label, in any case.",
        ),
    ] = None,
    recurring: Annotated[
        bool | None, Query(description="Only jobs with a schedule (true), or without (false).")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.JOBS_READ),
) -> Page[Job]:
    """List jobs of a namespace, newest first, without their payloads.

    With filters other than `name`, `label`, `owner` and one state of paused, cancelled and broken, a page may
    have fewer items than `limit`, or none, although more follow: continue until `next_cursor` is null.
    """
    where = caller.namespace(namespace)
    wanted = JobsWanted(
        where, name, search, state, _lanes(priority), pool, kind, handler, owner, _labels(label), recurring
    )
    filters = {
        "namespace": where, "name": name, "search": search, "state": sorted(state), "lane": sorted(priority),
        "pool": pool, "type": kind, "handler": handler, "owner": owner, "label": sorted(label),
        "recurring": recurring,
    }  # fmt: skip
    place = caller.parts.cursors.read("jobs", filters, cursor)
    with caller.reading() as session:
        page = list_jobs(session.sql, wanted, limit=limit, before=UUID(place) if place else None)
        schedules = stored_schedules(session.sql, page.rows)
    items = [job_answer(row, schedules.get(row["id"]), payload=False) for row in page.rows]
    following = caller.parts.cursors.make("jobs", filters, page.next) if page.next else None
    return Page(items=items, next_cursor=following)


@router.get("/jobs/{job_id:uuid}")
def read(job_id: UUID, response: Response, caller: Caller = needs(Permission.JOBS_READ)) -> Job:
    """Read a job with all defaults filled in."""
    with caller.reading() as session:
        row, schedule = read_job(session, job_id)
        caller.require(row["namespace"])
        instants_in_pause = held_instants(session.sql, row, schedule)
    response.headers["ETag"] = etag_of_job(row)
    return job_answer(
        row,
        schedule,
        payload=caller.may(Permission.PAYLOADS_READ, row["namespace"]),
        instants_in_pause=instants_in_pause,
    )


@router.put("/jobs/{job_id:uuid}", response_model=Job)
def replace(
    job_id: UUID,
    document: Annotated[dict[str, Any], Depends(document_body)],
    conditions: Conditions,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.replace"),
) -> Response:
    """Replace the whole document of a job: omitted fields return to their default.

    Existing runs keep the document that they were planned with.
    """
    _check_job_id(document)
    change = JobChangeRequest(job_id, conditions, None)
    return change_job(caller, change, lambda job: (UPDATE, _in_its_namespace(job, document)))


@router.patch("/jobs/{job_id:uuid}", response_model=Job)
def patch(
    job_id: UUID,
    changes: Annotated[dict[str, Any], Depends(document_body)],
    conditions: Conditions,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.patch"),
) -> Response:
    """Change some fields of a job (RFC 7396): null returns a field to its default.

    Existing runs keep the document that they were planned with; a new payload applies to future runs.
    """
    _check_job_id(changes)
    change = JobChangeRequest(job_id, conditions, None)
    return change_job(
        caller, change, lambda job: (UPDATE, _in_its_namespace(job, patched(job.document, changes)))
    )


@router.delete("/jobs/{job_id:uuid}", response_model=ChangedJob)
def delete(
    job_id: UUID, conditions: Conditions, caller: Caller = needs(Permission.JOBS_WRITE, "job.delete")
) -> Response:
    """Cancel a job and its runs that have not started; running ones finish. The job stays readable."""
    return change_job(
        caller,
        JobChangeRequest(job_id, conditions, None, of_state=True),
        lambda _: (CANCEL, {"running": "finish"}),
    )


def _check_job_id(document: dict[str, Any]) -> None:
    if "job_id" in document:
        raise Refused([FieldError("/job_id", "is given by the path", "no such field")])


def _in_its_namespace(job: JobChange, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the namespace of its job, which an update cannot change."""
    namespace = job.row["namespace"]
    if document.get("namespace", namespace) != namespace:
        message = f"the namespace of a job cannot be changed; this job is in {namespace}"
        raise Refused([FieldError("/namespace", message, f"{namespace}, or no such field")])
    return {**document, "namespace": namespace}


def _lanes(named: list[str]) -> list[Lane]:
    try:
        return [Lane.from_priority(name) for name in named]
    except ValueError as error:
        raise ProblemError.of_parameter(priority_error(error)) from None


def _labels(given: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in given:
        at = min((at for at in (text.find(":"), text.find("=")) if at > 0), default=0)
        if not at:
            raise ProblemError.of_parameter(
                query_error("label", f"{text[:100]!r} is not a label", "key:value")
            )
        key, value = text[:at], text[at + 1 :]
        if labels.setdefault(key, value) != value:
            raise ProblemError.of_parameter(
                query_error("label", f"{key} cannot have two values", "one value for each key")
            )
    return labels
