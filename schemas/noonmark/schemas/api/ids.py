"""Ids that begin with a prefix, in API responses."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from noonmark.schemas.api.common import Answer

__all__ = ["FoundId", "FoundIds"]


class FoundId(Answer):
    """A job, run, backfill or alert whose id begins with the prefix."""

    id: UUID
    kind: Literal["job", "run", "backfill", "alert"]
    namespace: Annotated[str | None, Field(description="null: an alert about the installation.")]
    job_name: Annotated[
        str | None,
        Field(
            description="Name of the job, or of the job of the run, backfill or alert; null if it has none."
        ),
    ]
    state: Annotated[str, Field(description="State as listings show it; of an alert, open or resolved.")]


class FoundIds(Answer):
    """Jobs, runs, backfills or alerts whose ids begin with a prefix."""

    items: list[FoundId]
    more: Annotated[bool, Field(description="True if there are more than `items`.")]
