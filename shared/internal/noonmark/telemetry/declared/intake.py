"""Metrics of intake."""

from __future__ import annotations

from noonmark.telemetry.declared import labels
from noonmark.telemetry.declared.declaring import Part

_declare = Part("intake")

SUBMISSIONS = _declare.counter(
    "submissions_total",
    {"type": labels.SUBMISSION_TYPES, "result": labels.SUBMISSION_RESULTS},
    "Ingested submission events, by result.",
    "Many `stale` or `duplicate`: a publisher sends events again. This is harmless.",
)
REJECTIONS = _declare.counter(
    "rejections_total",
    {"reason": labels.REJECTION_REASONS},
    "Rejected submission events. Each has a row in `rejections` and an event on the rejections topic.",
    "Read `noonmark rejection list` and inform the publisher.",
)
