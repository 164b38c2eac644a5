"""Counts requests by route, method and status, and measures them."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI
from starlette.types import Scope

from noonmark.api.http.route_list import routes_of
from noonmark.core.monitoring.trace_context import parse_traceparent
from noonmark.telemetry.declared.instruments import exemplar_of
from noonmark.telemetry.metrics import API_REQUEST_SECONDS, API_REQUESTS

_NO_ROUTE: Final = "none"
_ERRORS: Final = (HTTPStatus.INTERNAL_SERVER_ERROR.value, HTTPStatus.SERVICE_UNAVAILABLE.value)
"""The statuses that alerts count, apart from that of success."""


def start_at_zero(app: FastAPI) -> None:
    """Export the counts of all routes from the start: `rate` ignores the first value of a new series."""
    for (method, _), route in routes_of(app):
        for status in (route.status_code or HTTPStatus.OK.value, *_ERRORS):
            API_REQUESTS.labels(route.path_format, method, status)


def count_request(scope: Scope, status: int, began: float, traceparent: str | None) -> None:
    """Count a request; its label is the pattern of the route, which bounds the number of series.

    Args:
        scope: of the request, after it was routed.
        status: HTTP status of the response.
        began: when the request was received, in seconds of `time.perf_counter`.
        traceparent: as the client sent it, if tracing is on.
    """
    route = getattr(scope.get("route"), "path_format", _NO_ROUTE)
    API_REQUESTS.labels(route, scope["method"] if route != _NO_ROUTE else "any", status).inc()
    trace = parse_traceparent(traceparent) if traceparent else None
    API_REQUEST_SECONDS.labels(route).observe(
        time.perf_counter() - began,
        exemplar_of(trace.trace_id) if trace is not None and trace.sampled else None,
    )
