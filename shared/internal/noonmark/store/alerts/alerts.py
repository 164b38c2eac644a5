"""Raises and resolves alerts, each once, with their deliveries and events in the same transaction."""

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
"""How often the figures of an open alert are updated."""


class AlertRow(NamedTuple):
    """An alert; `resolved_at` is None while it is open."""

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
    """Raise alerts that are not open yet, each with an event and a delivery per channel, in one transaction.

    Several observers may find the same problem: only one of them raises the alert.

    Args:
        connection: a connection in autocommit, or in the transaction to use.
        found: the problems found.
        channels: the configured channels of `AlertChannel`.
        topic: the topic of the events.
        shards: number of shards of the installation.

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
    """Resolve the open alerts with these fingerprints, with events and deliveries; return those resolved."""
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
        # Events of a fingerprint share a slice and a key, so the resolution never overtakes the start.
        events.append(RawEvent(zlib.crc32(key) % shards, topic, key, value))
    insert_events(connection, events)


def _fields(alert: AlertRow) -> dict[str, Any]:
    fields = alert._asdict()
    del fields["id"]
    return fields
