"""Builds the application: all routes, behind the request guard."""

from __future__ import annotations

from functools import cache

from fastapi import FastAPI
from starlette.routing import BaseRoute

from noonmark.api.backend.context import ApiContext
from noonmark.api.http import problems
from noonmark.api.openapi.document import operation_id
from noonmark.api.requests.direct_route import DirectRouter
from noonmark.api.routes import (
    alerts,
    audit,
    calendars,
    documents,
    ids,
    keys,
    limits,
    me,
    namespaces,
    rejections,
    why,
    workers,
)
from noonmark.api.routes.jobs import backfills, jobs, previews
from noonmark.api.routes.jobs import control as job_control
from noonmark.api.routes.jobs import history as job_history
from noonmark.api.routes.jobs import statistics as job_statistics
from noonmark.api.routes.runs import cancel as run_cancel
from noonmark.api.routes.runs import control as run_control
from noonmark.api.routes.runs import dead_letters, events, runs
from noonmark.api.routes.runs import holds as run_holds
from noonmark.api.routes.runs import tasks as run_tasks
from noonmark.api.server.gate import RequestAuthenticator, RequestGuard
from noonmark.api.server.request_counts import start_at_zero
from noonmark.api.server.safe_methods import SafeMethods

ROUTERS = (
    jobs.router,
    job_control.router,
    job_history.router,
    job_statistics.router,
    previews.router,
    backfills.router,
    documents.open_router,
    documents.router,
    why.router,
    alerts.router,
    audit.router,
    ids.router,
    keys.router,
    me.router,
    runs.router,
    run_tasks.router,
    run_control.router,
    run_cancel.router,
    run_holds.router,
    events.router,
    dead_letters.router,
    rejections.router,
    workers.router,
    workers.pools_router,
    workers.lanes_router,
    calendars.router,
    limits.router,
    namespaces.router,
)
"""Routers of all resources. Only the modules in this list are served."""


def build_api(parts: ApiContext | None = None) -> FastAPI:
    """Build the routes without the request guard. The OpenAPI document needs no parts."""
    app = _without_routes()
    app.state.parts = parts
    problems.install(app)
    app.router.routes.extend(_routes())
    return app


def _without_routes() -> FastAPI:
    return FastAPI(
        title="noonmark",
        version="1",
        description="Event-driven job scheduler: one recorded verdict per due instant.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
    )


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """The routes, which all applications of a process share.

    FastAPI reads the parameters of a route when a request first looks for one. That takes longer than
    hundreds of requests, and a process of the command line or of tests can build many applications.
    """
    app = _without_routes()
    for router in ROUTERS:
        app.include_router(router)
    return tuple(app.router.routes)


def build_app(parts: ApiContext, authenticator: RequestAuthenticator) -> RequestGuard:
    """Build the served application.

    Args:
        parts: shared parts of the process.
        authenticator: finds the principal of a request.
    """
    api = build_api(parts)
    start_at_zero(api)
    router = DirectRouter(api)
    return RequestGuard(SafeMethods(router, api), authenticator, parts.settings, router)
