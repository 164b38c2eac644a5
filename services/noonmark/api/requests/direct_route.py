"""Serves fixed paths without FastAPI's router, which costs more than the work of the busiest route."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from noonmark.api.http.route_list import routes_of
from noonmark.api.requests.routing import Route


class DirectRoute(Route):
    """A route with a fixed path whose handler reads the request itself, without FastAPI's dependencies."""


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
            response = self._answer(request, error)
        await response(scope, receive, send)

    def _answer(self, request: Request, error: Exception) -> Response:
        handlers = self._app.exception_handlers
        for kind in type(error).__mro__:
            if kind in handlers:
                response = handlers[kind](request, error)
                assert isinstance(response, Response)
                return response
        raise error
