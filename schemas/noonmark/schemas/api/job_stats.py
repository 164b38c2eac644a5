"""How a job does, as the observer made it out of its outcomes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer

__all__ = ["JobOutcomes", "JobStats"]


class JobOutcomes(Answer):
    """Outcomes of a time."""

    succeeded: int
    failed: Annotated[int, Field(description="Attempts that failed, those after which runs were dead too.")]
    dead: Annotated[int, Field(description="Runs whose attempts were used up.")]
    skipped: Annotated[int, Field(description="Instants that did not run.")]
    other: int
    failure_rate: Annotated[
        float | None, Field(description="Share of attempts that failed; null: there were none.")
    ]
    p50_seconds: Annotated[
        float | None,
        Field(description="Half of the runs that succeeded took no longer; null: none, or above an hour."),
    ]
    p99_seconds: Annotated[float | None, Field(description="Likewise 99 of 100.")]


class JobStats(Answer):
    """What is usual for a job. One-time jobs, and those that never ended a run, have nothing that is."""

    job_id: UUID
    runs: Annotated[int, Field(description="That the usual duration rests on.")]
    usual_seconds: Annotated[
        float | None, Field(description="What a run that succeeds takes; newer ones count for more.")
    ]
    failures: Annotated[int, Field(description="Equal failures in a row, up to now.")]
    failure_cause: Annotated[str | None, Field(description="Fingerprint that these have in common.")]
    last_error: str | None
    error_hidden: Annotated[
        bool, Field(description="True where the credential may not see it (`payloads:read`).")
    ] = False
    last_run_id: Annotated[UUID | None, Field(description="The last run of which an attempt failed.")]
    last_failure_at: datetime | None
    last_success_at: datetime | None
    last_hour: Annotated[JobOutcomes, Field(description="In windows of five minutes that began then.")]
