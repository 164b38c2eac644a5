"""Workers and pools as the API shows them."""

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
        Literal["alive", "left", "lapsed"], Field(description="Lapsed: it gave no sign of life any more.")
    ]
    started_at: datetime
    beat_at: Annotated[datetime, Field(description="Its last sign of life.")]
    silent_seconds: Annotated[float, Field(description="Since then.")]
    lease_seconds: Annotated[float, Field(description="Silent for longer, its runs are taken from it.")]
    epoch: int
    started_runs: Annotated[int, Field(description="Runs that it has started and may hold, at the most.")]
    catalogue: Annotated[JsonObject, Field(description="Kinds and handlers that it can run.")]


class Workers(Answer):
    """Workers, the newest first."""

    items: list[Worker]


class Pool(Answer):
    """A group of workers."""

    name: str
    created_at: datetime
    workers: Annotated[int, Field(description="Alive.")]


class Pools(Answer):
    """Pools by name."""

    items: list[Pool]
