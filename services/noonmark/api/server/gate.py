"""What every request passes before any route sees it: credentials, rate, size; and after it the audit.

It stands outside the router, so that a new route cannot be forgotten: what is not in the exact list of open
paths needs credentials, whether a route has the path or not.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonmark.api.http.problems import ProblemError, problem_response
from noonmark.api.http.rate_limits import Rates
from noonmark.api.requests.routing import Caller
from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.core.access.roles import Principal
from noonmark.core.ids import uuid7
from noonmark.schemas.problems.types import (
    INTERNAL,
    MALFORMED,
    TOO_LARGE,
    TOO_MANY_REQUESTS,
    UNAUTHENTICATED,
    UNAVAILABLE,
    UNSUPPORTED_MEDIA_TYPE,
)
from noonmark.service.database_errors import DbFault, classify
from noonmark.settings import Settings
from noonmark.store.access.audit import Outcome, write_entries
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import API_REQUEST_SECONDS, API_REQUESTS

OPEN_PATHS: Final = frozenset({"/healthz", "/openapi.json", "/asyncapi.json"})
"""Readable without credentials: exact paths, nothing below or beside them."""

COMPLETION: Final = re.compile(r"/v1/(?:runs|executions)/[0-9a-fA-F-]{36}/complete")
"""Reports of targets carry the one-time token of their run instead of a credential."""

REQUEST_ID: Final = "Noonmark-Request-Id"
BULK_PATH: Final = "/v1/jobs/bulk"
EVENTS_PATH: Final = "/v1/events"
_MOST_BULK: Final = 4

_REQUEST_ID: Final = REQUEST_ID.lower().encode()
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")
_NO_STORE: Final = (b"cache-control", b"no-store")
_GIVEN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BODIES: Final = frozenset({"POST", "PUT", "PATCH"})
_JSON: Final = frozenset({"application/json", "application/merge-patch+json"})
_FAILURES_PER_MINUTE: Final = 60
"""Requests without valid credentials that one address gets an answer to."""

_ANONYMOUS_PER_MINUTE: Final = 60
"""Failures of one address without a credential that are put on record."""

ANONYMOUS: Final = Principal("anonymous", "anonymous")

_log = get_logger()


class RequestAuthenticator(Protocol):
    """Who tells from a request's `Authorization` header whose it is."""

    def recall(self, authorization_header: str | None) -> Principal | None:
        """Return the principal if that is known without asking anybody."""

    def authenticate(self, authorization_header: str | None) -> Principal:
        """Return the principal; may ask the database or the issuer.

        Raises:
            AuthenticationError: the credentials are missing or not valid.
        """


class LocalUser:
    """For a process that serves only its own user: everybody is that user."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def recall(self, authorization_header: str | None) -> Principal | None:  # noqa: ARG002 - there are no credentials
        """Return the user."""
        return self._principal

    def authenticate(self, authorization_header: str | None) -> Principal:  # noqa: ARG002 - likewise
        """Return the user."""
        return self._principal


class RequestGuard:
    """The outermost application."""

    def __init__(self, app: ASGIApp, authenticator: RequestAuthenticator, settings: Settings) -> None:
        """Stand before an application."""
        self._app = app
        self._authenticator = authenticator
        self._settings = settings
        self._rates = Rates()
        self._failures = Rates()
        # What one credential may have open at a time, so that it takes up neither all memory nor all streams.
        self._most_open = {BULK_PATH: _MOST_BULK, EVENTS_PATH: -(-settings.api_event_streams * 3 // 4)}
        self._open: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; lifespan events pass untouched, websockets are refused."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers_of(scope)
        given = headers.get(REQUEST_ID.lower(), "")
        scope["noonmark.request_id"] = given if _GIVEN_ID.fullmatch(given) else str(uuid7())
        answer = _ResponseRecorder(scope, send)
        try:
            scope["noonmark.principal"] = await self._authenticate(scope, headers)
            # For answers that last longer than a credential may.
            scope["noonmark.again"] = partial(self._authenticate, scope, headers)
            self._check_rate(scope["noonmark.principal"])
            self._acquire_slot(scope)
            scope["noonmark.unfit"] = self._check_headers(scope, headers)
            received = self._bounded(scope, receive)
        except ProblemError as error:
            response = problem_response(
                error.kind, scope["noonmark.request_id"], error.detail, headers=error.headers
            )
            await response(scope, receive, answer)
        else:
            await self._serve(scope, received, answer)
        finally:
            self._release_slot(scope)
            answer.count()

    async def _serve(self, scope: Scope, receive: Receive, answer: _ResponseRecorder) -> None:
        try:
            await self._app(scope, receive, answer)
        except Exception:
            # What it has logged and answered with a 500, Starlette raises again, for servers to log it.
            if not answer.is_begun:
                raise

    async def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> Principal:
        path: str = scope["path"]
        if scope["method"] == "GET" and path in OPEN_PATHS:
            return ANONYMOUS
        if scope["method"] == "POST" and COMPLETION.fullmatch(path):
            return ANONYMOUS
        header = headers.get("authorization")
        known = self._authenticator.recall(header)
        if known is not None:
            return known
        address = scope["client"][0] if scope["client"] else ""
        try:
            return await to_thread.run_sync(self._authenticator.authenticate, header)
        except AuthenticationError as error:
            wait = self._failures.take(address, _FAILURES_PER_MINUTE)
            if wait:
                raise _too_many(wait, "this address has sent too many requests without valid ones") from None
            _log.info("request_unauthenticated", request_id=scope["noonmark.request_id"], reason=str(error))
            raise _not_accepted(error) from None
        except Exception as error:
            if classify(error) is DbFault.PERMANENT:
                _log.exception("credentials_not_checked", request_id=scope["noonmark.request_id"])
                raise ProblemError(INTERNAL, "the log of the API has the details") from error
            detail = "credentials cannot be checked: the database does not answer"
            raise ProblemError(UNAVAILABLE, detail, headers={"Retry-After": "2"}) from error

    def _check_rate(self, principal: Principal) -> None:
        per_minute = principal.rate_per_minute or self._settings.api_rate_per_minute
        # Nobody's requests are bounded by what they can reach: open paths, and tokens that work once.
        if principal is ANONYMOUS or per_minute == 0:
            return
        wait = self._rates.take(principal.id, per_minute)
        if wait:
            raise _too_many(wait, f"the credential may send {per_minute} requests a minute")

    def _acquire_slot(self, scope: Scope) -> None:
        path: str = scope["path"]
        most = self._most_open.get(path)
        if most is None:
            return
        place = scope["noonmark.principal"].id, path
        if self._open[place] >= most:
            raise _too_many(4, f"the credential has {most} requests of {path} open on this server")
        self._open[place] += 1
        scope["noonmark.room"] = place

    def _release_slot(self, scope: Scope) -> None:
        place = scope.get("noonmark.room")
        if place is not None:
            self._open[place] -= 1
            if not self._open[place]:
                del self._open[place]

    def _max_concurrent(self, scope: Scope) -> int:
        """Return how many bytes a body may have."""
        bulk = scope["path"] == BULK_PATH
        return self._settings.api_bulk_bytes if bulk else self._settings.max_submission_bytes

    def _check_headers(self, scope: Scope, headers: Mapping[str, str]) -> ProblemError | None:
        """Return what is wrong with a request whatever its route is; the route tells it, and is on record."""
        # No text of Postgres holds U+0000; whatever else a query holds is decoded, or replaced.
        if b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
            return ProblemError(MALFORMED, "the query holds U+0000, which nothing here is named by")
        most = self._max_concurrent(scope)
        length = headers.get("content-length")
        if length is not None and (not length.isdecimal() or int(length) > most):
            return ProblemError(TOO_LARGE, f"the body has {length[:30]} bytes; at most {most} are taken")
        has_body = scope["method"] in _BODIES and (
            length not in (None, "0") or "transfer-encoding" in headers
        )
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and media_type not in _JSON:
            return ProblemError(
                UNSUPPORTED_MEDIA_TYPE,
                f"the body's type is {media_type[:100] or 'not said'}: use application/json",
            )
        return None

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Count a body while it comes: it may not say how much it is."""
        most = self._max_concurrent(scope)
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise ProblemError(TOO_LARGE, f"the body has more than {most} bytes")
            return message

        return counted


