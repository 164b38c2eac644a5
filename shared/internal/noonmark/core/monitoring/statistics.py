"""Statistics of the observer over outcomes: figures per job, and counts per time window.

Pure, and independent of how the stream is cut into batches: only the outcomes and their order matter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from noonmark.core.fingerprints import fingerprint
from noonmark.core.monitoring.alerts import Streak, usual
from noonmark.core.states import RunState

WINDOW_SECONDS: Final = 300

BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds of the buckets of durations, in seconds; one more bucket holds what is longer."""

ONE_TIME: Final = UUID(int=0)
"""Represents all one-time jobs of a kind, which have one run and no history."""

UNKNOWN_KIND: Final = "unknown"
"""For runs whose job was deleted."""

_LONGEST_ERROR: Final = 1000
_FAILED: Final = (RunState.RETRYING, RunState.DEAD)


class JobFacts(NamedTuple):
    """Facts about a job that its outcomes do not have."""

    kind: str
    recurring: bool


GONE: Final = JobFacts(UNKNOWN_KIND, recurring=False)


class Outcome(NamedTuple):
    """One outcome of a lifecycle event; `at` is when it ended, or else when it was announced."""

    run_id: UUID
    job_id: UUID
    namespace: str
    state: str
    reason: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    at: datetime

    @property
    def seconds(self) -> float | None:
        """The duration of the attempt, if both its ends are known."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


@dataclass(slots=True)
class JobStats:
    """Figures of a recurring job; the columns of `job_stats`."""

    job_id: UUID
    namespace: str
    kind: str
    runs: int = 0
    usual_seconds: float | None = None
    failures: int = 0
    failure_cause: str | None = None
    last_error: str | None = None
    last_run_id: UUID | None = None
    last_failure_at: datetime | None = None
    last_success_at: datetime | None = None

    def add(self, outcome: Outcome) -> None:
        """Add the next outcome of the job."""
        if outcome.state == RunState.SUCCEEDED:
            self.failures, self.failure_cause = 0, None
            self.last_success_at = outcome.at
            if (seconds := outcome.seconds) is not None:
                self.usual_seconds = usual(self.usual_seconds, seconds)
                self.runs += 1
        elif failed(outcome):
            cause = fingerprint(self.kind, outcome.error, outcome.reason or "")
            streak = Streak(self.failures, self.failure_cause).failed(cause)
            self.failures, self.failure_cause = streak.length, streak.cause
            self.last_error = (outcome.error or outcome.reason or "")[:_LONGEST_ERROR]
            self.last_run_id, self.last_failure_at = outcome.run_id, outcome.at


class WindowKey(NamedTuple):
    """The key of the counts that an outcome belongs to."""

    window_at: datetime
    job_id: UUID
    namespace: str
    kind: str


@dataclass(slots=True)
class Counts:
    """Outcomes of a window. `failed` counts attempts, those that were the last of dead runs among them."""

    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    skipped: int = 0
    other: int = 0
    seconds_buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        if outcome.state == RunState.SUCCEEDED:
            self.succeeded += 1
            if (seconds := outcome.seconds) is not None:
                self.seconds_buckets[bisect_left(BOUNDS, seconds)] += 1
        elif failed(outcome):
            self.failed += 1
            self.dead += outcome.state == RunState.DEAD
        elif outcome.state == RunState.SKIPPED:
            self.skipped += 1
        else:
            self.other += 1


def failed(outcome: Outcome) -> bool:
    """Return whether an attempt failed: it is retried after an error, or the run died of it."""
    return outcome.state == RunState.DEAD or (outcome.state in _FAILED and bool(outcome.error))


def fold(
    outcomes: Iterable[Outcome], jobs: Mapping[UUID, JobFacts], stats: dict[UUID, JobStats]
) -> dict[WindowKey, Counts]:
    """Add outcomes, in order, to the stats of their jobs, and count them.

    Args:
        outcomes: the oldest of each job first.
        jobs: facts about the known jobs.
        stats: of recurring jobs; changed in place, with new entries for new jobs.

    Returns:
        The numbers to add to the counts of windows.
    """
    counts: dict[WindowKey, Counts] = {}
    for outcome in outcomes:
        facts = jobs.get(outcome.job_id, GONE)
        key = WindowKey(
            window_of(outcome.at),
            outcome.job_id if facts.recurring else ONE_TIME,
            outcome.namespace,
            facts.kind,
        )
        if key not in counts:
            counts[key] = Counts()
        counts[key].add(outcome)
        if facts.recurring:
            if outcome.job_id not in stats:
                stats[outcome.job_id] = JobStats(outcome.job_id, outcome.namespace, facts.kind)
            stats[outcome.job_id].add(outcome)
    return counts


def window_of(at: datetime) -> datetime:
    """Return the start of the window that contains an instant."""
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % WINDOW_SECONDS, UTC)


def percentile(buckets: Sequence[int], share: float) -> float | None:
    """Return the bound that `share` of the durations do not exceed; None: no durations, or no upper bound.

    Args:
        buckets: counts by `BOUNDS`, and one more.
        share: such as 0.99.
    """
    total, seen = sum(buckets), 0
    for bound, count in zip(BOUNDS, buckets, strict=False):
        seen += count
        if total and seen >= share * total:
            return bound
    return None
