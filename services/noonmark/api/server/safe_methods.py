"""The safe methods of RFC 9110 for every path: HEAD wherever GET is, OPTIONS, and conditional reads.

Outside of the routes, so that no route can forget it: a route serves GET, and names its version in `ETag`.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from noonmark.api.http.etags import Preconditions, is_listed
from noonmark.api.http.problems import ProblemError, problem_response
from noonmark.api.http.route_list import methods_of, routes_of

_KEPT: Final = frozenset({b"etag", b"cache-control", b"content-location", b"date", b"expires", b"vary"})
"""Headers that a 304 repeats (RFC 9110, 15.4.5)."""


class SafeMethods:
    """Serves HEAD by the route of GET, and OPTIONS; answers 304 and 412 to conditional reads."""

    def __init__(self, app: ASGIApp, routes: FastAPI) -> None:
        """Wrap an application.

        Args:
            app: serves all other requests.
            routes: has the routes, for `Allow`.
        """
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        method = scope["method"]
        if method == "OPTIONS" and (allowed := self._allowed(scope["path"])):
            await Response(status_code=204, headers={"Allow": allowed})(scope, receive, send)
            return
        if method not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        answer = _ReadResponse(scope, receive, send)
        scope["method"] = "GET"
        try:
            await self._app(scope, receive, answer)
        except _NothingMoreError:
            return
        finally:
            scope["method"] = method

    def _allowed(self, path: str) -> str:
        if path == "*":
            return ", ".join(
                sorted({method for (method, _), _ in routes_of(self._routes)} | {"HEAD", "OPTIONS"})
            )
        return ", ".join(sorted(methods_of(self._routes, path)))


class _NothingMoreError(OSError):
    """Ends a response whose rest is not sent: servers of streams stop at an error of this kind."""


class _ReadResponse:
    """Passes the response of a read on: without a body for HEAD, as 304 or 412 by the preconditions."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, str] = {name: value.decode("latin-1") for name, value in scope["headers"]}
        self._scope = scope
        self._receive = receive
        self._send = send
        self._method = scope["method"]
        self._match = headers.get(b"if-match")
        self._none_match = headers.get(b"if-none-match")
        self._is_over = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if self._is_over:
            if message.get("more_body"):
                raise _NothingMoreError
            return
        if message["type"] != "http.response.start":
            await self._send(message)
            return
        # The server decides by the method whether it writes a body.
        self._scope["method"] = self._method
        etag = next((value for name, value in message["headers"] if name.lower() == b"etag"), None)
        if message["status"] == 200 and etag is not None:
            try:
                Preconditions(self._match).check(etag.decode())
                unchanged = self._none_match is not None and is_listed(etag.decode(), self._none_match)
            except ProblemError as error:
                self._is_over = True
                refused = problem_response(
                    error.kind, self._scope["noonmark.request_id"], error.detail, headers=error.headers
                )
                await refused(self._scope, self._receive, self._send)
                return
            if unchanged:
                headers = [(name, value) for name, value in message["headers"] if name.lower() in _KEPT]
                message = {**message, "status": 304, "headers": headers}
        if self._method == "HEAD" or message["status"] == 304:
            self._is_over = True
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await self._send(message)
