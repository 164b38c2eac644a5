"""The principal of a request."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.api.keys import Grants

__all__ = ["Me"]


class Me(Answer):
    """The principal of a credential, and its permissions."""

    id: Annotated[str, Field(description="`key:<id>`, `oidc:<subject>` or `local:<user>`.")]
    name: str
    platform: Annotated[bool, Field(description="The principal has all permissions everywhere.")]
    grants: Grants
    scopes: Annotated[
        list[str] | None,
        Field(
            description="Permissions that the credential is restricted "
            "to; null: all permissions of its roles."
        ),
    ]
    permissions: Annotated[
        dict[str, list[str]],
        Field(description="Permissions in each granted namespace, after scopes are applied."),
    ]
    home: Annotated[str | None, Field(description="Namespace of requests that name none; null: `default`.")]
    rate_per_minute: Annotated[int, Field(description="Most requests per minute; 0: unlimited.")]
