"""Refused Kafka records in API responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer, ProblemField


class Rejection(Answer):
    """A Kafka record that was refused."""

    id: int
    received_at: datetime
    topic: str
    partition: int
    offset: int
    event_source: Annotated[str | None, Field(description="Source of the event, if it could be read.")]
    event_id: str | None
    reason: Annotated[str, Field(description="Reason, as a label of the metric of rejections.")]
    errors: list[ProblemField]
    excerpt: Annotated[str, Field(description="Beginning of the value as text.")]


class RejectionDetail(Rejection):
    """A refused record with its value."""

    value_base64: Annotated[
        str | None, Field(description="The stored bytes of the value; null: the record had no value.")
    ]
    truncated: Annotated[bool, Field(description="True if the value was cut.")]
