"""Routes of limits: most runs in flight, and most starts per period, of the jobs that use a limit."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Response

from noonmark.api.http.etags import Conditions, etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.limits import Limit, LimitFigures, Limits
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import CONFLICT, NOT_FOUND
from noonmark.store.limits import limits
from noonmark.store.limits.limits import Figures, LimitError, LimitInUseError, LimitRow
from noonmark.store.schedules.time_facts import change_time_facts

router = resource("limits")

Name = Annotated[str, Path(pattern=NAMESPACE_PATTERN, description="Name of the limit.")]


@router.get("/limits")
def list_limits(
    namespace: NamespaceParameter = None, caller: Caller = needs(Permission.SETTINGS_READ)
) -> Limits:
    """List the limits of a namespace, with the slots in use and the waiting runs of all their keys."""
    where = caller.namespace(namespace)
    with caller.reading() as session:
        rows = limits.list_limits(session.raw, where)
    return Limits(items=[_shown(row) for row in rows])


@router.get("/limits/{name}")
def read_limit(
    name: Name,
    response: Response,
    namespace: NamespaceParameter = None,
    caller: Caller = needs(Permission.SETTINGS_READ),
) -> Limit:
    """Read a limit."""
    where = caller.namespace(namespace)
    with caller.reading() as session:
        row = _find(session.raw, where, name)
    if row is None:
        raise _missing(where, name)
    response.headers["ETag"] = _etag(row)
    return _shown(row)


@router.put("/limits/{name}")
def put_limit(
    *,
    name: Name,
    figures: LimitFigures,
    response: Response,
    namespace: NamespaceParameter = None,
    conditions: Conditions,
    caller: Caller = needs(Permission.SETTINGS_WRITE, "limit.put"),
) -> Limit:
    """Create a limit, or replace its values. They apply immediately, also to waiting runs."""
    where = caller.namespace(namespace)
    wanted = _figures(figures)
    with caller.changing(where) as act:
        raw = act.session.raw
        act.object = f"limit:{name}"
        # First the lock of all such changes: the compared version is still current when it is replaced.
        change_time_facts(raw)
        before = _find(raw, where, name)
        conditions.check(_etag(before), exists=before is not None)
        try:
            limits.set_limit(raw, where, name, wanted)
        except LimitError as error:
            # Everything else was checked before; the store's message names command-line options.
            raise Refused([FieldError.from_text("/burst", str(error).replace("--", ""))]) from error
        after = _find(raw, where, name)
        assert after is not None
        act.before, act.after = _audit_fields(before), _audit_fields(after)
    response.headers["ETag"] = _etag(after)
    return _shown(after)


@router.delete("/limits/{name}", status_code=204)
def delete_limit(
    name: Name,
    conditions: Conditions,
    namespace: NamespaceParameter = None,
    caller: Caller = needs(Permission.SETTINGS_WRITE, "limit.delete"),
) -> None:
    """Delete a limit. Fails while a job that can still run uses it."""
    where = caller.namespace(namespace)
    with caller.changing(where) as act:
        act.object = f"limit:{name}"
        change_time_facts(act.session.raw)
        before = _find(act.session.raw, where, name)
        if before is None:
            raise _missing(where, name)
        conditions.check(_etag(before), exists=before is not None)
        try:
            limits.delete_limit(act.session.raw, where, name)
        except LimitInUseError as error:
            raise ProblemError(CONFLICT, str(error)) from error
        act.before = _audit_fields(before)


def _figures(given: LimitFigures) -> Figures:
    """Read the values of a limit.

    Raises:
        Refused: if they limit nothing, or are invalid.
    """
    if given.max_running is None and given.rate is None:
        raise Refused([FieldError("", "limits nothing", "max_running, rate, or both")])
    if given.rate is None and given.burst is not None:
        raise Refused([FieldError("/burst", "needs a rate", "a rate, too")])
    try:
        count, seconds = limits.parse_rate(given.rate) if given.rate is not None else (None, None)
    except LimitError as error:
        raise Refused([FieldError.from_text("/rate", str(error))]) from error
    return Figures(given.max_running, count, seconds, given.burst)


def _find(connection: Any, namespace: str, name: str) -> LimitRow | None:
    return next((row for row in limits.list_limits(connection, namespace) if row.name == name), None)


def _missing(namespace: str, name: str) -> ProblemError:
    return ProblemError(NOT_FOUND, f"namespace {namespace!r} has no limit {name!r}")


def _etag(row: LimitRow | None) -> str:
    return etag_of("limit", *row[2:6]) if row is not None else etag_of("no limit")


def _audit_fields(row: LimitRow | None) -> dict[str, Any] | None:
    return None if row is None else dict(zip(Figures._fields, row[2:6], strict=True))


def _shown(row: LimitRow) -> Limit:
    rate = f"{row.rate_count}/{row.rate_seconds:.10g}s" if row.rate_count is not None else None
    return Limit.model_validate({**row._asdict(), "rate": rate})
