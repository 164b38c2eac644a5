"""Statistics of the observer over outcomes: figures and counts per recurring job.

Pure, and independent of how the stream is cut into batches: only the outcomes and their order matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from noonmark.core.fingerprints import fingerprint
from noonmark.core.monitoring import recent
from noonmark.core.monitoring.alerts import Streak, usual
from noonmark.core.states import RunState

_LONGEST_ERROR: Final = 1000
_FAILED: Final = (RunState.RETRYING, RunState.DEAD)


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
    """Figures of a recurring job; the columns of `job_stats`.

    Attributes:
        recent: counts of the last hour by key; see `recent`.
    """

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
    recent: dict[int, int] = field(default_factory=dict)

    def add(self, outcome: Outcome, hour: range) -> bool:
        """Add the next outcome, and count it if it is of the hour; return whether anything changed.

        Args:
            outcome: of this job.
            hour: keys of outcomes that count in `recent`.
        """
        state = outcome.state
        if state == RunState.SUCCEEDED:
            seconds = outcome.seconds
            self._succeeded(outcome.at, seconds)
            what = recent.success_in(seconds)
        elif failed(outcome):
            self._failed(outcome)
            what = recent.DEAD if state == RunState.DEAD else recent.FAILED
        else:
            what = recent.SKIPPED if state == RunState.SKIPPED else recent.OTHER
        key = recent.key_of(outcome.at, what)
        if key not in hour:
            return what not in (recent.SKIPPED, recent.OTHER)
        self.recent[key] = self.recent.get(key, 0) + 1
        return True

    def _succeeded(self, at: datetime, seconds: float | None) -> None:
        self.failures, self.failure_cause = 0, None
        self.last_success_at = at
        if seconds is not None:
            self.usual_seconds = usual(self.usual_seconds, seconds)
            self.runs += 1

    def _failed(self, outcome: Outcome) -> None:
        cause = fingerprint(self.kind, outcome.error, outcome.reason or "")
        streak = Streak(self.failures, self.failure_cause).failed(cause)
        self.failures, self.failure_cause = streak.length, streak.cause
        self.last_error = (outcome.error or outcome.reason or "")[:_LONGEST_ERROR]
        self.last_run_id, self.last_failure_at = outcome.run_id, outcome.at


def failed(outcome: Outcome) -> bool:
    """Return whether an attempt failed: it is retried after an error, or the run died of it."""
    return outcome.state == RunState.DEAD or (outcome.state in _FAILED and bool(outcome.error))


def fold(
    outcomes: Iterable[Outcome], kinds: Mapping[int, str], stats: dict[int, JobStats], hour: range
) -> list[JobStats]:
    """Add outcomes, in order, to the stats of their jobs. Those of one-time jobs have no history.

    Args:
        outcomes: the oldest of each job first.
        kinds: of recurring jobs, by id as a number: hashing and comparing numbers runs no Python code.
        stats: of recurring jobs; changed in place, with new entries for new jobs.
        hour: keys of outcomes that count in `JobStats.recent`.

    Returns:
        The stats that changed.
    """
    changed: dict[int, JobStats] = {}
    for outcome in outcomes:
        number = outcome.job_id.int
        kind = kinds.get(number)
        if kind is None:
            continue
        one = stats.get(number)
        if one is None:
            one = stats[number] = JobStats(outcome.job_id, outcome.namespace, kind)
        if one.add(outcome, hour):
            changed[number] = one
    return list(changed.values())
