"""The guard of every request: checks credentials, rate and size before any route, and audits failures.

It is outside of the router, so that no new route can be forgotten: every path that is not in the exact list
of open paths requires credentials, even if no route has it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

from anyio import to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noonmark.api.backend.group_commit import MAX_WAITING
from noonmark.api.http.problems import ProblemError, problem_response
from noonmark.api.http.rate_limits import Rates
from noonmark.api.http.replies import StoredResponse
from noonmark.api.requests.direct_route import DirectRouter
from noonmark.api.server.headers import ONCE, headers_of, repeated
from noonmark.api.server.recorder import (
    ANONYMOUS,
    REQUEST_ID,
    DirectAnswer,
    ResponseRecorder,
    guarded,
)
from noonmark.api.server.request_counts import count_request
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
from noonmark.telemetry.logs import get_logger

OPEN_PATHS: Final = frozenset({"/healthz", "/openapi.json", "/asyncapi.json"})
"""Paths that need no credentials: exact paths, nothing below them."""

COMPLETION: Final = re.compile(r"/v1/(?:runs|executions)/[0-9a-fA-F-]{36}/complete")
"""Completion reports have the one-time token of their run instead of a credential."""

JOBS_PATH: Final = "/v1/jobs"
BULK_PATH: Final = "/v1/jobs/bulk"
EVENTS_PATH: Final = "/v1/events"
_MOST_BULK: Final = 4

_GIVEN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_BODIES: Final = frozenset({"POST", "PUT", "PATCH"})
_DOCUMENT: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = frozenset({_DOCUMENT, _MERGE_PATCH})
_FAILURES_PER_MINUTE: Final = 60
"""Most requests per minute without valid credentials that one address gets a response to."""

_log = get_logger()


class RequestAuthenticator(Protocol):
    """Finds the principal of a request from its `Authorization` header."""

    def recall(self, authorization_header: str | None) -> Principal | None:
        """Return the principal if it is cached."""

    def authenticate(self, authorization_header: str | None) -> Principal:
        """Return the principal; may query the database or the issuer.

        Raises:
            AuthenticationError: if the credentials are missing or invalid.
        """


class LocalUser:
    """For a process that serves only its own user: all requests are from that user."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def recall(self, authorization_header: str | None) -> Principal | None:  # noqa: ARG002 - there are no credentials
        """Return the user."""
        return self._principal

    def authenticate(self, authorization_header: str | None) -> Principal:  # noqa: ARG002 - there are no credentials
        """Return the user."""
        return self._principal


