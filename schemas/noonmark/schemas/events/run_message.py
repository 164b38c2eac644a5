"""The Kafka messages about queued runs: they identify the runs, and never contain the work itself.

These models document its form. Hot paths write and read it without pydantic, in `noonmark.kafka.messages`,
which also signs it. A test compares the two.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from noonmark.schemas.events.lifecycle import LaneName

QUEUED: Final = "noonmark.run.queued.v1"
SEVERAL_QUEUED: Final = "noonmark.runs.queued.v1"


class RunQueued(BaseModel):
    """One enqueueing of a run. A worker executes only what the start statement returns."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    run_id: UUID
    job_id: UUID
    namespace: str
    pool: str
    lane: LaneName
    scheduled_for: Annotated[datetime, Field(description="Part of the run's key; selects the partition.")]
    fence: Annotated[int, Field(ge=1, description="Fencing token of this enqueueing.")]
    job_version: Annotated[int, Field(ge=1, description="Version of the job that the run was planned with.")]


QueuedRun = tuple[
    Annotated[UUID, Field(description="The run.")],
    Annotated[UUID, Field(description="Its job.")],
    Annotated[str, Field(description="The namespace of the job.")],
    Annotated[datetime, Field(description="The nominal instant.")],
    Annotated[int, Field(ge=1, description="Fencing token of this enqueueing.")],
    Annotated[int, Field(ge=1, description="Version of the job that the run was planned with.")],
]
"""A run in a message with several: the members of `RunQueued`, without pool and lane, in a fixed order."""


class RunsQueued(BaseModel):
    """Runs of one lane of a pool, in the order of the queue. Each is started and settled by itself."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    pool: str
    lane: LaneName
    runs: Annotated[
        list[QueuedRun],
        Field(
            min_length=1,
            max_length=1000,
            description="For each run: id, job id, namespace, instant, fence, job version.",
        ),
    ]


class RunExtensions(BaseModel):
    """The extension attributes of the event: the signature of the data."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    keyid: Annotated[
        str, Field(min_length=1, max_length=128, description="Key of the pool that signed the data.")
    ]
    signature: Annotated[
        str,
        Field(pattern="^[0-9a-f]{64}$", description="HMAC-SHA256 of the bytes of data, exactly as sent."),
    ]
    traceparent: Annotated[
        str | None, Field(description="W3C trace context; only for traced runs, and not signed.")
    ] = None
