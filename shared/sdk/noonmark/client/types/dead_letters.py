"""Dead letters as the API shows them, and orders about them.

Made from `noonmark.schemas.api.dead_letters`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import TypedDict

from noonmark.client.types.runs import Attempt


class DeadLetter(TypedDict):
    """A run whose attempts are used up."""

    run_id: str

    job_id: str

    job_name: str | None
    """Of the job when the run died."""

    namespace: str

    type: str | None
    """Kind of the job when the run died."""

    handler: str | None
    """Of Python jobs: what is called."""

    scheduled_for: str

    died_at: str

    attempts: int
    """Attempts made."""

    reason: str
    """retries_exhausted, not_retryable, lost, rejected …"""

    fingerprint: str
    """Equal for runs that died of one cause."""

    error: str | None

    error_hidden: bool
    """True where the credential may not see it (`payloads:read`)."""


class DeadLetterDetail(DeadLetter):
    """A dead letter with its history; what attempts wrote is at `/v1/runs/{id}/logs`."""

    history: list[Attempt]
    """Attempts that did not succeed, the oldest first."""


class DeadLetterGroup(TypedDict):
    """Dead letters of one cause."""

    fingerprint: str

    runs: int
    """How many."""

    jobs: int
    """Of how many jobs."""

    type: str | None

    first_died_at: str

    last_died_at: str

    error: str | None
    """One of the errors, cut."""

    error_hidden: bool


class DeadLetterGroups(TypedDict):
    """Causes of death, the most frequent first."""

    items: list[DeadLetterGroup]


class RefusedRun(TypedDict):
    """A run that was left as it is."""

    run_id: str

    reason: str
    """not_dead, job_cancelled, job_gone or overlap."""


class DeadLetterChange(TypedDict):
    """What an order did, or, with `dry_run`, what it would be about."""

    dry_run: bool

    matched: int
    """Runs that this call looked at; of a dry run, all that are meant."""

    first: list[str]
    """Of a dry run: ids of the first."""

    runs: dict[str, int]
    """Runs that were changed, by their state now."""

    refused: dict[str, int]
    """Runs that were left as they are, by reason."""

    refused_runs: list[RefusedRun]
    """The first of these."""

    remaining: int
    """Runs that are meant and were not looked at yet."""

    next_after: str | None
    """Send it as `after`, with the same filter, to go on; null: that was all."""
