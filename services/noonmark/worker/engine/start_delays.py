"""Measures how long after their instants runs have started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import Lane, Origin
from noonmark.telemetry.metrics import START_DELAY, START_SLO, START_SLO_GOOD

_BACKFILL: Final = Origin.BACKFILL.value
_LANES: Final = tuple(Lane)


def measure_starts(attempts: Sequence[RunningAttempt], objectives: Sequence[float]) -> None:
    """Measure the delay between the instants and the starts of runs; only first starts count.

    Args:
        attempts: started together.
        objectives: seconds by lane within which a run must start.
    """
    by_lane: Sequence[list[RunningAttempt]] = [[] for _ in _LANES]
    for attempt in attempts:
        if attempt.run.attempt == 1 and attempt.run.losses == 0:
            by_lane[attempt.lane].append(attempt)
    for lane, first in zip(_LANES, by_lane, strict=True):
        if not first:
            continue
        delays = [(a.run.started_at - a.run.scheduled_for).total_seconds() for a in first]
        pairs = zip(first, delays, strict=True)
        traced = [(d, a.trace.context.trace_id) for a, d in pairs if a.trace is not None]
        START_DELAY.labels(lane.label).observe_many(delays, traced)
        # The instants of a backfill lie in the past from the beginning: no objective applies to them.
        owed = [d for a, d in zip(first, delays, strict=True) if a.run.origin != _BACKFILL]
        if owed:
            START_SLO.labels(lane.label).inc(len(owed))
            START_SLO_GOOD.labels(lane.label).inc(sum([delay <= objectives[lane] for delay in owed]))
