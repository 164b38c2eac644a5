"""A test alert, for trying a channel."""

from __future__ import annotations

from datetime import UTC, datetime

from noonmark.core.ids import uuid7
from noonmark.core.monitoring.alerts import AlertChange, Severity
from noonmark.store.alerts.deliveries import Delivery


def trial() -> Delivery:
    """Create a test alert. The observer raises none of its kind; Alertmanager drops it after five minutes."""
    alert, now = uuid7(), datetime.now(UTC)
    return Delivery(
        alert_id=alert,
        change=AlertChange.RAISED.value,
        attempts=1,
        now=now,
        kind="test",
        severity=Severity.WARNING.value,
        namespace=None,
        job_id=None,
        run_id=None,
        summary="A test of this channel: nothing is wrong.",
        details={},
        raised_at=now,
        resolved_at=None,
        fingerprint=f"test:{alert}",
        job_name=None,
    )
