"""Alerts in API responses."""

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
    """An alert, open or resolved."""

    id: UUID
    kind: KindName
    severity: SeverityName
    namespace: Annotated[str | None, Field(description="null: the alert concerns the installation.")]
    job_id: UUID | None
    job_name: Annotated[str | None, Field(description="Name of the job, if it has one.")]
    run_id: Annotated[UUID | None, Field(description="The run concerned, or an example.")]
    summary: Annotated[str, Field(description="One sentence for people.")]
    raised_at: datetime
    seen_at: Annotated[
        datetime, Field(description="When the condition was last observed; updated from time to time.")
    ]
    resolved_at: Annotated[datetime | None, Field(description="null: the alert is open.")]
    error_hidden: Annotated[
        bool, Field(description="True if error texts are hidden: the credential lacks `payloads:read`.")
    ] = False


class DeliveryItem(Answer):
    """Delivery of one change to one channel."""

    channel: AlertChannel
    change: AlertChange
    state: Annotated[
        Literal["waiting", "sent", "given_up"],
        Field(description="given_up: the receiver refused it for hours; it is not sent again."),
    ]
    attempts: int
    due_at: Annotated[datetime | None, Field(description="Time of the next attempt; null: none.")]
    sent_at: Annotated[datetime | None, Field(description="Time of the last successful delivery.")]
    last_error: Annotated[str | None, Field(description="Why the last attempt failed.")]


class AlertDetail(AlertItem):
    """An alert with its details and deliveries."""

    fingerprint: Annotated[str, Field(description="Equal for alerts about the same condition.")]
    details: Annotated[JsonObject, Field(description="Numbers and texts; they depend on the kind.")]
    deliveries: list[DeliveryItem]