class RequestGuard:
    """The outermost application."""

    def __init__(
        self,
        app: ASGIApp,
        authenticator: RequestAuthenticator,
        settings: Settings,
        direct: DirectRouter | None = None,
    ) -> None:
        """Guard an application.

        Args:
            app: the application.
            authenticator: finds the principal of a request.
            settings: settings of the process.
            direct: the routes that `begin` serves, without the application.
        """
        self._app = app
        self._direct = direct
        self._authenticator = authenticator
        self._settings = settings
        self._traces = bool(settings.otlp_endpoint)
        self._rates = Rates()
        self._failures = Rates()
        # Most open requests of one credential, so that it cannot use up all memory or all streams.
        self._most_open = {
            BULK_PATH: _MOST_BULK,
            EVENTS_PATH: -(-settings.api_event_streams * 3 // 4),
            JOBS_PATH: MAX_WAITING * 3 // 4,
        }
        self._open: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; lifespan events are passed on, websockets are refused."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = headers_of(scope)
        scope["noonmark.request_id"] = _request_id(headers)
        answer = ResponseRecorder(scope, send, headers.get("traceparent") if self._traces else None)
        try:
            scope["noonmark.principal"] = await self._authenticate(scope, headers)
            # For responses that can outlast a credential.
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

    def begin(self, given: Scope, body: bytes, answer: DirectAnswer) -> bool:
        """Serve a request of a direct route that has arrived, without a task, if nothing is wrong with it.

        The checks are those of `__call__`. If one fails, the answer is False, and nothing has happened yet:
        `__call__` then repeats it, and responds.

        Args:
            given: the request.
            body: its complete body.
            answer: sends the response.
        """
        began = time.perf_counter()
        route = self._direct.route_of(given) if self._direct is not None else None
        if self._direct is None or route is None or given["query_string"]:
            return False
        scope = dict(given)
        headers = headers_of(scope)
        principal = self._authenticator.recall(headers.get("authorization"))
        if (
            principal is None
            or len(headers) < len(scope["headers"])
            or len(body) > self._max_body_bytes(scope)
        ):
            return False
        scope["noonmark.request_id"] = _request_id(headers)
        scope["noonmark.principal"] = principal
        try:
            if self._check_headers(scope, headers) is not None or len(body) > self._max_body_bytes(scope):
                return False
            item = self._direct.begin(route, scope, headers, body)
            self._acquire_slot(scope)
            self._check_rate(principal)
        except Exception:  # noqa: BLE001 - it happens again in `__call__`, which reports it
            self._release_slot(scope)
            return False
        traceparent = headers.get("traceparent") if self._traces else None
        self._direct.submit(item, partial(self._finish, scope, answer, began, traceparent))
        return True

    def _finish(
        self,
        scope: Scope,
        answer: DirectAnswer,
        began: float,
        traceparent: str | None,
        reply: StoredResponse | Exception,
    ) -> None:
        """Respond to a request of a direct route."""
        if isinstance(reply, Exception):
            answer.run(partial(self._fail, scope, began, traceparent, reply))
            return
        self._release_slot(scope)
        headers, body = reply.encoded()
        answer.respond(reply.status, guarded(headers, scope), body)
        count_request(scope, reply.status, began, traceparent)

    async def _fail(  # noqa: PLR0917 - partial of an application
        self,
        scope: Scope,
        began: float,
        traceparent: str | None,
        error: Exception,
        _given: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Respond that a request of a direct route has failed."""
        assert self._direct is not None
        answer = ResponseRecorder(scope, send, traceparent, began)
        try:
            response = self._direct.answer(Request(scope, receive), error)
            await response(scope, receive, answer)
        finally:
            self._release_slot(scope)
            answer.count()

    async def _serve(self, scope: Scope, receive: Receive, answer: ResponseRecorder) -> None:
        try:
            await self._app(scope, receive, answer)
        except Exception:
            # Starlette logs an exception, responds 500, and raises it again for the server to log it.
            if not answer.is_begun:
                raise

    async def _authenticate(self, scope: Scope, headers: Mapping[str, str]) -> Principal:
        path: str = scope["path"]
        if scope["method"] in _SAFE and path in OPEN_PATHS:
            return ANONYMOUS
        if scope["method"] == "POST" and COMPLETION.fullmatch(path):
            return ANONYMOUS
        if len(headers) < len(scope["headers"]) and repeated(scope, (b"authorization",)):
            raise ProblemError(MALFORMED, "there are several Authorization headers: send one")
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
                raise _too_many(
                    wait, "this address has sent too many requests without valid credentials"
                ) from None
            _log.info("request_unauthenticated", request_id=scope["noonmark.request_id"], reason=str(error))
            raise _not_accepted(error) from None
        except Exception as error:
            if classify(error) is DbFault.PERMANENT:
                _log.exception("credentials_not_checked", request_id=scope["noonmark.request_id"])
                raise ProblemError(INTERNAL, "the log of the API has the details") from error
            detail = "credentials cannot be checked: the database does not respond"
            raise ProblemError(UNAVAILABLE, detail, headers={"Retry-After": "2"}) from error

    def _check_rate(self, principal: Principal) -> None:
        per_minute = principal.rate_per_minute or self._settings.api_rate_per_minute
        # Anonymous requests are limited by what they can reach: open paths, and one-time tokens.
        if principal is ANONYMOUS or per_minute == 0:
            return
        wait = self._rates.take(principal.id, per_minute)
        if wait:
            raise _too_many(wait, f"the credential can send {per_minute} requests per minute")

    def _acquire_slot(self, scope: Scope) -> None:
        path: str = scope["path"]
        most = self._most_open.get(path)
        if most is None:
            return
        slot = scope["noonmark.principal"].id, path
        if self._open[slot] >= most:
            raise _too_many(4, f"the credential has {most} open requests of {path} on this server")
        self._open[slot] += 1
        scope["noonmark.slot"] = slot

    def _release_slot(self, scope: Scope) -> None:
        slot = scope.get("noonmark.slot")
        if slot is not None:
            self._open[slot] -= 1
            if not self._open[slot]:
                del self._open[slot]

    def _max_body_bytes(self, scope: Scope) -> int:
        """Return the most bytes that a body can have."""
        bulk = scope["path"] == BULK_PATH
        return self._settings.api_bulk_bytes if bulk else self._settings.max_submission_bytes

    def _check_headers(self, scope: Scope, headers: Mapping[str, str]) -> ProblemError | None:
        """Return the problem of a request, if any. The route raises it, so that it is audited."""
        # Postgres text cannot contain U+0000; all other bytes of a query are decoded or replaced.
        if b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
            return ProblemError(MALFORMED, "the query contains U+0000, which no value can contain")
        if len(headers) < len(scope["headers"]) and (twice := repeated(scope, ONCE)):
            return ProblemError(MALFORMED, f"there are several {twice.title()} headers: send one")
        coding = headers.get("content-encoding", "identity").strip().lower()
        if scope["method"] in _BODIES and coding != "identity":
            return ProblemError(
                UNSUPPORTED_MEDIA_TYPE,
                f"the Content-Encoding of the body is {coding[:100]}: send it without one",
                headers={"Accept-Encoding": "identity"},
            )
        most = self._max_body_bytes(scope)
        length = headers.get("content-length")
        if length is not None and (not length.isdecimal() or int(length) > most):
            return ProblemError(TOO_LARGE, f"the body has {length[:30]} bytes; at most {most} are allowed")
        has_body = scope["method"] in _BODIES and (
            length not in (None, "0") or "transfer-encoding" in headers
        )
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and media_type not in _JSON:
            use = f"{_MERGE_PATCH} or {_DOCUMENT}" if scope["method"] == "PATCH" else _DOCUMENT
            given = media_type[:100] or "missing"
            return ProblemError(UNSUPPORTED_MEDIA_TYPE, f"the Content-Type of the body is {given}: use {use}")
        return None

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Count the bytes of a body while it arrives; its length may be unknown."""
        most = self._max_body_bytes(scope)
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise ProblemError(TOO_LARGE, f"the body has more than {most} bytes")
            return message

        return counted


def _request_id(headers: Mapping[str, str]) -> str:
    """Return the id of a request: the client's, if it is valid."""
    given = headers.get(REQUEST_ID.lower(), "")
    return given if _GIVEN_ID.fullmatch(given) else str(uuid7())


def _not_accepted(error: AuthenticationError) -> ProblemError:
    detail = f"{error}: {error.hint}"
    if error.reason is AuthenticationReason.ISSUER_AWAY:
        return ProblemError(UNAVAILABLE, detail, headers={"Retry-After": "2"})
    return ProblemError(UNAUTHENTICATED, detail, headers={"WWW-Authenticate": 'Bearer realm="noonmark"'})


def _too_many(wait: float, detail: str) -> ProblemError:
    seconds = str(max(1, round(wait + 0.5)))
    return ProblemError(TOO_MANY_REQUESTS, f"{detail}; wait {seconds} s", headers={"Retry-After": seconds})
