"""Statistics of a job, which the observer computes from its outcomes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer

__all__ = ["JobOutcomes", "JobStats"]


class JobOutcomes(Answer):
    """Outcomes within a period."""

    succeeded: int
    failed: Annotated[int, Field(description="Failed attempts, including the last ones of dead runs.")]
    dead: Annotated[int, Field(description="Runs that failed permanently.")]
    skipped: Annotated[int, Field(description="Instants that were skipped.")]
    other: int
    failure_rate: Annotated[
        float | None, Field(description="Share of attempts that failed; null: no attempts.")
    ]
    p50_seconds: Annotated[
        float | None,
        Field(description="Median duration of successful runs; null: none, or above one hour."),
    ]
    p99_seconds: Annotated[
        float | None, Field(description="99th percentile of the duration of successful runs.")
    ]


class JobStats(Answer):
    """Statistics of a job. One-time jobs and jobs without a finished run have none."""

    job_id: UUID
    runs: Annotated[int, Field(description="Number of runs that the usual duration is computed from.")]
    usual_seconds: Annotated[
        float | None, Field(description="Usual duration of a successful run; newer runs have more weight.")
    ]
    failures: Annotated[int, Field(description="Current number of equal failures in a row.")]
    failure_cause: Annotated[str | None, Field(description="Fingerprint of these failures.")]
    last_error: str | None
    error_hidden: Annotated[
        bool, Field(description="True where the credential may not see it (`payloads:read`).")
    ] = False
    last_run_id: Annotated[UUID | None, Field(description="The last run with a failed attempt.")]
    last_failure_at: datetime | None
    last_success_at: datetime | None
    last_hour: Annotated[
        JobOutcomes, Field(description="Outcomes of the last hour, in windows of five minutes.")
    ]
