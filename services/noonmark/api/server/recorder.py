"""The response to a request: adds the headers of every response, counts it, and audits failed changes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from uuid import UUID

from anyio import to_thread
from starlette.types import ASGIApp, Scope, Send

from noonmark.api.backend.database import Session
from noonmark.api.requests.routing import Caller
from noonmark.api.server.request_counts import count_request
from noonmark.core.access.roles import Principal
from noonmark.store.access.audit import Outcome, write_entries
from noonmark.store.views import lookups
from noonmark.store.views.backfills import show_backfill
from noonmark.telemetry.logs import get_logger

REQUEST_ID: Final = "Noonmark-Request-Id"

ANONYMOUS: Final = Principal("anonymous", "anonymous")

Headers = Iterable[tuple[bytes, bytes]]

_REQUEST_ID: Final = REQUEST_ID.lower().encode()
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")
_NO_STORE: Final = (b"cache-control", b"no-store")

_ANONYMOUS_PER_MINUTE: Final = 60
"""Most failed requests per minute without a credential that are audited for one address."""

_log = get_logger()


class DirectAnswer(Protocol):
    """Sends the response to a request that `RequestGuard.begin` serves."""

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete response."""

    def run(self, app: ASGIApp) -> None:
        """Let an application respond, in a task."""


def guarded(headers: Headers, scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with those that every response has."""
    result = [*headers, (_REQUEST_ID, scope["noonmark.request_id"].encode()), _NO_SNIFF]
    if all(name.lower() != _NO_STORE[0] for name, _ in result):
        result.append(_NO_STORE)
    return result


class ResponseRecorder:
    """Passes a response on, adds headers, and audits a failed change before that."""

    def __init__(self, scope: Scope, send: Send, traceparent: str | None, began: float | None = None) -> None:
        """Record the response to a request.

        Args:
            scope: of the request.
            send: sends the response.
            traceparent: as the client sent it, if tracing is on.
            began: when the request was received, in seconds of `time.perf_counter`; None: now.
        """
        self._scope = scope
        self._send = send
        self._traceparent = traceparent
        self._began = time.perf_counter() if began is None else began
        self._status = 500
        self.is_begun = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send one message of the response."""
        if message["type"] == "http.response.start":
            self._status, self.is_begun = message["status"], True
            message["headers"] = guarded(message["headers"], self._scope)
            if self._status >= 400:
                await self._record()
        await self._send(message)

    def count(self) -> None:
        """Count the request."""
        count_request(self._scope, self._status, self._began, self._traceparent)

    async def _record(self) -> None:
        caller: Caller | None = self._scope.get("noonmark.caller")
        if caller is None or not caller.action or self._scope.get("noonmark.audited"):
            return
        address = caller.address or ""
        if caller.principal is ANONYMOUS and caller.parts.guesses.take(
            f"record:{address}", _ANONYMOUS_PER_MINUTE
        ):
            # Unauthenticated callers must not fill the audit log.
            return
        await to_thread.run_sync(_write_failure, caller, self._scope, self._status)


def _write_failure(caller: Caller, scope: Scope, status: int) -> None:
    outcome = Outcome.DENIED if status == HTTPStatus.FORBIDDEN else Outcome.FAILED
    reason = str(scope.get("noonmark.problem", ""))[:1000]
    try:
        with caller.parts.database.changing(None) as session:
            namespace = scope.get("noonmark.namespace") or _namespace_of_path(session, scope)
            write_entries(session.raw, [caller.entry(namespace, outcome, reason=reason)])
    except Exception as error:  # noqa: BLE001 - the caller gets the response anyway
        # If the database is away, nothing was changed either; the log records who tried.
        _log.error(
            "audit_not_written",
            action=caller.action,
            actor=caller.principal.id,
            reason=reason,
            error=str(error),
        )


def _namespace_of_path(session: Session, scope: Scope) -> str | None:
    """Return the namespace of the object that a path names, for requests that failed before it was read."""
    ids: Mapping[str, Any] = scope.get("path_params", {})
    if (job_id := _uuid(ids.get("job_id"))) is not None:
        return lookups.namespace_of_job(session.sql, job_id)
    if (run_id := _uuid(ids.get("run_id"))) is not None:
        return lookups.namespace_of_run(session.sql, run_id)
    if (backfill_id := _uuid(ids.get("backfill_id"))) is not None:
        found = show_backfill(session.sql, backfill_id)
        return found["namespace"] if found is not None else None
    return None


def _uuid(value: object) -> UUID | None:
    """Return an id of a path that was not parsed yet; None if it is missing or no id."""
    try:
        return UUID(str(value))
    except ValueError:
        return None
