"""Refused Kafka records in API responses.

Generated from `noonmark.schemas.api.rejections` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import TypedDict

from noonmark.client.types.common import ProblemField


class Rejection(TypedDict):
    """A Kafka record that was refused."""

    id: int

    received_at: str

    topic: str

    partition: int

    offset: int

    event_source: str | None
    """Source of the event, if it could be read."""

    event_id: str | None

    reason: str
    """Reason, as a label of the metric of rejections."""

    errors: list[ProblemField]

    excerpt: str
    """Beginning of the value as text."""


class RejectionDetail(Rejection):
    """A refused record with its value."""

    value_base64: str | None
    """The stored bytes of the value; null: the record had no value."""

    truncated: bool
    """True if the value was cut."""
