"""Jobs: made, listed, read, replaced, patched, deleted."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Query, Request, Response

from noonmark.api.backend.database import repeated
from noonmark.api.backend.group_commit import TooBusyError
from noonmark.api.backend.job_creation import CreateRequest
from noonmark.api.http.bodies import checked_body, described, document_body
from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.merge_patch import patched
from noonmark.api.http.problems import RETRY_SECONDS, ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash
from noonmark.api.requests.direct_route import DirectRoute
from noonmark.api.requests.routing import (
    LONGEST_KEY,
    Caller,
    IdempotencyKey,
    IfMatch,
    NamespaceParameter,
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
from noonmark.core.vocabulary import JobState, Lane
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.jobs import BulkBody, Job, JobMade, JobsMade
from noonmark.schemas.events.submissions import CANCEL, UPDATE
from noonmark.schemas.jobs.documents import JobType
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import MALFORMED, UNAVAILABLE
from noonmark.store.access.audit import Outcome
from noonmark.store.views.jobs import JobsWanted, list_jobs
from noonmark.store.views.pauses import held_instants, stored_schedules

router = resource("jobs")


async def create(
    document: Annotated[dict[str, Any], Depends(document_body)],
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.create"),
) -> Response:
    """Make a job; it is committed when this is answered."""
    namespace = caller.namespace(named_namespace(document))
    caller.request.scope["noonmark.namespace"] = namespace
    key = IdempotencyKeyHash.make(namespace, idempotency_key, caller.action, document)
    entry = caller.entry(namespace, Outcome.DONE)
    trace = caller.parts.begin_trace(caller.request)
    create_request = CreateRequest(namespace, {"namespace": namespace, **document}, key, entry, trace)
    try:
        reply = await caller.parts.creations.submit(create_request)
    except TooBusyError as error:
        raise ProblemError(UNAVAILABLE, str(error), headers={"Retry-After": RETRY_SECONDS}) from None
    caller.request.scope["noonmark.audited"] = True
    return reply.response()


class _CreateRoute(DirectRoute):
    """Calls `create` as its signature says."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what reads the request as the signature of `create` says."""
        need = needs_of(self)
        assert need is not None

        async def handle(request: Request) -> Response:
            caller = await need(request)
            check_query(request)
            key = request.headers.get("idempotency-key")
            if key is not None and not 1 <= len(key) <= LONGEST_KEY:
                told = f"header Idempotency-Key has {len(key)} characters; use 1 to {LONGEST_KEY}"
                raise ProblemError(MALFORMED, told)
            return await create(await document_body(request), key, caller)

        return handle


router.add_api_route(
    "/jobs",
    create,
    methods=["POST"],
    status_code=202,
    response_model=JobMade,
    responses={200: {"model": JobMade, "description": "There was a job with its `idempotency_key` already."}},
    route_class_override=_CreateRoute,
)


@router.post("/jobs/bulk", status_code=200, response_model=JobsMade, openapi_extra=described(BulkBody))
def create_bulk(
    body: Annotated[BulkBody, Depends(checked_body(BulkBody))],
    namespace: NamespaceParameter = None,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.create"),
) -> Response:
    """Make up to 10,000 jobs, in one transaction; each is taken or not by itself."""
    return repeated(lambda: create_many(caller, body.jobs, namespace, idempotency_key)).response()


