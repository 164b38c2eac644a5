"""Dead letters in API requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer, Instant
from noonmark.schemas.api.runs import Attempt
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN, NAMESPACE_RULE
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, Expected

MOST: int = 1_000
"""Most runs that one call processes."""

_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


class DeadLetter(Answer):
    """A run that failed permanently."""

    run_id: UUID
    job_id: UUID
    job_name: Annotated[str | None, Field(description="Name of the job when the run died.")]
    namespace: str
    type: Annotated[str | None, Field(description="Kind of the job when the run died.")]
    handler: Annotated[
        str | None, Field(description="Registered name of the Python handler, for Python jobs.")
    ]
    scheduled_for: datetime
    died_at: datetime
    attempts: Annotated[int, Field(description="Number of attempts.")]
    reason: Annotated[str, Field(description="Such as retries_exhausted, not_retryable, lost or rejected.")]
    fingerprint: Annotated[str, Field(description="Equal for runs that died of the same cause.")]
    error: str | None
    error_hidden: Annotated[
        bool, Field(description="True if the error is hidden: the credential lacks `payloads:read`.")
    ] = False


class DeadLetterDetail(DeadLetter):
    """A dead letter with its history. `/v1/runs/{id}/logs` has the output of the attempts."""

    history: Annotated[list[Attempt], Field(description="Attempts that did not succeed, oldest first.")]


class DeadLetterGroup(Answer):
    """Dead letters with the same cause."""

    fingerprint: str
    runs: Annotated[int, Field(description="Number of dead runs.")]
    jobs: Annotated[int, Field(description="Number of jobs concerned.")]
    type: str | None
    first_died_at: datetime
    last_died_at: datetime
    error: Annotated[str | None, Field(description="An example of the error, shortened.")]
    error_hidden: bool = False


class DeadLetterGroups(Answer):
    """Dead letters by cause, most frequent first."""

    items: list[DeadLetterGroup]


class DeadLetterFilter(Document):
    """Selects dead letters of a namespace that match all given fields."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.FILTER

    namespace: Annotated[
        str | None,
        Field(
            pattern=NAMESPACE_PATTERN,
            description="Default: the credential's only namespace, otherwise `default`.",
        ),
        Expected(NAMESPACE_RULE),
    ] = None
    runs: Annotated[
        list[Annotated[UUID, Field(strict=False)]] | None,
        Field(min_length=1, max_length=MOST, description="Ids of runs."),
    ] = None
    job_id: Annotated[UUID | None, Field(strict=False)] = None
    job_name: _Name | None = None
    fingerprint: Annotated[str | None, Field(pattern="^[0-9a-f]{16}$")] = None
    reason: Annotated[_Name | None, Field(description="Why the run is dead.")] = None
    since: Annotated[Instant | None, Field(description="Runs that died at or after this instant.")] = None
    until: Annotated[Instant | None, Field(description="Runs that died before this instant.")] = None


class DeadLetterRedrive(Document):
    """Which dead runs to enqueue again."""

    filter: Annotated[
        DeadLetterFilter,
        Field(description="Selects the runs; required, with a field, unless `all` or `dry_run` is true."),
    ] = DeadLetterFilter()
    all: Annotated[
        bool, Field(description="Change all dead runs of the namespace if the filter has no field.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only count the runs, and list the first.")] = False
    after: Annotated[
        UUID | None, Field(strict=False, description="`next_after` of the previous call, to continue there.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=MOST, description="Most runs that this call processes.")] = MOST


class DeadLetterDiscard(DeadLetterRedrive):
    """Which dead runs to discard permanently, and why."""

    reason: Annotated[Reason, Field(description="Why, for people; replaces the reason of the run.")] = None


class RefusedRun(Answer):
    """A run that was not changed."""

    run_id: UUID
    reason: Annotated[str, Field(description="not_dead, job_cancelled, job_gone or overlap.")]


class DeadLetterChange(Answer):
    """Result of the call; with `dry_run`, a preview."""

    dry_run: bool
    matched: Annotated[int, Field(description="Runs that this call processed; in a dry run, all that match.")]
    first: Annotated[list[UUID], Field(description="Ids of the first matching runs, in a dry run.")]
    runs: Annotated[dict[str, int], Field(description="Changed runs, by their new state.")]
    refused: Annotated[dict[str, int], Field(description="Runs that were not changed, by reason.")]
    refused_runs: Annotated[list[RefusedRun], Field(description="The first runs that were not changed.")]
    remaining: Annotated[int, Field(description="Matching runs that were not processed yet.")]
    next_after: Annotated[
        UUID | None,
        Field(description="Send it as `after` with the same filter to continue; null: all were processed."),
    ]
