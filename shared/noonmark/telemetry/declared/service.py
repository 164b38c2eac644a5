"""Metrics of every service."""

from __future__ import annotations

import platform
from importlib.metadata import version

from noonmark.telemetry.declaring import Part

_declare = Part("every")

LOOP_ITERATIONS = _declare.counter(
    "loop_iterations_total",
    ("loop",),
    "Rounds made by a loop of the service.",
    "Very high with nothing to do: a loop that spins; report it.",
)
LAST_PROGRESS = _declare.gauge(
    "last_progress_timestamp_seconds",
    ("loop",),
    "Unix time at which the loop last made progress.",
    "Standing still: the loop hangs; `/livez` names it.",
)
BUILD_INFO = _declare.gauge(
    "build_info",
    ("version", "python"),
    "Always 1; the labels say what runs.",
    "Different versions side by side are fine during a deployment only.",
)
BUILD_INFO.labels(version("noonmark"), platform.python_version()).set(1)
