"""Alerts: raised once, resolved once, told with the change or not at all."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.monitoring.alerts import AlertChange, FoundAlert
from noonmark.schemas.events.alerts import alert_event
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.outcomes.events import RawEvent, insert_events

RENEW_SECONDS: Final = 30.0
"""How often the figures of an alert that stays open are written anew."""


class AlertRow(NamedTuple):
    """An alert as it stands; `resolved_at` None: it is open."""

    id: UUID
    fingerprint: str
    kind: str
    severity: str
    namespace: str | None
    job_id: UUID | None
    run_id: UUID | None
    summary: str
    details: dict[str, Any]
    raised_at: datetime
    resolved_at: datetime | None


def raise_alerts(
    connection: psycopg.Connection,
    found: Sequence[FoundAlert],
    *,
    channels: Collection[str],
    topic: str,
    shards: int,
) -> list[AlertRow]:
    """Raise what is not open yet, with a delivery for each channel and an event, in one transaction.

    Several observers may find the same: one of them raises it, the others raise nothing.

    Args:
        connection: autocommit, or in the transaction that is to be the one.
        found: what is wrong.
        channels: of `AlertChannel`: those that are configured.
        topic: where the events go.
        shards: of the installation.

    Returns:
        The alerts that this call has raised.
    """
    unique = list({one.fingerprint: one for one in found}.values())
    if not unique:
        return []
    with connection.transaction(), connection.cursor(row_factory=row_of(AlertRow)) as cursor:
        raised = cursor.execute(
            statement("raise_alerts"),
            {
                "fingerprints": [one.fingerprint for one in unique],
                "kinds": [one.kind.value for one in unique],
                "severities": [one.severity.value for one in unique],
                "namespaces": [one.namespace for one in unique],
                "job_ids": [one.job_id for one in unique],
                "run_ids": [one.run_id for one in unique],
                "summaries": [one.summary for one in unique],
                "details": [orjson.dumps(one.details).decode() for one in unique],
                "channels": list(channels),
                "renew_seconds": RENEW_SECONDS,
            },
        ).fetchall()
        _announce(connection, AlertChange.RAISED, raised, topic=topic, shards=shards)
    return raised


def resolve_alerts(
    connection: psycopg.Connection,
    fingerprints: Collection[str],
    *,
    channels: Collection[str],
    topic: str,
    shards: int,
) -> list[AlertRow]:
    """End the open alerts of these fingerprints, as `raise_alerts` raises them; return those it has ended."""
    if not fingerprints:
        return []
    with connection.transaction(), connection.cursor(row_factory=row_of(AlertRow)) as cursor:
        resolved = cursor.execute(
            statement("resolve_alerts"), {"fingerprints": list(fingerprints), "channels": list(channels)}
        ).fetchall()
        _announce(connection, AlertChange.RESOLVED, resolved, topic=topic, shards=shards)
    return resolved


def _announce(
    connection: psycopg.Connection,
    change: AlertChange,
    alerts: Sequence[AlertRow],
    *,
    topic: str,
    shards: int,
) -> None:
    events = []
    for alert in alerts:
        key = alert.fingerprint.encode()
        value = alert_event(change, **{"alert_id": alert.id, **_fields(alert)})
        # One slice and one key for a fingerprint: that it is over is never told before that it began.
        events.append(RawEvent(zlib.crc32(key) % shards, topic, key, value))
    insert_events(connection, events)


def _fields(alert: AlertRow) -> dict[str, Any]:
    fields = alert._asdict()
    del fields["id"]
    return fields
