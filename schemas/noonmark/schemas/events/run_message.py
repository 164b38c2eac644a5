"""The message that brings a queued run to a worker: a pointer, never the work itself.

This is its published form. It is written and read on hot paths, which do without pydantic:
`noonmark.kafka.messages` does that and signs; a test keeps the two equal.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from noonmark.schemas.events.lifecycle import LaneName

QUEUED: Final = "noonmark.run.queued.v1"


class RunQueued(BaseModel):
    """One queueing of a run. A worker runs what the start statement returns, whatever else is said here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    run_id: UUID
    job_id: UUID
    namespace: str
    pool: str
    lane: LaneName
    scheduled_for: Annotated[datetime, Field(description="Part of the run's key: prunes partitions.")]
    fence: Annotated[int, Field(ge=1, description="The queueing this message belongs to.")]
    job_version: Annotated[int, Field(ge=1, description="Version of the job the run was planned with.")]


class RunExtensions(BaseModel):
    """The extension attributes of the event: who vouches for the data."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    keyid: Annotated[str, Field(min_length=1, max_length=128, description="Which key of the pool signed.")]
    signature: Annotated[
        str,
        Field(pattern="^[0-9a-f]{64}$", description="HMAC-SHA256 of the bytes of data as they stand here."),
    ]
    traceparent: Annotated[
        str | None, Field(description="W3C trace context; of traced runs alone, and not signed.")
    ] = None
