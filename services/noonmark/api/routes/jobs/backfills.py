"""Routes of backfills: plan, start, list, read and cancel runs of past instants."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import psycopg
from fastapi import Depends, Query, Response

from noonmark.api.http.bodies import checked_body, described
from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import (
    AuditedChange,
    Caller,
    IdempotencyKey,
    NamespaceParameter,
    needs,
    resource,
)
from noonmark.api.routes.jobs.actions import namespace_of_job
from noonmark.core.access.roles import Permission
from noonmark.core.instants import parse_instant
from noonmark.core.planning.backfill import BackfillError, BackfillRange
from noonmark.core.schedules.preview import in_zone
from noonmark.core.states import BackfillMode, BackfillState
from noonmark.core.zones.zones import UTC_ZONE
from noonmark.schemas.api.backfills import (
    Backfill,
    BackfillBody,
    BackfillCancelBody,
    BackfillCancelled,
    BackfillPlan,
)
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.jobs import Fire
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import CONFLICT, NOT_FOUND
from noonmark.store.backfills import requests as backfill_requests
from noonmark.store.views import backfills as backfill_views

router = resource("backfills")

_LISTED = 100
"""Most instants in a plan."""


@router.post(
    "/jobs/{job_id}/backfills",
    status_code=202,
    response_model=BackfillPlan,
    responses={200: {"model": BackfillPlan, "description": "The plan, with `dry_run`."}},
    openapi_extra=described(BackfillBody),
)
def create(
    job_id: UUID,
    body: Annotated[BackfillBody, Depends(checked_body(BackfillBody))],
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "backfill.create"),
) -> Response:
    """Run past instants of a recurring job, in the lowest lane.

    With `dry_run`, only the plan is returned, with status 200.
    """
    namespace = namespace_of_job(caller, job_id)
    if body.dry_run:
        # Nothing is changed, so there is no audit entry, not even of a plan that fails.
        caller.request.scope["noonmark.audited"] = True
        with caller.reading() as session:
            return _reply(_planned(session.raw, job_id, body), None).response()
    key = IdempotencyKeyHash.make(
        namespace, idempotency_key, caller.action, str(job_id), body.model_dump(mode="json")
    )

    def start(act: AuditedChange) -> StoredResponse:
        planned = _planned(act.session.raw, job_id, body)
        try:
            started = backfill_requests.start(act.session.raw, planned, requested_by=caller.principal.name)
        except BackfillError as error:
            raise ProblemError(CONFLICT, str(error)) from None
        reply = _reply(planned, started)
        act.after = {name: value for name, value in reply.body.items() if name != "fires"}
        act.after["instants"] = len(planned.listed)
        return reply

    return run_idempotent(caller, namespace, key, start, changes=f"job:{job_id}").response()


@router.get("/jobs/{job_id}/backfills")
def list_(
    job_id: UUID,
    state: Annotated[
        list[BackfillState], Query(description="Only backfills in these states; repeatable.")
    ] = [],  # noqa: B006 - FastAPI copies it
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.JOBS_READ),
) -> Page[Backfill]:
    """List the backfills of a job, newest first."""
    namespace_of_job(caller, job_id)
    filters = {"job": str(job_id), "state": sorted(state)}
    place = caller.parts.cursors.read("backfills", filters, cursor)
    with caller.reading() as session:
        page = backfill_views.list_backfills(
            session.sql, job=job_id, states=state, limit=limit, before=UUID(place) if place else None
        )
    following = caller.parts.cursors.make("backfills", filters, page.next) if page.next else None
    return Page(items=[Backfill.model_validate(row) for row in page.rows], next_cursor=following)


@router.get("/backfills")
def list_all(
    namespace: NamespaceParameter = None,
    state: Annotated[list[BackfillState], Query(description="Any of these.")] = [],  # noqa: B006 - FastAPI copies it
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.JOBS_READ),
) -> Page[Backfill]:
    """List the backfills of a namespace, the newest first."""
    where = caller.namespace(namespace)
    filters = {"namespace": where, "state": sorted(state)}
    position = caller.parts.cursors.read("all-backfills", filters, cursor)
    with caller.reading() as session:
        page = backfill_views.list_backfills(
            session.sql,
            namespace=where,
            states=state,
            limit=limit,
            before=UUID(position) if position else None,
        )
    following = caller.parts.cursors.make("all-backfills", filters, page.next) if page.next else None
    return Page(items=[Backfill.model_validate(row) for row in page.rows], next_cursor=following)


@router.get("/backfills/{backfill_id}")
def read(backfill_id: UUID, caller: Caller = needs(Permission.JOBS_READ)) -> Backfill:
    """Read a backfill with the number of its runs by state."""
    with caller.reading() as session:
        row = backfill_views.show_backfill(session.sql, backfill_id)
    if row is None:
        raise ProblemError(NOT_FOUND, f"there is no backfill {backfill_id}")
    caller.require(row["namespace"])
    return Backfill.model_validate(row)


@router.post(
    "/backfills/{backfill_id}/cancel",
    response_model=BackfillCancelled,
    openapi_extra=described(BackfillCancelBody, required=False),
)
def cancel(
    backfill_id: UUID,
    body: Annotated[BackfillCancelBody, Depends(checked_body(BackfillCancelBody))],
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.JOBS_WRITE, "backfill.cancel"),
) -> Response:
    """Cancel a backfill: it enqueues no more runs; with `runs`, its unfinished runs are cancelled, too."""
    namespace = read(backfill_id, caller).namespace
    submitter = caller.parts.submitter
    said = body.model_dump(mode="json")
    key = IdempotencyKeyHash.make(namespace, idempotency_key, caller.action, str(backfill_id), said)

    def end(act: AuditedChange) -> StoredResponse:
        done = backfill_requests.cancel(
            act.session.raw,
            backfill_id,
            reason=body.reason,
            runs_in=(submitter.events, submitter.shards) if body.runs else None,
        )
        row = backfill_views.show_backfill(act.session.sql, backfill_id)
        assert row is not None, "it existed before the change"
        answer = BackfillCancelled(
            backfill=Backfill.model_validate(row), ended=done.ended, stopping=done.stopping
        )
        act.after = answer.model_dump(mode="json")
        return StoredResponse(200, act.after)

    return run_idempotent(caller, namespace, key, end, changes=f"backfill:{backfill_id}").response()


def _planned(
    connection: psycopg.Connection, job_id: UUID, body: BackfillBody
) -> backfill_requests.BackfillPlan:
    """Plan the requested backfill.

    Raises:
        ProblemError: if the backfill cannot be started.
    """
    try:
        now = backfill_requests.read_bounds(connection).now
        return backfill_requests.plan(
            connection, job_id, _range(body, now), BackfillMode(body.mode), limit=_LISTED
        )
    except BackfillError as error:
        raise ProblemError(CONFLICT, str(error)) from None


def _range(body: BackfillBody, now: datetime) -> BackfillRange:
    until = now if body.until is None else _instant(body.until, "/until")
    return BackfillRange(_instant(body.from_, "/from"), until)


def _instant(text: str, pointer: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise Refused([FieldError.from_text(pointer, str(error))]) from None


def _reply(planned: backfill_requests.BackfillPlan, started: UUID | None) -> StoredResponse:
    answer = BackfillPlan(
        id=started,
        job_id=planned.job_id,
        job_version=planned.job_version,
        mode=planned.mode.value,
        from_at=planned.range.from_at,
        until_at=planned.range.until_at,
        total=planned.total,
        to_run=planned.to_run,
        instants=list(planned.listed),
        note=planned.note,
        fires=_fires(planned),
    )
    headers = {"Location": f"/v1/backfills/{started}"} if started else {}
    return StoredResponse(202 if started else 200, answer.model_dump(mode="json"), headers)


def _fires(planned: backfill_requests.BackfillPlan) -> list[Fire]:
    zone = planned.schedule.zone or UTC_ZONE
    return [
        Fire(at=at, local=in_zone(at, zone).isoformat(), note=planned.schedule.note(at))
        for at in planned.listed
    ]
