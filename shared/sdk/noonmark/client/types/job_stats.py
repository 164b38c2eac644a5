"""Statistics of a job, which the observer computes from its outcomes.

Generated from `noonmark.schemas.api.job_stats` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import TypedDict


class JobOutcomes(TypedDict):
    """Outcomes within a period."""

    succeeded: int

    failed: int
    """Failed attempts, including the last ones of dead runs."""

    dead: int
    """Runs that failed permanently."""

    skipped: int
    """Instants that were skipped."""

    other: int

    failure_rate: float | None
    """Share of attempts that failed; null: no attempts."""

    p50_seconds: float | None
    """Median duration of successful runs; null: none, or above one hour."""

    p99_seconds: float | None
    """99th percentile of the duration of successful runs."""


class JobStats(TypedDict):
    """Statistics of a job. One-time jobs and jobs without a finished run have none."""

    job_id: str

    runs: int
    """Number of runs that the usual duration is computed from."""

    usual_seconds: float | None
    """Usual duration of a successful run; newer runs have more weight."""

    failures: int
    """Current number of equal failures in a row."""

    failure_cause: str | None
    """Fingerprint of these failures."""

    last_error: str | None

    error_hidden: bool
    """True where the credential may not see it (`payloads:read`)."""

    last_run_id: str | None
    """The last run with a failed attempt."""

    last_failure_at: str | None

    last_success_at: str | None

    last_hour: JobOutcomes
    """Outcomes of the last hour, in windows of five minutes."""
