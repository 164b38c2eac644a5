"""The principal of a request.

Generated from `noonmark.schemas.api.me` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Me(TypedDict):
    """The principal of a credential, and its permissions."""

    id: str
    """`key:<id>`, `oidc:<subject>` or `local:<user>`."""

    name: str

    platform: bool
    """The principal has all permissions everywhere."""

    grants: dict[str, Literal["viewer", "operator", "editor", "admin"]]
    """Role by namespace; `*` is every namespace."""

    scopes: list[str] | None
    """Permissions that the credential is restricted to; null: all permissions of its roles."""

    permissions: dict[str, list[str]]
    """Permissions in each granted namespace, after scopes are applied."""

    home: str | None
    """Namespace of requests that name none; null: `default`."""

    rate_per_minute: int
    """Most requests per minute; 0: unlimited."""
