"""Backfills in API requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.api.jobs import Fire
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, Expected

Mode = Literal["missing", "missing_and_failed", "all"]

_INSTANT = Expected("an RFC 3339 instant with its offset")


class Backfill(Answer):
    """A request to run past instants of a job."""

    id: UUID
    job_id: UUID
    job_name: str | None
    namespace: str
    job_version: int
    mode: Mode
    from_at: datetime
    until_at: Annotated[datetime, Field(description="End of the range, exclusive.")]
    state: Literal["running", "done", "cancelled", "failed"]
    state_reason: Annotated[str | None, Field(description="What a running backfill waits for.")]
    total: Annotated[int, Field(description="Instants in the range when the backfill started.")]
    instants: Annotated[int, Field(description="Instants processed so far.")]
    queued: Annotated[int, Field(description="Processed instants that got a run.")]
    percent: float
    requested_by: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    runs: Annotated[
        dict[str, int] | None, Field(description="Runs of the backfill by state; null in listings.")
    ] = None


class BackfillPlan(Answer):
    """The plan of a backfill."""

    id: Annotated[UUID | None, Field(description="Id of the backfill; null: none was started.")]
    job_id: UUID
    job_version: int
    mode: Mode
    from_at: datetime
    until_at: datetime
    total: Annotated[int, Field(description="Instants in the range.")]
    to_run: Annotated[int, Field(description="Instants that get a run.")]
    instants: Annotated[list[datetime], Field(description="The first 100 instants that get a run.")]
    note: str | None
    fires: Annotated[list[Fire], Field(description="The same instants with their local time.")]


class BackfillBody(Document):
    """Which past instants to run."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.BACKFILL

    from_: Annotated[
        str, Field(alias="from", description="Start of the range. RFC 3339 with offset."), _INSTANT
    ]
    until: Annotated[
        str | None,
        Field(description="End of the range, exclusive. RFC 3339 with offset. Default: now."),
        _INSTANT,
    ] = None
    mode: Annotated[
        Mode,
        Field(
            description="`missing`: instants that never ran; `missing_and_failed`: also those whose run is "
            "dead, unknown or cancelled; `all`: every instant again."
        ),
        Expected("missing, missing_and_failed or all"),
    ] = "missing"
    dry_run: Annotated[bool, Field(description="Only return the plan."), Expected("true or false")] = False


class BackfillCancelBody(Document):
    """How to cancel a backfill."""

    reason: Reason = None
    runs: Annotated[
        bool,
        Field(description="Also cancel the runs that it has enqueued; otherwise they run."),
        Expected("true or false"),
    ] = False


class BackfillCancelled(Answer):
    """Result of cancelling a backfill."""

    backfill: Backfill
    ended: Annotated[int, Field(description="Runs that were cancelled.")]
    stopping: Annotated[int, Field(description="Runs that were asked to stop.")]
