"""Refused records as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer, ProblemField


class Rejection(Answer):
    """A record of Kafka that was not taken."""

    id: int
    received_at: datetime
    topic: str
    partition: int
    offset: int
    event_source: Annotated[str | None, Field(description="Of its event, as far as it could be read.")]
    event_id: str | None
    reason: Annotated[str, Field(description="A word, as the metric of rejections counts them.")]
    errors: list[ProblemField]
    excerpt: Annotated[str, Field(description="Beginning of the value, as text.")]


class RejectionDetail(Rejection):
    """The same with its value."""

    value_base64: Annotated[str | None, Field(description="The bytes that were kept; null: it had none.")]
    truncated: Annotated[bool, Field(description="Whether not all of them were kept.")]
