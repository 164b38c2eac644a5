"""Routes that preview schedules, of documents and of existing jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query

from noonmark.api.http.bodies import checked_body, described
from noonmark.api.http.parameter_errors import query_error
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, named_namespace, needs, resource
from noonmark.api.routes.jobs.actions import read_job
from noonmark.core.access.roles import Permission
from noonmark.core.instants import parse_instant
from noonmark.core.schedules.preview import preview
from noonmark.core.schedules.schedule import Once, Schedule
from noonmark.schemas.api.common import ProblemField
from noonmark.schemas.api.jobs import Fire, PreviewAnswer, PreviewBody, RemovedFire
from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.schemas.jobs.schedule import schedule_of
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import CONFLICT
from noonmark.store.cluster.catalogues import live_catalogues
from noonmark.store.cluster.pools import pool_names
from noonmark.store.documents.jobs import document_of_spec
from noonmark.store.jobs.requests import lacking
from noonmark.store.schedules.time_facts import Moment

router = resource("jobs")

Count = Annotated[int, Query(ge=1, le=1000, description="Most instants to return.")]


@router.post("/preview", openapi_extra=described(PreviewBody))
def preview_document(
    body: Annotated[PreviewBody, Depends(checked_body(PreviewBody))],
    caller: Caller = needs(Permission.JOBS_READ, reads=True),
) -> PreviewAnswer:
    """Preview the next instants of a job document or schedule, without creating a job."""
    if (body.document is None) is (body.schedule is None):
        raise Refused([FieldError("", "needs exactly one schedule", "one of document and schedule")])
    document = body.document or {}
    namespace = caller.namespace(body.namespace if body.document is None else named_namespace(document))
    with caller.reading() as session:
        moment = caller.parts.submitter.moment(session.raw)
        pools, catalogues = frozenset(pool_names(session.raw)), live_catalogues(session.raw)
    after, until = _instant(body.from_, "/from") or moment.now, _instant(body.until, "/until")
    if body.document is None:
        schedule = schedule_of(
            body.schedule, now=moment.now, namespace=namespace, name=None, facts=moment.facts
        )
        return _answer(schedule, after, until, body.count)
    spec = _spec_of({"namespace": namespace, **document}, moment)
    answer = _answer(Once(spec.run_at) if spec.run_at else spec.schedule, after, until, body.count)
    problems = []
    if caller.may(Permission.JOBS_WRITE, namespace):
        # Reported in addition to the instants, because workers may start later than this preview.
        found = lacking(spec, moment.facts.limits_of(namespace), pools, catalogues)
        problems = [ProblemField(pointer=e.pointer, message=e.message, expected=e.expected) for e in found]
    return answer.model_copy(update={"document": document_of_spec(spec), "problems": problems})


@router.get("/jobs/{job_id}/preview")
def preview_job(
    job_id: UUID,
    count: Count = 10,
    from_: Annotated[
        str | None,
        Query(
            alias="from",
            max_length=40,
            description="Return instants after this one. RFC 3339 with offset. Default: now.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        Query(max_length=40, description="Return no instants after this one. RFC 3339 with offset."),
    ] = None,
    caller: Caller = needs(Permission.JOBS_READ),
) -> PreviewAnswer:
    """Preview the next instants of a job from its schedule, regardless of its state."""
    with caller.reading() as session:
        row, schedule = read_job(session, job_id)
        caller.require(row["namespace"])
        moment = caller.parts.submitter.moment(session.raw)
    if row["schedule"] and schedule is None:
        raise ProblemError(CONFLICT, f"the schedule of job {job_id} cannot be read: {row['state_reason']}")
    after = _parameter(from_, "from") or moment.now
    return _answer(schedule, after, _parameter(until, "until"), count)


def _spec_of(document: dict[str, object], moment: Moment) -> JobSpec:
    """Check a document like the intake does.

    Raises:
        Refused: if it is invalid; pointers lead into the request.
    """
    try:
        return parse_job(
            document,
            now=moment.now,
            ledger_floor=moment.ledger_floor,
            facts=moment.facts,
            screened=True,
            name_required=True,
        )
    except Refused as refused:
        raise refused.below("/document") from None


def _answer(schedule: Schedule | None, after: datetime, until: datetime | None, count: int) -> PreviewAnswer:
    if schedule is None:
        # A one-time job that is due on arrival.
        return PreviewAnswer(fires=[], complete=True, removed=[])
    found = preview(schedule, after, until, count)
    return PreviewAnswer(
        fires=[Fire(at=fire.at, local=fire.local.isoformat(), note=fire.note) for fire in found.fires],
        complete=found.complete,
        removed=[RemovedFire(local=one.local.isoformat(), note=one.note) for one in found.removed],
    )


def _instant(text: str | None, pointer: str) -> datetime | None:
    try:
        return None if text is None else parse_instant(text)
    except ValueError as error:
        raise Refused([FieldError.from_text(pointer, str(error))]) from None


def _parameter(text: str | None, name: str) -> datetime | None:
    try:
        return _instant(text, name)
    except Refused as refused:
        found = refused.errors[0]
        raise ProblemError.of_parameter(query_error(name, found.message, found.expected)) from None
