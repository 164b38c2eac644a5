"""The application: every route behind the gate."""

from __future__ import annotations

from fastapi import FastAPI

from noonmark.api import problem
from noonmark.api.direct import DirectRouter
from noonmark.api.gate import RequestAuthenticator, RequestGuard
from noonmark.api.openapi import operation_id
from noonmark.api.parts import ApiContext
from noonmark.api.routes import (
    alerts,
    audit,
    backfills,
    calendars,
    dead_letters,
    documents,
    events,
    job_history,
    job_orders,
    job_stats,
    jobs,
    keys,
    limits,
    me,
    namespaces,
    previews,
    rejections,
    run_cancels,
    run_orders,
    runs,
    why,
    workers,
)

ROUTERS = (
    jobs.router,
    job_orders.router,
    job_history.router,
    job_stats.router,
    previews.router,
    backfills.router,
    documents.open_router,
    documents.router,
    why.router,
    alerts.router,
    audit.router,
    keys.router,
    me.router,
    runs.router,
    run_orders.router,
    run_cancels.router,
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
"""Of every resource; a route module that is not here is not served."""


def build_api(parts: ApiContext | None = None) -> FastAPI:
    """Make the routes, without the gate before them; they can be described without parts, too."""
    app = FastAPI(
        title="noonmark",
        version="1",
        description="Event-driven job scheduler: one recorded verdict per due instant.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=operation_id,
    )
    app.state.parts = parts
    problem.install(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


def build_app(parts: ApiContext, authenticator: RequestAuthenticator) -> RequestGuard:
    """Make what is served.

    Args:
        parts: of the process.
        authenticator: tells whose a request is.
    """
    return RequestGuard(DirectRouter(build_api(parts)), authenticator, parts.settings)
