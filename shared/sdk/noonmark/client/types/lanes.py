"""Lanes and their backlogs in API responses.

Generated from `noonmark.schemas.api.lanes` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Lane(TypedDict):
    """One subscription: of a pool to a lane, or of the intake to a submission topic."""

    pool: str | None
    """null: the subscription is of the intake."""

    priority: Literal["high", "normal", "low"] | None

    topic: str

    group: str
    """Consumer group."""

    start_backlog: int
    """Messages that no worker has started yet."""

    start_backlog_seconds: float | None
    """Age of the oldest of these messages; null: not measured in time."""

    commit_lag: int
    """Uncommitted messages, as Kafka tools report; one long run can keep it high."""


class Lanes(TypedDict):
    """Every subscription of the installation."""

    items: list[Lane]

    failed: list[str]
    """Subscriptions that could not be measured, and why."""
