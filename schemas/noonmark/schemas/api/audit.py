"""Entries of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from noonmark.schemas.api.common import Answer, JsonObject

__all__ = ["AuditItem", "OutcomeName"]

OutcomeName = Literal["done", "denied", "failed"]


class AuditItem(Answer):
    """What somebody did, or tried to do."""

    id: int
    at: Annotated[datetime, Field(description="By the database's clock.")]
    actor: Annotated[str, Field(description="Id of the principal.", examples=["key:k3v9x1m2c7qa"])]
    actor_name: Annotated[str, Field(description="Its name at the time.")]
    action: Annotated[str, Field(examples=["job.pause"])]
    namespace: Annotated[str | None, Field(description="null: it concerned the installation.")]
    object: Annotated[str | None, Field(description="What it was done to.")]
    outcome: OutcomeName
    reason: Annotated[str | None, Field(description="Why it was denied or has failed.")]
    before: Annotated[JsonObject | None, Field(description="The object as it was, without secrets.")]
    after: Annotated[JsonObject | None, Field(description="As it was afterwards.")]
    request_id: str
    address: Annotated[str | None, Field(description="Where the request came from.")]
