"""Entries of the audit log in API responses.

Generated from `noonmark.schemas.api.audit` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class AuditItem(TypedDict):
    """An action that a principal did or tried to do."""

    id: int

    at: str
    """Time on the database's clock."""

    actor: str
    """Id of the principal."""

    actor_name: str
    """Name of the principal at that time."""

    action: str

    namespace: str | None
    """null: the action concerned the installation."""

    object: str | None
    """Object of the action."""

    outcome: Literal["done", "denied", "failed"]

    reason: str | None
    """Why the action was denied or failed."""

    before: dict[str, Any] | None
    """The object before the action, without secrets."""

    after: dict[str, Any] | None
    """The object after the action."""

    request_id: str

    address: str | None
    """Address of the client."""
