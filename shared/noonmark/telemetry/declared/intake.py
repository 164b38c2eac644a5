"""Metrics of intake."""

from __future__ import annotations

from noonmark.telemetry.declaring import Part

_declare = Part("intake")

SUBMISSIONS = _declare.counter(
    "submissions_total",
    ("type", "result"),
    "Submission events taken in, by what became of them.",
    "Many `stale` or `duplicate`: a publisher sends again; it is harmless.",
)
REJECTIONS = _declare.counter(
    "rejections_total",
    ("reason",),
    "Submission events refused. Each has a row in `rejections` and an event on the rejections topic.",
    "Read `noonmark rejection list` and tell the publisher.",
)
