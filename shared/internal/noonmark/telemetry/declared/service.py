"""Metrics of every service."""

from __future__ import annotations

import platform
from importlib.metadata import version

from noonmark.telemetry.declared.declaring import Part

_declare = Part("every")

LOOP_ITERATIONS = _declare.counter(
    "loop_iterations_total",
    {"loop": ()},
    "Iterations of a loop of the service.",
    "Very high without work: the loop spins. Report it as a defect.",
)
LAST_PROGRESS = _declare.gauge(
    "last_progress_timestamp_seconds",
    ("loop",),
    "Unix time at which the loop last made progress.",
    "Not advancing: the loop hangs. `/livez` names it.",
)
BUILD_INFO = _declare.gauge(
    "build_info",
    ("version", "python"),
    "Always 1. The labels have the release and the version of Python.",
    "Different versions are expected only during a deployment.",
)
BUILD_INFO.labels(version("noonmark"), platform.python_version()).set(1)
