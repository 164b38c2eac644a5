"""Lanes and their backlogs as the API shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.api.runs import PriorityName


class Lane(Answer):
    """One subscription: of a pool to a priority, or of intake to a topic of submissions."""

    pool: Annotated[str | None, Field(description="Null: it is of submissions.")]
    priority: PriorityName | None
    topic: str
    group: Annotated[str, Field(description="Consumer group.")]
    start_backlog: Annotated[int, Field(description="Messages that nobody has started on.")]
    start_backlog_seconds: Annotated[
        float | None, Field(description="Age of the oldest of them; null: it could not be read in time.")
    ]
    commit_lag: Annotated[
        int, Field(description="Messages not committed yet, as Kafka tools show it: one long run holds it.")
    ]


class Lanes(Answer):
    """Every subscription of the installation."""

    items: list[Lane]
    failed: Annotated[list[str], Field(description="What could not be measured, and why.")]
