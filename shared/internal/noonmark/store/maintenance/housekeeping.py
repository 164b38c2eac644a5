"""Housekeeping: create and drop ledger days, prune old rows, send vanished messages again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Protocol

import psycopg

from noonmark.core.states import Lane
from noonmark.settings import Settings
from noonmark.store.database.statements import statement
from noonmark.store.documents.jobs import FIRST_ONE_OFF
from noonmark.store.limits.limits import LONGEST_FILL_DAYS

_AT_ONCE: Final = 10_000
_ROUNDS: Final = 20
"""Together more rows than one API process writes in the minute between two rounds of housekeeping."""


class RunTopicParser(Protocol):
    """Returns pool and lane of a topic's name (`noonmark.kafka.topics.Topics`)."""

    def parse_runs(self, topic: str) -> tuple[str, Lane] | None:
        """Return pool and lane, or None for any other topic."""


@dataclass(slots=True)
class HousekeepingReport:
    """The counts of one round."""

    days_made: int = 0
    days_dropped: int = 0
    days_kept_unfinished: int = 0
    days_kept_in_use: int = 0
    pruned_rows: int = 0

    @property
    def has_changes(self) -> bool:
        """Whether anything was done."""
        return any(asdict(self).values())

    def as_fields(self) -> dict[str, int]:
        """Return the counts for a log line."""
        return asdict(self)


def run_housekeeping(connection: psycopg.Connection, settings: Settings) -> HousekeepingReport:
    """Do one round of housekeeping on an autocommit connection."""
    report = HousekeepingReport()
    row = connection.execute("select (noonmark_now() at time zone 'UTC')::date").fetchone()
    assert row is not None
    today: date = row[0]
    for ahead in range(-1, settings.partitions_ahead_days + 1):
        made = connection.execute("select noonmark_make_day(%s)", [today + timedelta(days=ahead)]).fetchone()
        report.days_made += bool(made and made[0])
    _drop_days(connection, settings.retention_days, report)
    prunes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("prune_inbox", {"days": settings.inbox_days}),
        ("prune_tombstones", {"days": settings.inbox_days}),
        ("prune_backfills", {"days": settings.retention_days}),
        ("prune_buckets", {"days": LONGEST_FILL_DAYS}),
        ("prune_rejections", {"days": settings.retention_days}),
        ("prune_members", {}),
        ("prune_callbacks", {}),
        ("prune_workers", {}),
        ("prune_processes", {}),
    )
    for name, values in prunes:
        report.pruned_rows += connection.execute(statement(name), values).rowcount
    report.pruned_rows += _prune_much(connection, "prune_idempotency", {})
    report.pruned_rows += _prune_much(connection, "prune_alerts", {"days": settings.alert_days})
    report.pruned_rows += _prune_much(connection, "prune_audit", {"days": settings.audit_days})
    return report


def _prune_much(connection: psycopg.Connection, name: str, values: Mapping[str, Any]) -> int:
    """Delete rows of which each change through the API leaves one, in many short transactions."""
    pruned = 0
    for _ in range(_ROUNDS):
        with connection.transaction():
            # The database trigger on the audit log refuses all other deletes.
            connection.execute("select set_config('noonmark.prunes_audit', 'yes', true)")
            count = connection.execute(statement(name), {**values, "limit": _AT_ONCE}).rowcount
        pruned += count
        if count < _AT_ONCE:
            break
    return pruned


def _drop_days(connection: psycopg.Connection, retention_days: int, report: HousekeepingReport) -> None:
    """Drop days after retention. The floor rises first, so that nothing new can be written before it."""
    days = connection.execute(statement("list_expired_days"), {"retention_days": retention_days}).fetchall()
    if not days:
        return
    row = connection.execute("select (noonmark_now() at time zone 'UTC')::date").fetchone()
    assert row is not None
    floor = datetime.combine(row[0] - timedelta(days=retention_days), time(), UTC)
    connection.execute(statement("raise_ledger_floor"), {"floor": floor})
    for name, _day in days:
        try:
            dropped = drop_day(connection, name)
        except psycopg.errors.LockNotAvailable:
            report.days_kept_in_use += 1
            continue
        report.days_dropped += dropped
        report.days_kept_unfinished += not dropped


def drop_day(connection: psycopg.Connection, name: str) -> bool:
    """Drop one ledger day with its dependent rows; False if a row is unfinished, or extends past the floor.

    Raises:
        psycopg.errors.LockNotAvailable: another transaction uses the day, or reads the ledger for long;
            nothing was dropped.
        psycopg.errors.UndefinedTable: there is no such day.
    """
    with connection.transaction():
        # The function deletes the rows of a whole day in one statement.
        connection.execute("set local statement_timeout = '150s'")
        row = connection.execute(
            statement("drop_day"), {"day": name, "first_one_off": FIRST_ONE_OFF}
        ).fetchone()
    return bool(row and row[0])


def resend_vanished(connection: psycopg.Connection, topics: RunTopicParser) -> int:
    """Requeue queued runs whose message the consumer group has provably passed; return how many."""
    bounds = [
        (*lane, passed_until, since)
        for topic, passed_until, since in connection.execute(statement("read_resend_bounds")).fetchall()
        if (lane := topics.parse_runs(topic)) is not None
    ]
    if not bounds:
        return 0
    row = connection.execute(
        statement("resend_vanished"),
        {
            "pools": [bound[0] for bound in bounds],
            "lanes": [int(bound[1]) for bound in bounds],
            "passed_until": [bound[2] for bound in bounds],
            "since": min(bound[3] for bound in bounds),
        },
    ).fetchone()
    return int(row[0]) if row else 0
