"""Metrics of the API."""

from __future__ import annotations

from noonmark.telemetry.declared.declaring import Part

_declare = Part("api")

API_REQUESTS = _declare.counter(
    "api_requests_total",
    {"route": (), "method": (), "status": ()},
    "Requests answered by the API.",
    "Many 5xx: find them in the API's log by request id. Many 401 or 403: a client has wrong credentials.",
)
API_REQUEST_SECONDS = _declare.histogram(
    "api_request_seconds",
    {"route": ()},
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "Seconds from a request's headers to the end of its response.",
    "Compare with the load of Postgres. Raise NOONMARK_API_CONNECTIONS, or run more instances.",
)
