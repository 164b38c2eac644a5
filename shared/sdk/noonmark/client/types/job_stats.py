"""How a job does, as the observer made it out of its outcomes.

Made from `noonmark.schemas.api.job_stats`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import TypedDict


class JobOutcomes(TypedDict):
    """Outcomes of a time."""

    succeeded: int

    failed: int
    """Attempts that failed, those after which runs were dead too."""

    dead: int
    """Runs whose attempts were used up."""

    skipped: int
    """Instants that did not run."""

    other: int

    failure_rate: float | None
    """Share of attempts that failed; null: there were none."""

    p50_seconds: float | None
    """Half of the runs that succeeded took no longer; null: none, or above an hour."""

    p99_seconds: float | None
    """Likewise 99 of 100."""


class JobStats(TypedDict):
    """What is usual for a job. One-time jobs, and those that never ended a run, have nothing that is."""

    job_id: str

    runs: int
    """That the usual duration rests on."""

    usual_seconds: float | None
    """What a run that succeeds takes; newer ones count for more."""

    failures: int
    """Equal failures in a row, up to now."""

    failure_cause: str | None
    """Fingerprint that these have in common."""

    last_error: str | None

    error_hidden: bool
    """True where the credential may not see it (`payloads:read`)."""

    last_run_id: str | None
    """The last run of which an attempt failed."""

    last_failure_at: str | None

    last_success_at: str | None

    last_hour: JobOutcomes
    """In windows of five minutes that began then."""
