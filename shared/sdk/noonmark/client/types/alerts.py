"""Alerts in API responses.

Generated from `noonmark.schemas.api.alerts` by `noonmark.schemas.client_types`; do not edit it by hand.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class AlertItem(TypedDict):
    """An alert, open or resolved."""

    id: str

    kind: str

    severity: str

    namespace: str | None
    """null: the alert concerns the installation."""

    job_id: str | None

    job_name: str | None
    """Name of the job, if it has one."""

    run_id: str | None
    """The run concerned, or an example."""

    summary: str
    """One sentence for people."""

    raised_at: str

    seen_at: str
    """When the condition was last observed; updated from time to time."""

    resolved_at: str | None
    """null: the alert is open."""

    error_hidden: bool
    """True if error texts are hidden: the credential lacks `payloads:read`."""


class DeliveryItem(TypedDict):
    """Delivery of one change to one channel."""

    channel: Literal["webhook", "alertmanager"]

    change: Literal["raised", "resolved"]

    state: Literal["waiting", "sent", "given_up"]
    """given_up: the receiver refused it for hours; it is not sent again."""

    attempts: int

    due_at: str | None
    """Time of the next attempt; null: none."""

    sent_at: str | None
    """Time of the last successful delivery."""

    last_error: str | None
    """Why the last attempt failed."""


class AlertDetail(AlertItem):
    """An alert with its details and deliveries."""

    fingerprint: str
    """Equal for alerts about the same condition."""

    details: dict[str, Any]
    """Numbers and texts; they depend on the kind."""

    deliveries: list[DeliveryItem]
