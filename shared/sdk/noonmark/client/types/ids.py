"""Ids that begin with a prefix, in API responses.

Generated from `noonmark.schemas.api.ids` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class FoundId(TypedDict):
    """A job, run, backfill or alert whose id begins with the prefix."""

    id: str

    kind: Literal["job", "run", "backfill", "alert"]

    namespace: str | None
    """null: an alert about the installation."""

    job_name: str | None
    """Name of the job, or of the job of the run, backfill or alert; null if it has none."""

    state: str
    """State as listings show it; of an alert, open or resolved."""


class FoundIds(TypedDict):
    """Jobs, runs, backfills or alerts whose ids begin with a prefix."""

    items: list[FoundId]

    more: bool
    """True if there are more than `items`."""
