"""Limits as the API takes and shows them.

Made from `noonmark.schemas.api.limits`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import TypedDict


class Limit(TypedDict):
    """A limit of a namespace."""

    name: str

    namespace: str

    max_running: int | None

    rate: str | None
    """As it can be given."""

    rate_count: int | None

    rate_seconds: float | None

    burst: int | None

    in_use: int
    """Slots that are held, over all keys."""

    waiting: int
    """Runs that wait for it, over all keys."""

    updated_at: str


class Limits(TypedDict):
    """Limits of a namespace by name."""

    items: list[Limit]
