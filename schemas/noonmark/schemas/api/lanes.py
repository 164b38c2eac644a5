"""Lanes and their backlogs in API responses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.api.runs import PriorityName


class Lane(Answer):
    """One subscription: of a pool to a lane, or of the intake to a submission topic."""

    pool: Annotated[str | None, Field(description="null: the subscription is of the intake.")]
    priority: PriorityName | None
    topic: str
    group: Annotated[str, Field(description="Consumer group.")]
    start_backlog: Annotated[int, Field(description="Messages that no worker has started yet.")]
    start_backlog_seconds: Annotated[
        float | None, Field(description="Age of the oldest of these messages; null: not measured in time.")
    ]
    commit_lag: Annotated[
        int, Field(description="Uncommitted messages, as Kafka tools report; one long run can keep it high.")
    ]


class Lanes(Answer):
    """Every subscription of the installation."""

    items: list[Lane]
    failed: Annotated[list[str], Field(description="Subscriptions that could not be measured, and why.")]
