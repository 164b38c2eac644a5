"""Pending deliveries of alert changes to channels: leases them, and records what was sent or failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import namedtuple_row

from noonmark.core.monitoring.alerts import AlertChange
from noonmark.store.database.statements import statement

AGAIN_SECONDS: Final = 60.0
"""How often a channel that needs reminders receives an open alert."""

MOST_ATTEMPTS: Final = 40
"""With the longest delay of 15 minutes, this takes about eight hours."""

_CAP: Final = 10_000


class Delivery(NamedTuple):
    """One change of an alert, to be sent to one channel.

    Attributes:
        alert_id: id of the alert.
        change: `raised` or `resolved`.
        attempts: number of attempts, including this one; also the guard when the outcome is recorded.
        now: the database's time when it was leased.
        kind: the kind of the alert; the other fields are further columns of `alerts`.
        job_name: name of its job, if it has one.
    """

    alert_id: UUID
    change: str
    attempts: int
    now: datetime
    kind: str
    severity: str
    namespace: str | None
    job_id: UUID | None
    run_id: UUID | None
    summary: str
    details: Mapping[str, Any]
    raised_at: datetime
    resolved_at: datetime | None
    fingerprint: str
    job_name: str | None

    @property
    def message_id(self) -> str:
        """The same id for every attempt, by which receivers recognise a repeated delivery."""
        return f"{self.alert_id}-{self.change}"


class Failure(NamedTuple):
    """A failed delivery: its error, the seconds until the retry, and whether it is abandoned."""

    delivery: Delivery
    error: str
    wait_seconds: float
    give_up: bool


def claim(
    connection: psycopg.Connection, channel: str, *, most: int, lease_seconds: float
) -> Sequence[Delivery]:
    """Lease the due deliveries of a channel; no other observer gets them before the lease ends.

    Args:
        connection: a connection in autocommit.
        channel: `webhook` or `alertmanager`.
        most: maximum number of deliveries.
        lease_seconds: a time longer than it takes to send them.
    """
    values = {"channel": channel, "most": most, "lease_seconds": lease_seconds}
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        rows = cursor.execute(statement("claim_deliveries"), values).fetchall()
    return sorted((Delivery(**row._asdict()) for row in rows), key=lambda one: (one.raised_at, one.change))


def retire(connection: psycopg.Connection, channel: str) -> int:
    """Stop the reminders of resolved alerts; only for a channel that needs reminders."""
    return connection.execute(statement("retire_deliveries"), {"channel": channel}).rowcount


def recall(connection: psycopg.Connection, channel: str, *, longest_seconds: float) -> int:
    """Make deliveries due that wait for longer than the longest delay, because the clock was set back."""
    values = {"channel": channel, "longest_seconds": longest_seconds}
    return connection.execute(statement("reset_overdue_deliveries"), values).rowcount


def note_sent(
    connection: psycopg.Connection, channel: str, sent: Sequence[Delivery], *, reminded: bool
) -> int:
    """Record sent deliveries; return how many were still leased by this caller.

    Args:
        connection: a connection in autocommit.
        channel: the channel that accepted them.
        sent: the deliveries.
        reminded: whether the channel needs reminders of open alerts.
    """
    if not sent:
        return 0
    repeats = [reminded and one.change == AlertChange.RAISED for one in sent]
    values = {**_keys(channel, sent), "again": repeats, "again_seconds": AGAIN_SECONDS}
    return connection.execute(statement("mark_deliveries_sent"), values).rowcount


def note_failed(connection: psycopg.Connection, channel: str, failed: Sequence[Failure]) -> tuple[int, int]:
    """Record failures; return how many the caller still leased, and how many of them are abandoned."""
    if not failed:
        return 0, 0
    values = {
        **_keys(channel, [one.delivery for one in failed]),
        "errors": [one.error for one in failed],
        "wait_seconds": [one.wait_seconds for one in failed],
        "given_up": [one.give_up for one in failed],
    }
    rows = connection.execute(statement("mark_deliveries_failed"), values).fetchall()
    return len(rows), sum(row[0] for row in rows)


def count_waiting(connection: psycopg.Connection, channel: str) -> int:
    """Count the unsent deliveries of a channel, up to 10,000."""
    row = connection.execute(
        statement("count_deliveries_waiting"), {"channel": channel, "cap": _CAP}
    ).fetchone()
    return int(row[0]) if row else 0


def _keys(channel: str, deliveries: Sequence[Delivery]) -> dict[str, Any]:
    return {
        "channel": channel,
        "alerts": [one.alert_id for one in deliveries],
        "changes": [one.change for one in deliveries],
        "attempts": [one.attempts for one in deliveries],
    }