@router.get("/jobs")
def list_(  # noqa: PLR0917 - one parameter for each filter
    namespace: NamespaceParameter = None,
    state: Annotated[list[JobState], Query(description="Any of these.")] = [],  # noqa: B006 - FastAPI copies it
    priority: Annotated[list[str], Query(description="Any of these: high, normal, low.")] = [],  # noqa: B006
    pool: Annotated[str | None, Query(max_length=48, description="Only of this pool.")] = None,
    kind: Annotated[JobType | None, Query(alias="type", description="Kind of work.")] = None,
    handler: Annotated[str | None, Query(max_length=200, description="Only of this Python handler.")] = None,
    owner: Annotated[str | None, Query(max_length=200, description="Only with this `owner`.")] = None,
    label: Annotated[
        list[str], Query(max_length=32, description="`key:value` or `key=value`; all of these.")
    ] = [],  # noqa: B006
    name: Annotated[str | None, Query(max_length=200, description="Exactly this name.")] = None,
    search: Annotated[
        str | None,
        Query(min_length=1, max_length=200, description="Part of the name, or of a label, in any case."),
    ] = None,
    recurring: Annotated[bool | None, Query(description="With a schedule, or without.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.JOBS_READ),
) -> Page[Job]:
    """List jobs of a namespace, the newest first, without their payloads.

    With other filters than `name`, `label`, `owner` and one state of paused, cancelled and broken a page may
    have fewer items than `limit`, or none, and others still follow: go on until `next_cursor` is null.
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
    """Read a job with every default spelt out."""
    with caller.reading() as session:
        row, schedule = read_job(session, job_id)
        caller.require(row["namespace"])
        held = held_instants(session.sql, row, schedule)
    response.headers["ETag"] = etag_of_job(row)
    return job_answer(
        row, schedule, payload=caller.may(Permission.PAYLOADS_READ, row["namespace"]), held=held
    )


@router.put("/jobs/{job_id:uuid}", response_model=Job)
def replace(
    job_id: UUID,
    document: Annotated[dict[str, Any], Depends(document_body)],
    if_match: IfMatch = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.replace"),
) -> Response:
    """Give a job another document, whole: what is left out returns to its default.

    Runs that are there keep the document they were planned with.
    """
    _check_job_id(document)
    change = JobChangeRequest(job_id, if_match, None)
    return change_job(caller, change, lambda job: (UPDATE, _in_its_namespace(job, document)))


@router.patch("/jobs/{job_id:uuid}", response_model=Job)
def patch(
    job_id: UUID,
    changes: Annotated[dict[str, Any], Depends(document_body)],
    if_match: IfMatch = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "job.patch"),
) -> Response:
    """Change some fields of a job (RFC 7396): null takes a field back to its default.

    Runs that are there keep the document they were planned with; a new payload is for what comes.
    """
    _check_job_id(changes)
    change = JobChangeRequest(job_id, if_match, None)
    return change_job(
        caller, change, lambda job: (UPDATE, _in_its_namespace(job, patched(job.document, changes)))
    )


@router.delete("/jobs/{job_id:uuid}", response_model=Job)
def delete(
    job_id: UUID, if_match: IfMatch = None, caller: Caller = needs(Permission.JOBS_WRITE, "job.delete")
) -> Response:
    """End a job and cancel what is not yet running; what runs finishes. The job stays readable."""
    return change_job(
        caller, JobChangeRequest(job_id, if_match, None), lambda _: (CANCEL, {"running": "finish"})
    )


def _check_job_id(document: dict[str, Any]) -> None:
    if "job_id" in document:
        raise Refused([FieldError("/job_id", "is given by the path", "the field left out")])


def _in_its_namespace(job: JobChange, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document that names the namespace of its job, which an update cannot change."""
    namespace = job.row["namespace"]
    if document.get("namespace", namespace) != namespace:
        told = f"a job stays in its namespace, which is {namespace}"
        raise Refused([FieldError("/namespace", told, f"{namespace}, or the field left out")])
    return {**document, "namespace": namespace}


def _lanes(named: list[str]) -> list[Lane]:
    try:
        return [Lane.from_priority(name) for name in named]
    except ValueError as error:
        raise ProblemError(MALFORMED, f"query parameter priority: {error}") from None


def _labels(given: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in given:
        at = min((at for at in (text.find(":"), text.find("=")) if at > 0), default=0)
        if not at:
            raise ProblemError(MALFORMED, f"query parameter label: {text[:100]!r} is not key:value")
        key, value = text[:at], text[at + 1 :]
        if labels.setdefault(key, value) != value:
            raise ProblemError(MALFORMED, f"query parameter label: {key} cannot have two values")
    return labels
