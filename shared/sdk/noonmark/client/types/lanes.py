"""Lanes and their backlogs as the API shows them.

Made from `noonmark.schemas.api.lanes`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Lane(TypedDict):
    """One subscription: of a pool to a priority, or of intake to a topic of submissions."""

    pool: str | None
    """Null: it is of submissions."""

    priority: Literal["high", "normal", "low"] | None

    topic: str

    group: str
    """Consumer group."""

    start_backlog: int
    """Messages that nobody has started on."""

    start_backlog_seconds: float | None
    """Age of the oldest of them; null: it could not be read in time."""

    commit_lag: int
    """Messages not committed yet, as Kafka tools show it: one long run holds it."""


class Lanes(TypedDict):
    """Every subscription of the installation."""

    items: list[Lane]

    failed: list[str]
    """What could not be measured, and why."""
