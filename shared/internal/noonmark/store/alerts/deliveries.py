"""What each channel is still to be told about alerts: taken, noted as told or failed, counted."""

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
"""How often a channel that must be reminded hears of an open alert."""

MOST_ATTEMPTS: Final = 40
"""With the longest wait of 15 minutes: some eight hours."""

_CAP: Final = 10_000


class Delivery(NamedTuple):
    """One change of an alert that one channel is to be told.

    Attributes:
        alert_id: of the alert.
        change: `raised` or `resolved`.
        attempts: to tell it, this one included; also the guard by which its end is noted.
        now: the database's time when it was taken.
        kind: of the alert, and the further columns of `alerts` likewise.
        job_name: name of its job, where that has one.
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
        """The same for every attempt to tell this change: what was done under it must not be done again."""
        return f"{self.alert_id}-{self.change}"


class Failure(NamedTuple):
    """A delivery that failed, why, the seconds until it is tried again, and whether it is not."""

    delivery: Delivery
    error: str
    wait_seconds: float
    give_up: bool


def claim(
    connection: psycopg.Connection, channel: str, *, most: int, lease_seconds: float
) -> Sequence[Delivery]:
    """Take what a channel is to be told now; nobody else takes it before the lease is over.

    Args:
        connection: autocommit.
        channel: `webhook` or `alertmanager`.
        most: deliveries at once.
        lease_seconds: longer than it takes to tell them.
    """
    values = {"channel": channel, "most": most, "lease_seconds": lease_seconds}
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        rows = cursor.execute(statement("claim_deliveries"), values).fetchall()
    return sorted((Delivery(**row._asdict()) for row in rows), key=lambda one: (one.raised_at, one.change))


def retire(connection: psycopg.Connection, channel: str) -> int:
    """End reminders of alerts that are over; only for a channel that is reminded."""
    return connection.execute(statement("retire_deliveries"), {"channel": channel}).rowcount


def recall(connection: psycopg.Connection, channel: str, *, longest_seconds: float) -> int:
    """Make due what waits for longer than it can: the clock was set back since."""
    values = {"channel": channel, "longest_seconds": longest_seconds}
    return connection.execute(statement("reset_overdue_deliveries"), values).rowcount


def note_sent(
    connection: psycopg.Connection, channel: str, sent: Sequence[Delivery], *, reminded: bool
) -> int:
    """Note that a channel was told; return how many were still ours to note.

    Args:
        connection: autocommit.
        channel: the one that was told.
        sent: what it was told.
        reminded: it is to hear of open alerts again and again.
    """
    if not sent:
        return 0
    again = [reminded and one.change == AlertChange.RAISED for one in sent]
    values = {**_keys(channel, sent), "again": again, "again_seconds": AGAIN_SECONDS}
    return connection.execute(statement("mark_deliveries_sent"), values).rowcount


def note_failed(connection: psycopg.Connection, channel: str, failed: Sequence[Failure]) -> tuple[int, int]:
    """Note failures; return how many were ours to note, and how many of those are given up on."""
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
    """Count what a channel was not told yet, up to 10,000."""
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
