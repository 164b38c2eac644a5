"""Routes of namespaces: defaults, quotas, and pausing all jobs of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, LiteralString
from uuid import UUID

import psycopg
from fastapi import Body, Path, Response

from noonmark.api.http.etags import Conditions, etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import store_response
from noonmark.api.requests.routing import Caller, IdempotencyKey, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.core.states import ResumeChoice
from noonmark.core.zones.zones import ZoneError
from noonmark.schemas.api.namespaces import (
    Namespace,
    NamespaceChange,
    NamespaceDetail,
    NamespacePause,
    NamespaceResume,
    Namespaces,
    NamespaceSettings,
)
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import CONFLICT, NOT_FOUND
from noonmark.store.namespaces import namespaces
from noonmark.store.namespaces import pauses as namespace_pauses
from noonmark.store.namespaces.batches import TO_PAUSE, TO_PLAN, TO_RESUME, first_of
from noonmark.store.namespaces.namespaces import NamespaceError, NamespaceRow
from noonmark.store.schedules.time_facts import change_time_facts

router = resource("namespaces")

Name = Annotated[str, Path(pattern=NAMESPACE_PATTERN, description="Name of the namespace.")]

MOST: Final = 5_000
"""About the most jobs that one call pauses or resumes."""

_SET: Final = ("timezone", "max_in_flight", "max_jobs")


@router.get("/namespaces")
def list_namespaces(caller: Caller = needs(Permission.SETTINGS_READ)) -> Namespaces:
    """List namespaces that have settings or a recurring job, and in which the credential has a role."""
    with caller.reading() as session:
        rows = namespaces.list_namespaces(session.raw)
    seen = [row for row in rows if caller.may(Permission.SETTINGS_READ, row.name)]
    return Namespaces(items=[Namespace.model_validate(_shown(row)) for row in seen])


@router.get("/namespaces/{name}")
def read_namespace(
    name: Name, response: Response, caller: Caller = needs(Permission.SETTINGS_READ)
) -> NamespaceDetail:
    """Read a namespace with its defaults, its quotas, and the number of its recurring jobs by state."""
    caller.require(name)
    with caller.reading() as session:
        row = _read(session.raw, name)
        counts = namespaces.count_jobs(session.raw, name)
    jobs: dict[str, int] = {}
    for state, paused_by, count in counts:
        key = f"{state}_by_{paused_by}" if paused_by else state
        jobs[key] = jobs.get(key, 0) + count
    response.headers["ETag"] = _etag(row)
    return NamespaceDetail.model_validate({**_shown(row), "recurring_jobs": jobs})


@router.put("/namespaces/{name}")
def put_namespace(
    name: Name,
    settings: NamespaceSettings,
    response: Response,
    conditions: Conditions,
    caller: Caller = needs(Permission.SETTINGS_WRITE, "namespace.put"),
) -> Namespace:
    """Set the defaults and quotas of a namespace; omitted fields return to their default.

    Existing jobs keep their time zone, and stay even if there are more than `max_jobs`. `max_in_flight`
    applies to runs that come due from now on.
    """
    with caller.changing(name) as act:
        raw = act.session.raw
        act.object = f"namespace:{name}"
        # First the lock of all such changes: the compared version is still current when it is replaced.
        change_time_facts(raw)
        before = _read(raw, name)
        conditions.check(_etag(before))
        try:
            namespaces.set_timezone(raw, name, settings.timezone)
        except ZoneError as error:
            raise Refused([FieldError.from_text("/timezone", error.message)]) from error
        namespaces.mark_cap(raw, name, settings.max_in_flight)
        namespaces.set_max_jobs(raw, name, settings.max_jobs)
        after = _read(raw, name)
        act.before, act.after = _audit_fields(before), _audit_fields(after)
    if settings.max_in_flight is not None:
        _step_by_step(caller, name, TO_PLAN, namespaces.plan_some)
    response.headers["ETag"] = _etag(after)
    return Namespace.model_validate(_shown(after))


@router.delete("/namespaces/{name}", status_code=204)
def delete_namespace(
    name: Name, conditions: Conditions, caller: Caller = needs(Permission.PLATFORM, "namespace.delete")
) -> None:
    """Reset a namespace to the defaults; its jobs stay. Fails while it is paused or has calendars."""
    with caller.changing(name) as act:
        raw = act.session.raw
        act.object = f"namespace:{name}"
        change_time_facts(raw)
        before = _read(raw, name)
        conditions.check(_etag(before))
        if before.updated_at is None:
            raise ProblemError(NOT_FOUND, f"namespace {name!r} has no settings")
        try:
            namespaces.delete_namespace(raw, name)
        except NamespaceError as error:
            raise ProblemError(CONFLICT, str(error)) from error
        act.before = _audit_fields(before)


@router.post("/namespaces/{name}/pause", response_model=NamespaceChange)
def pause_namespace(
    name: Name,
    body: Annotated[NamespacePause | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.SETTINGS_WRITE, "namespace.pause"),
) -> Response:
    """Pause all jobs of a namespace, including those created later. Running runs continue.

    One call pauses some thousands of the existing jobs; while `complete` is false, repeat it.
    """
    reason = body.reason if body else None
    key = IdempotencyKeyHash.make(name, idempotency_key, caller.action, reason)
    with caller.changing(name) as act:
        act.object = f"namespace:{name}"
        if key is not None and (answered := key.before(act.session.raw)) is not None:
            act.after = {"replayed": True}
            return answered.response()
        before = _read(act.session.raw, name)
        changed = namespace_pauses.mark_paused(act.session.raw, name, reason)
        act.before, act.after = _audit_fields(before), _audit_fields(_read(act.session.raw, name))
    jobs = runs = 0

    def pause(raw: psycopg.Connection, ids: Sequence[UUID]) -> None:
        nonlocal jobs, runs
        paused, deferred = namespace_pauses.pause_some(raw, name, ids)
        jobs, runs = jobs + paused, runs + deferred

    complete = _step_by_step(caller, name, TO_PAUSE, pause)
    done = NamespaceChange(
        name=name,
        state="paused",
        changed=changed,
        jobs=jobs,
        runs=runs,
        jobs_with_held_instants=0,
        complete=complete,
    )
    return store_response(caller, name, key, StoredResponse(200, done.model_dump(mode="json"))).response()


@router.post("/namespaces/{name}/resume", response_model=NamespaceChange)
def resume_namespace(
    name: Name,
    body: Annotated[NamespaceResume | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.SETTINGS_WRITE, "namespace.resume"),
) -> Response:
    """Resume the jobs that the pause of a namespace paused, and enqueue their runs.

    Jobs that were paused separately stay paused. One call resumes some thousands of jobs; while `complete` is
    false, repeat it with the same choice.
    """
    missed = ResumeChoice(body.missed if body else ResumeChoice.SKIP)
    key = IdempotencyKeyHash.make(name, idempotency_key, caller.action, missed.value)
    with caller.changing(name) as act:
        act.object = f"namespace:{name}"
        if key is not None and (answered := key.before(act.session.raw)) is not None:
            act.after = {"replayed": True}
            return answered.response()
        before = _read(act.session.raw, name)
        changed = namespace_pauses.mark_resumed(act.session.raw, name)
        after = _read(act.session.raw, name)
        act.before, act.after = _audit_fields(before), {**_audit_fields(after), "missed": missed.value}
    jobs = runs = late = 0

    def resume(raw: psycopg.Connection, ids: Sequence[UUID]) -> None:
        nonlocal jobs, runs, late
        resumed, queued, had_instants = namespace_pauses.resume_some(raw, name, ids, missed)
        jobs, runs, late = jobs + resumed, runs + queued, late + had_instants

    complete = _step_by_step(caller, name, TO_RESUME, resume)
    if jobs or runs:
        caller.parts.submitter.hint(queued=True, due_soon=True, freed=True)
    done = NamespaceChange(
        name=name,
        state="active",
        changed=changed,
        jobs=jobs,
        runs=runs,
        jobs_with_held_instants=late,
        complete=complete,
    )
    return store_response(caller, name, key, StoredResponse(200, done.model_dump(mode="json"))).response()


def _step_by_step(
    caller: Caller,
    name: str,
    query: LiteralString,
    work: Callable[[psycopg.Connection, Sequence[UUID]], None],
) -> bool:
    """Process the first `MOST` matching jobs, one transaction per batch; return whether these were all.

    The intake waits for one batch at most. The audit log already has the request.
    """
    with caller.parts.database.reading((name,)) as session:
        found, complete = first_of(session.raw, query, name, MOST)
    for ids in found:
        try:
            with caller.parts.database.changing((name,)) as session:
                work(session.raw, ids)
        except NamespaceError as error:
            raise ProblemError(CONFLICT, str(error)) from error
    return complete


def _read(connection: psycopg.Connection, name: str) -> NamespaceRow:
    """Return the settings of a namespace; the defaults if it has none."""
    found = namespaces.list_namespaces(connection, name)
    return found[0] if found else NamespaceRow(name, "UTC", None, None, None, None, None)


def _etag(row: NamespaceRow) -> str:
    return etag_of("namespace", *(getattr(row, field) for field in _SET), row.paused_at)


def _audit_fields(row: NamespaceRow) -> dict[str, Any]:
    settings = {field: getattr(row, field) for field in _SET}
    return {**settings, "paused": row.paused_at is not None, "pause_reason": row.pause_reason}


def _shown(row: NamespaceRow) -> dict[str, Any]:
    return {**row._asdict(), "state": "paused" if row.paused_at is not None else "active"}
