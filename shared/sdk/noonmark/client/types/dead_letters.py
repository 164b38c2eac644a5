"""Dead letters in API requests and responses.

Generated from `noonmark.schemas.api.dead_letters` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import TypedDict

from noonmark.client.types.runs import Attempt


class DeadLetter(TypedDict):
    """A run that failed permanently."""

    run_id: str

    job_id: str

    job_name: str | None
    """Name of the job when the run died."""

    namespace: str

    type: str | None
    """Kind of the job when the run died."""

    handler: str | None
    """Registered name of the Python handler, for Python jobs."""

    scheduled_for: str

    died_at: str

    attempts: int
    """Number of attempts."""

    reason: str
    """Such as retries_exhausted, not_retryable, lost or rejected."""

    fingerprint: str
    """Equal for runs that died of the same cause."""

    error: str | None

    error_hidden: bool
    """True if the error is hidden: the credential lacks `payloads:read`."""


class DeadLetterDetail(DeadLetter):
    """A dead letter with its history. `/v1/runs/{id}/logs` has the output of the attempts."""

    history: list[Attempt]
    """Attempts that did not succeed, oldest first."""


class DeadLetterGroup(TypedDict):
    """Dead letters with the same cause."""

    fingerprint: str

    runs: int
    """Number of dead runs."""

    jobs: int
    """Number of jobs concerned."""

    type: str | None

    first_died_at: str

    last_died_at: str

    error: str | None
    """An example of the error, shortened."""

    error_hidden: bool


class DeadLetterGroups(TypedDict):
    """Dead letters by cause, most frequent first."""

    items: list[DeadLetterGroup]


class RefusedRun(TypedDict):
    """A run that was not changed."""

    run_id: str

    reason: str
    """not_dead, job_cancelled, job_gone or overlap."""


class DeadLetterChange(TypedDict):
    """Result of the call; with `dry_run`, a preview."""

    dry_run: bool

    matched: int
    """Runs that this call processed; in a dry run, all that match."""

    first: list[str]
    """Ids of the first matching runs, in a dry run."""

    runs: dict[str, int]
    """Changed runs, by their new state."""

    refused: dict[str, int]
    """Runs that were not changed, by reason."""

    refused_runs: list[RefusedRun]
    """The first runs that were not changed."""

    remaining: int
    """Matching runs that were not processed yet."""

    next_after: str | None
    """Send it as `after` with the same filter to continue; null: all were processed."""
