"""API keys: asked for, and shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from noonmark.core.access.roles import Permission
from noonmark.schemas.api.common import Answer

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


class KeyRequest(BaseModel):
    """A key to make. It can do no more than who makes it."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=100),
        Field(description="For people: who or what uses it.", examples=["ci"]),
    ]
    grants: Grants = Field(default_factory=dict)
    platform: Annotated[
        bool, Field(strict=True, description="May do everything everywhere; made by platform admins.")
    ] = False
    scopes: Annotated[
        list[Permission] | None,
        Field(
            min_length=1,
            description="Its only permissions, whatever its roles would allow; null: all.",
        ),
    ] = None
    rate_per_minute: Annotated[
        int | None,
        Field(strict=True, ge=1, le=1_000_000, description="Requests; null: the server's default."),
    ] = None
    expires_in_seconds: Annotated[
        int | None,
        Field(
            strict=True,
            ge=1,
            le=10 * 366 * 86_400,
            description="How long it lives; null: until it is revoked.",
        ),
    ] = None
    signs: Annotated[
        bool,
        Field(
            strict=True, description="It may sign events on Kafka: the answer then holds a signing key, too."
        ),
    ] = False


class Key(Answer):
    """A key without its secrets."""

    key_id: Annotated[str, Field(description="Part of the token; no secret.", examples=["k3v9x1m2c7qa"])]
    name: str
    grants: Grants
    platform: Annotated[bool, Field(description="It may do everything everywhere.")]
    scopes: Annotated[list[str] | None, Field(description="Its only permissions; null: those of its roles.")]
    rate_per_minute: Annotated[int | None, Field(description="Requests; null: the server's default.")]
    signs: Annotated[bool, Field(description="It may sign events on Kafka.")]
    created_at: datetime
    created_by: Annotated[str, Field(description="Principal who made it.")]
    expires_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="A minute or two behind.")]
    revoked_at: datetime | None
    state: Literal["valid", "expired", "revoked"]


class NewKey(Key):
    """A key that was made just now, with its secrets: no later answer holds them."""

    token: Annotated[str, Field(description="Sent as `Authorization: Bearer`.")]
    signing_key: Annotated[
        str | None,
        Field(description="What a publisher signs its events on Kafka with; null: it signs none."),
    ]
