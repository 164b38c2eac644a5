"""Events about alerts that noonmark publishes: raised and resolved."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import Field

from noonmark.core.ids import uuid7
from noonmark.core.monitoring.alerts import AlertChange, AlertKind, Severity
from noonmark.schemas.events.envelope import render_structured
from noonmark.schemas.events.published import SOURCE, Published, open_enum

RAISED: Final = "noonmark.alert.raised.v1"
RESOLVED: Final = "noonmark.alert.resolved.v1"

TYPES: Final = {AlertChange.RAISED: RAISED, AlertChange.RESOLVED: RESOLVED}

KindName = Annotated[str, open_enum(list(AlertKind), "Kind of the alert.")]
SeverityName = Annotated[str, open_enum(list(Severity), "Severity of the alert.")]


class Alert(Published):
    """An alert, from when its condition was first observed until it is resolved."""

    alert_id: UUID
    fingerprint: Annotated[
        str, Field(description="Equal for alerts about the same condition; at most one of them is open.")
    ]
    kind: KindName
    severity: SeverityName
    namespace: Annotated[str | None, Field(description="null: the alert concerns the installation.")] = None
    job_id: UUID | None = None
    run_id: Annotated[UUID | None, Field(description="The run concerned, or an example.")] = None
    summary: Annotated[str, Field(description="One sentence for people.")]
    details: Annotated[dict[str, Any], Field(description="Numbers and texts; they depend on the kind.")]
    raised_at: datetime


class AlertRaised(Alert):
    """An alert was raised."""


class AlertResolved(Alert):
    """An alert was resolved."""

    resolved_at: datetime


MODELS: Final[dict[str, type[Published]]] = {RAISED: AlertRaised, RESOLVED: AlertResolved}


def alert_event(
    change: AlertChange,
    *,
    alert_id: UUID,
    fingerprint: str,
    kind: str,
    severity: str,
    namespace: str | None,
    job_id: UUID | None,
    run_id: UUID | None,
    summary: str,
    details: dict[str, Any],
    raised_at: datetime,
    resolved_at: datetime | None,
) -> bytes:
    """Return the structured-mode value of the event about one change; the arguments are fields of `Alert`."""
    data: dict[str, Any] = {
        "alert_id": alert_id,
        "fingerprint": fingerprint,
        "kind": kind,
        "severity": severity,
        "namespace": namespace,
        "job_id": job_id,
        "run_id": run_id,
        "summary": summary,
        "details": details,
        "raised_at": raised_at,
    }
    if resolved_at is not None:
        data["resolved_at"] = resolved_at
    return render_structured(
        id=str(uuid7()),
        source=SOURCE,
        type=TYPES[change],
        data=data,
        subject=str(alert_id),
        time=resolved_at or raised_at,
    )
