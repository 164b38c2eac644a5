"""Entries of the audit log in API responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from noonmark.schemas.api.common import Answer, JsonObject

__all__ = ["AuditItem", "OutcomeName"]

OutcomeName = Literal["done", "denied", "failed"]


class AuditItem(Answer):
    """An action that a principal did or tried to do."""

    id: int
    at: Annotated[datetime, Field(description="Time on the database's clock.")]
    actor: Annotated[str, Field(description="Id of the principal.", examples=["key:k3v9x1m2c7qa"])]
    actor_name: Annotated[str, Field(description="Name of the principal at that time.")]
    action: Annotated[str, Field(examples=["job.pause"])]
    namespace: Annotated[str | None, Field(description="null: the action concerned the installation.")]
    object: Annotated[str | None, Field(description="Object of the action.")]
    outcome: OutcomeName
    reason: Annotated[str | None, Field(description="Why the action was denied or failed.")]
    before: Annotated[JsonObject | None, Field(description="The object before the action, without secrets.")]
    after: Annotated[JsonObject | None, Field(description="The object after the action.")]
    request_id: str
    address: Annotated[str | None, Field(description="Address of the client.")]
