"""Workers and pools in API responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from noonmark.schemas.api.common import Answer, JsonObject


class Worker(Answer):
    """A process that executes runs."""

    id: int
    pool: str
    host: str
    pid: int
    state: Annotated[
        Literal["alive", "left", "lapsed"],
        Field(description="lapsed: its lease expired without a heartbeat."),
    ]
    started_at: datetime
    beat_at: Annotated[datetime, Field(description="Time of its last heartbeat.")]
    silent_seconds: Annotated[float, Field(description="Seconds since the last heartbeat.")]
    lease_seconds: Annotated[
        float, Field(description="Without a heartbeat for longer, the worker loses its runs.")
    ]
    epoch: int
    started_runs: Annotated[int, Field(description="Most runs that the worker may be executing.")]
    catalogue: Annotated[JsonObject, Field(description="Kinds and handlers that the worker can run.")]


class Workers(Answer):
    """Workers, newest first."""

    items: list[Worker]


class Pool(Answer):
    """A group of workers."""

    name: str
    created_at: datetime
    workers: Annotated[int, Field(description="Number of live workers.")]


class Pools(Answer):
    """Pools, sorted by name."""

    items: list[Pool]
