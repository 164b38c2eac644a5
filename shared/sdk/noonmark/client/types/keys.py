"""API keys: asked for, and shown.

Made from `noonmark.schemas.api.keys`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Key(TypedDict):
    """A key without its secrets."""

    key_id: str
    """Part of the token; no secret."""

    name: str

    grants: dict[str, Literal["viewer", "operator", "editor", "admin"]]
    """Role by namespace; `*` is every namespace."""

    platform: bool
    """It may do everything everywhere."""

    scopes: list[str] | None
    """Its only permissions; null: those of its roles."""

    rate_per_minute: int | None
    """Requests; null: the server's default."""

    signs: bool
    """It may sign events on Kafka."""

    created_at: str

    created_by: str
    """Principal who made it."""

    expires_at: str | None

    last_used_at: str | None
    """A minute or two behind."""

    revoked_at: str | None

    state: Literal["valid", "expired", "revoked"]


class NewKey(Key):
    """A key that was made just now, with its secrets: no later answer holds them."""

    token: str
    """Sent as `Authorization: Bearer`."""

    signing_key: str | None
    """What a publisher signs its events on Kafka with; null: it signs none."""
