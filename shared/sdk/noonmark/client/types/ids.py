"""Ids that begin with a prefix, in API responses.

Generated from `noonmark.schemas.api.ids` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class FoundId(TypedDict):
    """A job or a run whose id begins with the prefix."""

    id: str

    kind: Literal["job", "run"]

    namespace: str

    job_name: str | None
    """Name of the job, or of the run's job."""

    state: str
    """State of the job or run."""


class FoundIds(TypedDict):
    """Jobs and runs whose ids begin with a prefix."""

    items: list[FoundId]

    more: bool
    """True if there are more than `items`."""
