"""Counts outcomes of runs in the metrics, in the same way for every service."""

from __future__ import annotations

from collections.abc import Mapping

from noonmark.core.states import Lane, RunState, SkipReason
from noonmark.telemetry.declared.labels import UNKNOWN_KIND
from noonmark.telemetry.metrics import DEAD_RUNS, RETRIES, RUNS_SETTLED, SKIPPED

__all__ = ["UNKNOWN_KIND", "count_ends", "count_skipped", "count_start_deadline"]


def count_ends(ends: Mapping[tuple[str, int, str], int], *, of_tasks: bool = False) -> None:
    """Count the outcomes of attempts: final states, including dead letters, and retries.

    Args:
        ends: numbers of runs by their new state, their lane and the kind of their job.
        of_tasks: they are runs of tasks, which have no dead letters.
    """
    for (state, lane, kind), count in ends.items():
        if state == RunState.RETRYING:
            RETRIES.labels(kind).inc(count)
        elif state not in {RunState.RUNNING, RunState.QUEUED}:
            RUNS_SETTLED.labels(state, Lane(lane).label).inc(count)
            if state == RunState.DEAD and not of_tasks:
                DEAD_RUNS.labels(kind).inc(count)


def count_skipped(reason: str, lane: int, count: int) -> None:
    """Count instants that are skipped."""
    RUNS_SETTLED.labels(RunState.SKIPPED, Lane(lane).label).inc(count)
    SKIPPED.labels(reason).inc(count)


def count_start_deadline(lane: int, count: int) -> None:
    """Count runs that missed their start deadline."""
    count_skipped(SkipReason.START_DEADLINE, lane, count)
