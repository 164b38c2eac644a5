"""Ids that begin with a prefix, in API responses."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer

__all__ = ["FoundId", "FoundIds"]


class FoundId(Answer):
    """A job or a run whose id begins with the prefix."""

    id: UUID
    kind: Literal["job", "run"]
    namespace: str
    job_name: Annotated[str | None, Field(description="Name of the job, or of the run's job.")]
    state: Annotated[str, Field(description="State of the job or run.")]


class FoundIds(Answer):
    """Jobs and runs whose ids begin with a prefix."""

    items: list[FoundId]
    more: Annotated[bool, Field(description="True if there are more than `items`.")]
