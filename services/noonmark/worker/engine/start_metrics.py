"""What is measured of runs that were just started."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.vocabulary import Lane, Origin
from noonmark.telemetry.metrics import START_DELAY, START_SLO, START_SLO_GOOD


def measure_starts(attempts: Sequence[RunningAttempt], objectives: Sequence[float]) -> None:
    """Count how long after their instants runs were started; first starts alone say something about that.

    Args:
        attempts: started together.
        objectives: seconds by lane within which a run is to start.
    """
    delays: dict[Lane, list[float]] = {}
    owed: dict[Lane, list[float]] = {}
    for attempt in attempts:
        run = attempt.run
        if run.attempt == 1 and run.losses == 0:
            delay = (run.started_at - run.scheduled_for).total_seconds()
            delays.setdefault(attempt.lane, []).append(delay)
            # The instants of a backfill are past from the beginning: nobody was promised a start then.
            if run.origin != Origin.BACKFILL:
                owed.setdefault(attempt.lane, []).append(delay)
    for lane, seconds in delays.items():
        START_DELAY.labels(lane.label).observe_many(seconds)
    for lane, seconds in owed.items():
        START_SLO.labels(lane.label).inc(len(seconds))
        START_SLO_GOOD.labels(lane.label).inc(sum(delay <= objectives[lane] for delay in seconds))
