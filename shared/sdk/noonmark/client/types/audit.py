"""Entries of the audit log.

Made from `noonmark.schemas.api.audit`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class AuditItem(TypedDict):
    """What somebody did, or tried to do."""

    id: int

    at: str
    """By the database's clock."""

    actor: str
    """Id of the principal."""

    actor_name: str
    """Its name at the time."""

    action: str

    namespace: str | None
    """null: it concerned the installation."""

    object: str | None
    """What it was done to."""

    outcome: Literal["done", "denied", "failed"]

    reason: str | None
    """Why it was denied or has failed."""

    before: dict[str, Any] | None
    """The object as it was, without secrets."""

    after: dict[str, Any] | None
    """As it was afterwards."""

    request_id: str

    address: str | None
    """Where the request came from."""
