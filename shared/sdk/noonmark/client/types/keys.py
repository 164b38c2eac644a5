"""API keys in API requests and responses.

Generated from `noonmark.schemas.api.keys` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Key(TypedDict):
    """A key without its secrets."""

    key_id: str
    """Part of the token; not secret."""

    name: str

    grants: dict[str, Literal["viewer", "operator", "editor", "admin"]]
    """Role by namespace; `*` is every namespace."""

    platform: bool
    """The key has all permissions everywhere."""

    scopes: list[str] | None
    """Permissions that the key is restricted to; null: all permissions of its roles."""

    rate_per_minute: int | None
    """Most requests per minute; null: the server's default."""

    signs: bool
    """The key can sign events on Kafka."""

    created_at: str

    created_by: str
    """Principal who created the key."""

    expires_at: str | None

    last_used_at: str | None
    """Accurate to one or two minutes."""

    revoked_at: str | None

    state: Literal["valid", "expired", "revoked"]


class NewKey(Key):
    """A new key with its secrets. No later response contains them."""

    token: str
    """Send it as `Authorization: Bearer`."""

    signing_key: str | None
    """Key that signs events on Kafka; null: the key cannot sign."""
