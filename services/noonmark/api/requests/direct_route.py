"""Serves fixed paths without FastAPI's router, which costs more than the work of the busiest route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.group_commit import TooBusyError
from noonmark.api.backend.job_creation import CreateRequest
from noonmark.api.http.problems import RETRY_SECONDS, ProblemError
from noonmark.api.http.replies import StoredResponse
from noonmark.api.http.route_list import routes_of
from noonmark.api.requests.routing import Route
from noonmark.schemas.problems.types import UNAVAILABLE


class DirectRoute(Route):
    """A route with a fixed path that creates a job, without FastAPI's dependencies, mostly without a task."""

    def read(self, request: Request, headers: Mapping[str, str], body: bytes) -> CreateRequest:
        """Authorise and read a request that has arrived, and has no query.

        Raises:
            ProblemError: if the caller may not, or a header is invalid.
            Refused: if the body is invalid.
        """
        raise NotImplementedError


def too_busy(error: TooBusyError) -> ProblemError:
    """Return the problem of a request for which the queue has no space."""
    return ProblemError(UNAVAILABLE, str(error), headers={"Retry-After": RETRY_SECONDS})


class DirectRouter:
    """Serves direct routes itself, and passes all other requests on to the application.

    The exception handlers of the application also handle the exceptions of direct routes.
    """

    def __init__(self, app: FastAPI) -> None:
        """Collect the direct routes of an application."""
        self._app: Final = app
        self._routes: Final = {
            where: (route, route.get_route_handler())
            for where, route in routes_of(app)
            if isinstance(route, DirectRoute)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        found = self._routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["app"], (scope["route"], handle) = self._app, found
        request = Request(scope, receive)
        try:
            response = await handle(request)
        except Exception as error:  # noqa: BLE001 - the application handles every exception
            response = self.answer(request, error)
        await response(scope, receive, send)

    def route_of(self, scope: Scope) -> DirectRoute | None:
        """Return the direct route of a request, if it has one."""
        found = self._routes.get((scope["method"], scope["path"]))
        return found[0] if found is not None else None

    def begin(
        self,
        route: DirectRoute,
        scope: Scope,
        headers: Mapping[str, str],
        body: bytes,
    ) -> CreateRequest:
        """Read a request of a direct route. Raises what the route's `read` raises."""
        scope["app"], scope["route"] = self._app, route
        return route.read(Request(scope), headers, body)

    def submit(self, item: CreateRequest, done: Callable[[StoredResponse | Exception], None]) -> None:
        """Create the job, and call `done` with the response, or with an error for `answer`."""
        parts: ApiContext = self._app.state.parts
        try:
            parts.creations.enqueue(item, done)
        except TooBusyError as error:
            done(too_busy(error))

    def answer(self, request: Request, error: Exception) -> Response:
        """Return the response of the application to an exception."""
        handlers = self._app.exception_handlers
        for kind in type(error).__mro__:
            if kind in handlers:
                response = handlers[kind](request, error)
                assert isinstance(response, Response)
                return response
        raise error
