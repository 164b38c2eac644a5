"""API keys in API requests and responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from noonmark.core.access.roles import Permission
from noonmark.schemas.api.common import Answer
from noonmark.schemas.problems.pydantic_errors import VISIBLE, Document

__all__ = ["Key", "KeyRequest", "NewKey", "RoleName"]

RoleName = Literal["viewer", "operator", "editor", "admin"]
Grants = Annotated[
    dict[str, RoleName],
    Field(
        max_length=100,
        description="Role by namespace; `*` is every namespace.",
        examples=[{"billing": "editor"}],
    ),
]


class KeyRequest(Document):
    """A key to create. It cannot have more permissions than its creator."""

    name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=100),
        VISIBLE,
        Field(description="Who or what uses the key, for people.", examples=["ci"]),
    ]
    grants: Grants = Field(default_factory=dict)
    platform: Annotated[
        bool,
        Field(
            description="Grants all permissions everywhere; only platform admins can create such keys.",
        ),
    ] = False
    scopes: Annotated[
        list[Annotated[Permission, Field(strict=False)]] | None,
        Field(
            min_length=1,
            description="Restricts the key to these permissions; null: all permissions of its roles.",
        ),
    ] = None
    rate_per_minute: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            description="Most requests per minute; null: the server's default.",
        ),
    ] = None
    expires_in_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            le=10 * 366 * 86_400,
            description="Seconds until the key expires; null: it never expires.",
        ),
    ] = None
    signs: Annotated[
        bool,
        Field(
            description="Allows the key to sign events on Kafka: the response then contains a "
            "signing key, too.",
        ),
    ] = False


class Key(Answer):
    """A key without its secrets."""

    key_id: Annotated[str, Field(description="Part of the token; not secret.", examples=["k3v9x1m2c7qa"])]
    name: str
    grants: Grants
    platform: Annotated[bool, Field(description="The key has all permissions everywhere.")]
    scopes: Annotated[
        list[str] | None,
        Field(description="Permissions that the key is restricted to; null: all permissions of its roles."),
    ]
    rate_per_minute: Annotated[
        int | None, Field(description="Most requests per minute; null: the server's default.")
    ]
    signs: Annotated[bool, Field(description="The key can sign events on Kafka.")]
    created_at: datetime
    created_by: Annotated[str, Field(description="Principal who created the key.")]
    expires_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="Accurate to one or two minutes.")]
    revoked_at: datetime | None
    state: Literal["valid", "expired", "revoked"]


class NewKey(Key):
    """A new key with its secrets. No later response contains them."""

    token: Annotated[str, Field(description="Send it as `Authorization: Bearer`.")]
    signing_key: Annotated[
        str | None,
        Field(description="Key that signs events on Kafka; null: the key cannot sign."),
    ]
