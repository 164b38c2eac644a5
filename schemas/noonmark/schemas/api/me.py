"""Who the caller is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.api.keys import Grants

__all__ = ["Me"]


class Me(Answer):
    """The principal that a credential stands for, and what it may do."""

    id: Annotated[str, Field(description="`key:<id>`, `oidc:<subject>` or `local:<user>`.")]
    name: str
    platform: Annotated[bool, Field(description="It may do everything everywhere.")]
    grants: Grants
    scopes: Annotated[list[str] | None, Field(description="Its only permissions; null: those of its roles.")]
    permissions: Annotated[
        dict[str, list[str]],
        Field(description="What it may do in each namespace it was granted, scopes considered."),
    ]
    home: Annotated[
        str | None, Field(description="The namespace that a request means which names none; null: `default`.")
    ]
    rate_per_minute: Annotated[int, Field(description="Requests it may send; 0: any number.")]
