"""Alerts as the API shows them.

Made from `noonmark.schemas.api.alerts`, not by hand: see `noonmark.schemas.client_types`.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class AlertItem(TypedDict):
    """Something that is or was wrong."""

    id: str

    kind: str

    severity: str

    namespace: str | None
    """null: the installation is meant."""

    job_id: str | None

    job_name: str | None
    """Of the job, where it has one."""

    run_id: str | None
    """The run that is meant, or an example."""

    summary: str
    """One sentence for people."""

    raised_at: str

    seen_at: str
    """When it was last found to be so; renewed now and then."""

    resolved_at: str | None
    """null: it is open."""

    error_hidden: bool
    """True where the credential may not see error texts (`payloads:read`)."""


class DeliveryItem(TypedDict):
    """How far one channel was told of one change."""

    channel: Literal["webhook", "alertmanager"]

    change: Literal["raised", "resolved"]

    state: Literal["waiting", "sent", "given_up"]
    """given_up: it was refused for hours, and is not tried any more."""

    attempts: int

    due_at: str | None
    """When it is told next; null: not any more."""

    sent_at: str | None
    """When it was last told."""

    last_error: str | None
    """Why the last attempt failed."""


class AlertDetail(AlertItem):
    """An alert with its figures, and how it was told."""

    fingerprint: str
    """Equal for alerts of one thing that is wrong."""

    details: dict[str, Any]
    """Figures and texts; which ones depends on the kind."""

    deliveries: list[DeliveryItem]
