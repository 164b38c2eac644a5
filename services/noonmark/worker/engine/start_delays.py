"""Measures how long after their instants runs have started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import Lane, Origin
from noonmark.telemetry.metrics import START_DELAY, START_SLO, START_SLO_GOOD

_BACKFILL: Final = Origin.BACKFILL.value
_LANES: Final = tuple(Lane)

_Delays: TypeAlias = tuple[list[float], list[float], list[tuple[float, str]]]
"""Delays in seconds: of runs that must start in time, of backfilled ones, and of traced ones with the trace.

The instants of a backfill lie in the past from the beginning: no objective applies to them.
"""


def measure_starts(attempts: Sequence[RunningAttempt], objectives: Sequence[float]) -> None:
    """Measure the delay between the instants and the starts of runs; only first starts count.

    Args:
        attempts: started together.
        objectives: seconds by lane within which a run must start.
    """
    by_lane: Sequence[_Delays] = [([], [], []) for _ in _LANES]
    started_at = scheduled_for = None
    delay = 0.0
    for attempt in attempts:
        run = attempt.run
        if run.attempt != 1 or run.losses:
            continue
        due_at = run.due_at or run.scheduled_for
        if due_at != scheduled_for or run.started_at != started_at:
            # Runs that start together often have one instant.
            started_at, scheduled_for = run.started_at, due_at
            delay = (started_at - scheduled_for).total_seconds()
        owed, backfilled, traced = by_lane[attempt.lane]
        (owed if run.origin != _BACKFILL else backfilled).append(delay)
        if attempt.trace is not None:
            traced.append((delay, attempt.trace.context.trace_id))
    for lane, (owed, backfilled, traced) in zip(_LANES, by_lane, strict=True):
        if owed or backfilled:
            START_DELAY.labels(lane.label).observe_many(owed + backfilled, traced)
        if owed:
            START_SLO.labels(lane.label).inc(len(owed))
            START_SLO_GOOD.labels(lane.label).inc(sum([delay <= objectives[lane] for delay in owed]))
