"""Limits in API requests and responses.

Generated from `noonmark.schemas.api.limits` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import TypedDict


class Limit(TypedDict):
    """A limit of a namespace."""

    name: str

    namespace: str

    max_running: int | None

    rate: str | None
    """The rate, in the form that requests use."""

    rate_count: int | None

    rate_seconds: float | None

    burst: int | None

    in_use: int
    """Slots in use, over all keys."""

    waiting: int
    """Runs that wait for the limit, over all keys."""

    updated_at: str


class Limits(TypedDict):
    """Limits of a namespace, sorted by name."""

    items: list[Limit]