class _ResponseRecorder:
    """Passes an answer on: its headers completed, and a change that failed put on record before."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        self._status = 500
        self.is_begun = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status, self.is_begun = message["status"], True
            headers = list(message["headers"])
            headers += ((_REQUEST_ID, self._scope["noonmark.request_id"].encode()), _NO_SNIFF)
            if all(name.lower() != _NO_STORE[0] for name, _ in headers):
                headers.append(_NO_STORE)
            message["headers"] = headers
            if self._status >= 400:
                await self._record()
        await self._send(message)

    def count(self) -> None:
        """Count the request; its route is named by the pattern, so that the series are bounded."""
        route = getattr(self._scope.get("route"), "path_format", "none")
        API_REQUESTS.labels(route, self._scope["method"] if route != "none" else "any", self._status).inc()
        API_REQUEST_SECONDS.labels(route).observe(time.perf_counter() - self._began)

    async def _record(self) -> None:
        caller: Caller | None = self._scope.get("noonmark.caller")
        if caller is None or not caller.action or self._scope.get("noonmark.audited"):
            return
        address = caller.address or ""
        if caller.principal is ANONYMOUS and caller.parts.guesses.take(
            f"record:{address}", _ANONYMOUS_PER_MINUTE
        ):
            # The log of audits is not theirs to fill.
            return
        await to_thread.run_sync(_write_failure, caller, self._scope, self._status)


def _headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by name in lower case; of one that came twice the first."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _write_failure(caller: Caller, scope: Scope, status: int) -> None:
    outcome = Outcome.DENIED if status == HTTPStatus.FORBIDDEN else Outcome.FAILED
    reason = str(scope.get("noonmark.problem", ""))[:1000]
    namespace = scope.get("noonmark.namespace")
    try:
        with caller.parts.database.changing(None) as session:
            write_entries(session.raw, [caller.entry(namespace, outcome, reason=reason)])
    except Exception as error:  # noqa: BLE001 - the caller gets the answer that there is
        # Where the database is away nothing was changed either; the log keeps who tried.
        _log.error(
            "audit_not_written",
            action=caller.action,
            actor=caller.principal.id,
            reason=reason,
            error=str(error),
        )


def _not_accepted(error: AuthenticationError) -> ProblemError:
    detail = f"{error}: {error.hint}"
    if error.reason is AuthenticationReason.ISSUER_AWAY:
        return ProblemError(UNAVAILABLE, detail, headers={"Retry-After": "2"})
    return ProblemError(UNAUTHENTICATED, detail, headers={"WWW-Authenticate": 'Bearer realm="noonmark"'})


def _too_many(wait: float, detail: str) -> ProblemError:
    seconds = str(max(1, round(wait + 0.5)))
    return ProblemError(TOO_MANY_REQUESTS, f"{detail}; wait {seconds} s", headers={"Retry-After": seconds})
