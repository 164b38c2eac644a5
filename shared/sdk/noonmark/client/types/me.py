"""Who the caller is.

Made from `noonmark.schemas.api.me`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Me(TypedDict):
    """The principal that a credential stands for, and what it may do."""

    id: str
    """`key:<id>`, `oidc:<subject>` or `local:<user>`."""

    name: str

    platform: bool
    """It may do everything everywhere."""

    grants: dict[str, Literal["viewer", "operator", "editor", "admin"]]
    """Role by namespace; `*` is every namespace."""

    scopes: list[str] | None
    """Its only permissions; null: those of its roles."""

    permissions: dict[str, list[str]]
    """What it may do in each namespace it was granted, scopes considered."""

    home: str | None
    """The namespace that a request means which names none; null: `default`."""

    rate_per_minute: int
    """Requests it may send; 0: any number."""
