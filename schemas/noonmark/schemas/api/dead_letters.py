"""Dead letters as the API shows them, and orders about them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer, Instant
from noonmark.schemas.api.runs import Attempt
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems.pydantic_errors import Document

MOST: int = 1_000
"""Runs that one order looks at, at most."""

_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


class DeadLetter(Answer):
    """A run whose attempts are used up."""

    run_id: UUID
    job_id: UUID
    job_name: Annotated[str | None, Field(description="Of the job when the run died.")]
    namespace: str
    type: Annotated[str | None, Field(description="Kind of the job when the run died.")]
    handler: Annotated[str | None, Field(description="Of Python jobs: what is called.")]
    scheduled_for: datetime
    died_at: datetime
    attempts: Annotated[int, Field(description="Attempts made.")]
    reason: Annotated[str, Field(description="retries_exhausted, not_retryable, lost, rejected …")]
    fingerprint: Annotated[str, Field(description="Equal for runs that died of one cause.")]
    error: str | None
    error_hidden: Annotated[
        bool, Field(description="True where the credential may not see it (`payloads:read`).")
    ] = False


class DeadLetterDetail(DeadLetter):
    """A dead letter with its history; what attempts wrote is at `/v1/runs/{id}/logs`."""

    history: Annotated[list[Attempt], Field(description="Attempts that did not succeed, the oldest first.")]


class DeadLetterGroup(Answer):
    """Dead letters of one cause."""

    fingerprint: str
    runs: Annotated[int, Field(description="How many.")]
    jobs: Annotated[int, Field(description="Of how many jobs.")]
    type: str | None
    first_died_at: datetime
    last_died_at: datetime
    error: Annotated[str | None, Field(description="One of the errors, cut.")]
    error_hidden: bool = False


class DeadLetterGroups(Answer):
    """Causes of death, the most frequent first."""

    items: list[DeadLetterGroup]


class DeadLetterFilter(Document):
    """Which dead letters of a namespace are meant: those that fit all that is given; nothing: all of them."""

    namespace: Annotated[
        str | None,
        Field(
            pattern=NAMESPACE_PATTERN, description="Default: the credential's only namespace, else `default`."
        ),
    ] = None
    runs: Annotated[
        list[Annotated[UUID, Field(strict=False)]] | None,
        Field(min_length=1, max_length=MOST, description="Ids of runs."),
    ] = None
    job_id: Annotated[UUID | None, Field(strict=False)] = None
    job_name: _Name | None = None
    fingerprint: Annotated[str | None, Field(pattern="^[0-9a-f]{16}$")] = None
    reason: Annotated[_Name | None, Field(description="Reason of the death.")] = None
    since: Annotated[Instant | None, Field(description="Died at or after this instant.")] = None


class DeadLetterRedrive(Document):
    """Which dead runs are to be queued again."""

    filter: Annotated[DeadLetterFilter, Field(description="Which ones.")] = DeadLetterFilter()
    dry_run: Annotated[bool, Field(description="Only count them, and name the first.")] = False
    after: Annotated[
        UUID | None, Field(strict=False, description="`next_after` of the call before: go on there.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=MOST, description="Runs that this call looks at, at most.")] = MOST


class DeadLetterDiscard(DeadLetterRedrive):
    """Which dead runs are to be settled for good, and why."""

    reason: Annotated[
        Reason, Field(description="Why, for people; takes the place of the reason of the death.")
    ] = None


class RefusedRun(Answer):
    """A run that was left as it is."""

    run_id: UUID
    reason: Annotated[str, Field(description="not_dead, job_cancelled, job_gone or overlap.")]


class DeadLetterChange(Answer):
    """What an order did, or, with `dry_run`, what it would be about."""

    dry_run: bool
    matched: Annotated[
        int, Field(description="Runs that this call looked at; of a dry run, all that are meant.")
    ]
    first: Annotated[list[UUID], Field(description="Of a dry run: ids of the first.")]
    runs: Annotated[dict[str, int], Field(description="Runs that were changed, by their state now.")]
    refused: Annotated[dict[str, int], Field(description="Runs that were left as they are, by reason.")]
    refused_runs: Annotated[list[RefusedRun], Field(description="The first of these.")]
    remaining: Annotated[int, Field(description="Runs that are meant and were not looked at yet.")]
    next_after: Annotated[
        UUID | None,
        Field(description="Send it as `after`, with the same filter, to go on; null: that was all."),
    ]
