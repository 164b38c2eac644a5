"""Alerts, and the rules for raising them: pure arithmetic over what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

USUAL_WEIGHT: Final = 0.2
"""Weight of the newest duration in the usual one: after ten runs, nine tenths of it are new."""


class AlertKind(StrEnum):
    """What is wrong."""

    RUNAWAY = "runaway"
    """A run takes much longer than its job usually does."""
    LATE = "late"
    """A run was not started in time after its instant."""
    STUCK = "stuck"
    """Workers own many runs, but send no heartbeats."""
    FAILING = "failing"
    """The last attempts of a job failed in the same way."""
    DEAD = "dead"
    """Attempts are used up."""
    SILENT = "silent"
    """No outcome was recorded, although instants were due."""


class Severity(StrEnum):
    """How soon a person must react."""

    WARNING = "warning"
    CRITICAL = "critical"


SEVERITIES: Final = {
    AlertKind.RUNAWAY: Severity.WARNING,
    AlertKind.LATE: Severity.WARNING,
    AlertKind.STUCK: Severity.CRITICAL,
    AlertKind.FAILING: Severity.WARNING,
    AlertKind.DEAD: Severity.CRITICAL,
    AlertKind.SILENT: Severity.CRITICAL,
}


class AlertChange(StrEnum):
    """The kind of an alert event."""

    RAISED = "raised"
    RESOLVED = "resolved"


class AlertChannel(StrEnum):
    """Where alerts are sent, in addition to their topic."""

    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"


@dataclass(frozen=True, slots=True)
class FoundAlert:
    """A problem that exists now.

    Attributes:
        kind: the kind of problem.
        fingerprint: equal for findings of one problem: at most one alert about it is open.
        summary: one sentence for people.
        namespace: of the problem; None: it affects the installation.
        job_id: of the job, where there is one.
        run_id: an example, or the affected run.
        details: figures and texts, as JSON values.
    """

    kind: AlertKind
    fingerprint: str
    summary: str
    namespace: str | None = None
    job_id: UUID | None = None
    run_id: UUID | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """How soon a person must react."""
        return SEVERITIES[self.kind]


def fingerprint_of(kind: AlertKind, *parts: object) -> str:
    """Return the fingerprint of an alert about the object that `parts` identify, such as a job's id."""
    return ":".join([kind.value, *(str(part) for part in parts)])


def usual(seconds: float | None, newest: float) -> float:
    """Return the usual duration of a job once one more of its runs succeeded.

    An exponentially weighted mean: it follows a job that grows slower, and one outlier moves it little.

    Args:
        seconds: the usual duration until now; None: this is the first run.
        newest: duration of the run.
    """
    return newest if seconds is None else seconds + USUAL_WEIGHT * (newest - seconds)


@dataclass(frozen=True, slots=True)
class Streak:
    """Equal failures of a job in a row, the newest last; `length` 0: the last attempt succeeded."""

    length: int = 0
    cause: str | None = None

    def failed(self, cause: str) -> Streak:
        """Add a failure: the same cause extends the streak, another cause begins a new one."""
        return Streak(self.length + 1 if cause == self.cause else 1, cause)
