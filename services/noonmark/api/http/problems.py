"""Error responses: problem documents (RFC 9457), never a stack trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from psycopg import Error as DriverError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from noonmark.api.http.parameter_errors import ParameterError, joined_choices, validation_error
from noonmark.api.http.route_list import methods_of
from noonmark.schemas.problems.pydantic_errors import Document, field_error, model_in
from noonmark.schemas.problems.refusal import FieldError, Refused, printable
from noonmark.schemas.problems.types import (
    CONFLICT,
    INTERNAL,
    INVALID,
    MALFORMED,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    QUOTA_EXCEEDED,
    TOO_LARGE,
    UNAVAILABLE,
    ProblemType,
)
from noonmark.service.database_errors import DbFault, classify, is_locked_out, log_fault
from noonmark.store.jobs.requests import Reason, Result
from noonmark.telemetry.logs import get_logger

MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = "2"

_log = get_logger()
_BY_STATUS: Final = {404: NOT_FOUND, 405: METHOD_NOT_ALLOWED, 413: TOO_LARGE, 400: MALFORMED}
_BY_REASON: Final = {
    Reason.NOT_FOUND: NOT_FOUND,
    Reason.CONFLICT: CONFLICT,
    Reason.QUOTA: QUOTA_EXCEEDED,
}


class ProblemError(Exception):
    """Fails a request with a problem document."""

    def __init__(
        self,
        kind: ProblemType,
        detail: str = "",
        *,
        errors: Iterable[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or kind.title)
        self.kind = kind
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    @classmethod
    def of_refused(cls, refused: Refused, kind: ProblemType = INVALID) -> ProblemError:
        """Create the problem of a refused document."""
        count = len(refused.errors)
        first = refused.errors[0] if refused.errors else None
        detail = str(first) if count == 1 and first else f"{count} problems; `errors` lists them"
        return cls(kind, detail, errors=refused.errors)

    @classmethod
    def of_parameter(cls, error: ParameterError) -> ProblemError:
        """Create the problem of an invalid parameter."""
        return cls.of_refused(Refused([error]), MALFORMED)

    @classmethod
    def of_result(cls, result: Result) -> ProblemError:
        """Create the problem of a valid request that the store rejected."""
        assert result.reason is not None
        assert result.refused is not None
        return cls.of_refused(result.refused, _BY_REASON.get(result.reason, INVALID))


def problem_response(
    kind: ProblemType,
    request_id: str,
    detail: str = "",
    *,
    errors: Iterable[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Build the response of a problem."""
    body = problem_document(kind, request_id, detail, errors)
    return Response(orjson.dumps(body), kind.status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def problem_document(
    kind: ProblemType, request_id: str, detail: str = "", errors: Iterable[FieldError] = ()
) -> dict[str, Any]:
    """Return a problem as JSON object."""
    return {
        "type": kind.uri,
        "title": kind.title,
        "status": kind.status,
        "detail": printable(detail),
        "errors": [
            {"pointer": item.pointer, "message": item.message, "expected": item.expected} for item in errors
        ],
        "request_id": request_id,
    }


def install(app: FastAPI) -> None:
    """Make the application answer every kind of failure with a problem document."""
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    for fault in (DriverError, DBAPIError, PoolTimeout):
        app.add_exception_handler(fault, _database)
    app.add_exception_handler(Exception, internal)


def _id(request: Request) -> str:
    return str(request.scope["noonmark.request_id"])


def _note(request: Request, kind: ProblemType, detail: str) -> None:
    """Save the reason for the audit entry of a failed change."""
    request.scope["noonmark.problem"] = detail or kind.title


def _answer(request: Request, error: ProblemError) -> Response:
    _note(request, error.kind, error.detail)
    return problem_response(
        error.kind, _id(request), error.detail, errors=error.errors, headers=error.headers
    )


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return _answer(request, error)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _answer(request, ProblemError.of_refused(error))


def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = joined_choices(error.errors())
    broken = any(item["type"] == "json_invalid" for item in found)
    in_query = any(item["loc"] and item["loc"][0] != "body" for item in found)
    model = _body_model(request)
    errors = [_field_error(item, model) for item in found]
    kind = MALFORMED if broken or in_query else INVALID
    return _answer(request, ProblemError.of_refused(Refused(errors), kind))


def _body_model(request: Request) -> type[Document]:
    """Return the model of the body of the request's route; one without fields if the body is any object."""
    body = getattr(request.scope.get("route"), "body_field", None)
    return (model_in(body.field_info.annotation) if body is not None else None) or Document


def _field_error(item: Mapping[str, Any], model: type[Document]) -> FieldError:
    source, *rest = item["loc"] or ("body",)
    if item["type"] == "json_invalid":
        reason = str(item.get("ctx", {}).get("error", "")).lower()
        return FieldError("", f"is not JSON: {reason} at character {rest[0] if rest else 0}")
    if source == "body":
        return field_error({**item, "loc": tuple(rest)}, model)
    # From the query, a header or the path: there is no document to point into.
    return validation_error(item)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, ProblemError):
        # Raised while the body was read, for example by the guard that counts its bytes; FastAPI wraps it.
        return _answer(request, error.__cause__)
    if isinstance(error.__cause__, Refused):
        return _refused(request, error.__cause__)
    if error.status_code == METHOD_NOT_ALLOWED.status:
        # The framework lists the methods of only one route.
        allowed = ", ".join(sorted(methods_of(request.app, request.url.path)))
        detail = f"{request.url.path} supports {allowed}, not {request.method}"
        return _answer(request, ProblemError(METHOD_NOT_ALLOWED, detail, headers={"Allow": allowed}))
    kind = _BY_STATUS.get(error.status_code, MALFORMED if error.status_code < 500 else INTERNAL)
    detail = str(error.detail)
    if kind is NOT_FOUND:
        detail = f"no route has the path {request.url.path}; ids of jobs, runs and backfills are UUIDs"
    return _answer(request, ProblemError(kind, detail, headers=error.headers))


def _gone(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the signature of a handler
    """Answer a client that disconnected: only the audit log and the request metrics use the response."""
    return _answer(request, ProblemError(MALFORMED, "the client disconnected before the end of the body"))


def _database(request: Request, error: Exception) -> Response:
    raw = error.orig if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else error
    if not isinstance(error, PoolTimeout) and classify(raw) is DbFault.PERMANENT:
        return internal(request, error)
    log_fault(_log, raw, request_id=_id(request))
    detail = "the database does not respond, or is too busy"
    if is_locked_out(raw):
        detail = "another session holds a lock that the request needs; try again"
    return _answer(request, ProblemError(UNAVAILABLE, detail, headers={"Retry-After": RETRY_SECONDS}))


def internal(request: Request, error: Exception) -> Response:
    """Log an internal error and answer without its details."""
    _log.error("request_failed", request_id=_id(request), path=request.url.path, exc_info=error)
    return _answer(request, ProblemError(INTERNAL, "the log of the API has the details"))
