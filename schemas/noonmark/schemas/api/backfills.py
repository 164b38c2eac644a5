"""Backfills as the API answers them, and how they are asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.api.jobs import Fire
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems.pydantic_errors import Document, Expected

Mode = Literal["missing", "missing_and_failed", "all"]

_INSTANT = Expected("an RFC 3339 instant with its offset")


class Backfill(Answer):
    """Past instants of a job that somebody asked to run after all."""

    id: UUID
    job_id: UUID
    job_name: str | None
    namespace: str
    job_version: int
    mode: Mode
    from_at: datetime
    until_at: Annotated[datetime, Field(description="Not part of the range.")]
    state: Literal["running", "done", "cancelled", "failed"]
    state_reason: Annotated[str | None, Field(description="Of a running one: what it waits for.")]
    total: Annotated[int, Field(description="Instants of the range, when it was started.")]
    instants: Annotated[int, Field(description="Those of them that were looked at.")]
    queued: Annotated[int, Field(description="Those of these that got a run.")]
    percent: float
    requested_by: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    runs: Annotated[dict[str, int] | None, Field(description="Its runs by state; null in listings.")] = None


class BackfillPlan(Answer):
    """What a backfill would do, or was started to do."""

    id: Annotated[UUID | None, Field(description="Of the backfill; null: nothing was started.")]
    job_id: UUID
    job_version: int
    mode: Mode
    from_at: datetime
    until_at: datetime
    total: Annotated[int, Field(description="Instants in the range.")]
    to_run: Annotated[int, Field(description="Those of them that would run.")]
    instants: Annotated[list[datetime], Field(description="The first of these, at most 100.")]
    note: str | None
    fires: Annotated[list[Fire], Field(description="The same instants with their local time.")]


class BackfillBody(Document):
    """Which past instants are to run."""

    from_: Annotated[
        str, Field(alias="from", description="Where the range begins. RFC 3339 with offset."), _INSTANT
    ]
    until: Annotated[
        str | None, Field(description="Where it ends; that instant is excluded. Default: now."), _INSTANT
    ] = None
    mode: Annotated[
        Mode,
        Field(
            description="`missing`: what never ran; `missing_and_failed`: also what ended dead, unknown or "
            "cancelled; `all`: every instant again."
        ),
        Expected("missing, missing_and_failed or all"),
    ] = "missing"
    dry_run: Annotated[bool, Field(description="Only say what would be run."), Expected("true or false")] = (
        False
    )


class BackfillCancelBody(Document):
    """How a backfill ends."""

    reason: Reason = None
    runs: Annotated[
        bool,
        Field(description="Also end what it has queued; else that runs."),
        Expected("true or false"),
    ] = False


class BackfillCancelled(Answer):
    """What a cancel did."""

    backfill: Backfill
    ended: Annotated[int, Field(description="Runs that it ended.")]
    stopping: Annotated[int, Field(description="Runs that it asked to stop.")]
