"""Counts what became of runs: in one place, so that every service counts alike."""

from __future__ import annotations

from collections.abc import Mapping

from noonmark.core.vocabulary import Lane, RunState, SkipReason
from noonmark.telemetry.metrics import DEAD_RUNS, RETRIES, RUNS_SETTLED, SKIPPED

UNKNOWN_KIND = "unknown"
"""Where the kind of a run's job is not at hand."""


def count_ends(ends: Mapping[tuple[str, int, str], int]) -> None:
    """Count ends of attempts: verdicts, deaths among them, and retries.

    Args:
        ends: runs by the state they have now, their lane and the kind of their job.
    """
    for (state, lane, kind), count in ends.items():
        if state == RunState.RETRYING:
            RETRIES.labels(kind).inc(count)
        elif state not in {RunState.RUNNING, RunState.QUEUED}:
            RUNS_SETTLED.labels(state, Lane(lane).label).inc(count)
            if state == RunState.DEAD:
                DEAD_RUNS.labels(kind).inc(count)


def count_skipped(reason: str, lane: int, count: int) -> None:
    """Count instants whose verdict is that they do not run."""
    RUNS_SETTLED.labels(RunState.SKIPPED, Lane(lane).label).inc(count)
    SKIPPED.labels(reason).inc(count)


def count_start_deadline(lane: int, count: int) -> None:
    """Count runs that were not started in time."""
    count_skipped(SkipReason.START_DEADLINE, lane, count)
