"""Metrics of `noonmark verify`, which writes them to a file or pushes them, because it ends."""

from __future__ import annotations

from noonmark.telemetry.declared.declaring import Part

_verify = Part("verify")

VERIFY_FINDINGS = _verify.gauge(
    "verify_findings",
    ("rule",),
    "Broken promises that the last `noonmark verify` found, by rule; 0 if it found none.",
    "Above 0: run `noonmark verify`, and see docs/verify.md for the rule.",
)
VERIFY_RUNS = _verify.gauge(
    "verify_runs",
    (),
    "Runs that the last `noonmark verify` checked.",
    "0 although runs ended: check its `--since`, `--until` and `--namespace`.",
)
VERIFY_COMPLETED = _verify.gauge(
    "verify_completed_timestamp_seconds",
    (),
    "When the last `noonmark verify` completed, in seconds since 1970.",
    "Older than the period of its schedule: read the output of the last call.",
)
VERIFY_PERIOD = _verify.gauge(
    "verify_period_seconds",
    (),
    "How often `noonmark verify` is called, as its `--period` says; absent without it.",
    "Compare with the schedule that calls it.",
)
