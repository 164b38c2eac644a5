"""Alerts as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from noonmark.core.monitoring.alerts import AlertChange, AlertChannel
from noonmark.schemas.api.common import Answer, JsonObject
from noonmark.schemas.events.alerts import KindName, SeverityName

__all__ = ["AlertDetail", "AlertItem", "AlertState", "DeliveryItem"]

AlertState = Literal["open", "resolved", "all"]


class AlertItem(Answer):
    """Something that is or was wrong."""

    id: UUID
    kind: KindName
    severity: SeverityName
    namespace: Annotated[str | None, Field(description="null: the installation is meant.")]
    job_id: UUID | None
    job_name: Annotated[str | None, Field(description="Of the job, where it has one.")]
    run_id: Annotated[UUID | None, Field(description="The run that is meant, or an example.")]
    summary: Annotated[str, Field(description="One sentence for people.")]
    raised_at: datetime
    seen_at: Annotated[datetime, Field(description="When it was last found to be so; renewed now and then.")]
    resolved_at: Annotated[datetime | None, Field(description="null: it is open.")]
    error_hidden: Annotated[
        bool, Field(description="True where the credential may not see error texts (`payloads:read`).")
    ] = False


class DeliveryItem(Answer):
    """How far one channel was told of one change."""

    channel: AlertChannel
    change: AlertChange
    state: Annotated[
        Literal["waiting", "sent", "given_up"],
        Field(description="given_up: it was refused for hours, and is not tried any more."),
    ]
    attempts: int
    due_at: Annotated[datetime | None, Field(description="When it is told next; null: not any more.")]
    sent_at: Annotated[datetime | None, Field(description="When it was last told.")]
    last_error: Annotated[str | None, Field(description="Why the last attempt failed.")]


class AlertDetail(AlertItem):
    """An alert with its figures, and how it was told."""

    fingerprint: Annotated[str, Field(description="Equal for alerts of one thing that is wrong.")]
    details: Annotated[JsonObject, Field(description="Figures and texts; which ones depends on the kind.")]
    deliveries: list[DeliveryItem]
