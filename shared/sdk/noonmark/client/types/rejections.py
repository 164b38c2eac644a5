"""Refused records as the API shows them.

Made from `noonmark.schemas.api.rejections`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import TypedDict

from noonmark.client.types.common import ProblemField


class Rejection(TypedDict):
    """A record of Kafka that was not taken."""

    id: int

    received_at: str

    topic: str

    partition: int

    offset: int

    event_source: str | None
    """Of its event, as far as it could be read."""

    event_id: str | None

    reason: str
    """A word, as the metric of rejections counts them."""

    errors: list[ProblemField]

    excerpt: str
    """Beginning of the value, as text."""


class RejectionDetail(Rejection):
    """The same with its value."""

    value_base64: str | None
    """The bytes that were kept; null: it had none."""

    truncated: bool
    """Whether not all of them were kept."""
