"""Limits of a namespace: how many runs of the jobs that name one may run at a time and start per period."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN, NAMESPACE_RULE
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.schedules.time_facts import change_time_facts

LONGEST_FILL_DAYS: Final = 30
"""The longest time that an empty bucket may take to fill; buckets unused for longer are deleted as full."""

MOST: Final = 1_000_000_000
_RATE_PATTERN: Final = re.compile(r"(\d{1,10})/(\d+(?:\.\d+)?)?(ms|s|m|h|d)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NAMED: Final = 5


class LimitError(Exception):
    """A limit cannot be set as requested; the message says why."""


class LimitInUseError(LimitError):
    """A limit cannot be deleted while jobs name it."""


class Figures(NamedTuple):
    """What a limit allows.

    Attributes:
        max_running: runs in flight at a time; None: any number.
        rate_count: runs that may start in `rate_seconds`; None: any number.
        rate_seconds: the period of `rate_count`.
        burst: runs that may start at once after a quiet time; None: `rate_count`.
    """

    max_running: int | None = None
    rate_count: int | None = None
    rate_seconds: float | None = None
    burst: int | None = None


class LimitRow(NamedTuple):
    """A limit as it is listed, with its held slots and waiting runs over all its keys."""

    namespace: str
    name: str
    max_running: int | None
    rate_count: int | None
    rate_seconds: float | None
    burst: int | None
    in_use: int
    waiting: int
    updated_at: datetime


def parse_rate(text: str) -> tuple[int, float]:
    """Parse a rate such as `100/60s`, `5/s` or `1000/h` into runs and seconds.

    Raises:
        LimitError: the text is not a valid rate.
    """
    found = _RATE_PATTERN.fullmatch(text.strip())
    count = int(found[1]) if found else 0
    seconds = float(found[2] or 1) * _UNITS[found[3]] if found else 0.0
    if not found or not 0 < count <= MOST or not 0 < seconds <= LONGEST_FILL_DAYS * 86400:
        raise LimitError(
            f"{text!r} is not a valid rate; expected runs per time, such as 100/60s, 5/s or 1000/h"
        )
    return count, seconds


def set_limit(connection: psycopg.Connection, namespace: str, name: str, figures: Figures) -> bool:
    """Create or update a limit; False if nothing changed. Waiting runs use the new limit at once.

    Args:
        connection: no transaction is open.
        namespace: the namespace whose jobs may name it.
        name: the name of the limit.
        figures: what it allows; None means no bound.

    Raises:
        LimitError: name or figures are invalid.
    """
    check_limit(namespace, name, figures)
    with connection.transaction():
        change_time_facts(connection)
        row = connection.execute(
            statement("upsert_limit"), {"namespace": namespace, "name": name, **figures._asdict()}
        ).fetchone()
    return row is not None


def delete_limit(connection: psycopg.Connection, namespace: str, name: str) -> bool:
    """Delete a limit; False if it does not exist.

    Raises:
        LimitInUseError: jobs that may still run name it.
    """
    with connection.transaction():
        change_time_facts(connection)
        users: list[tuple[UUID, str | None]] = connection.execute(
            statement("list_limit_jobs"), {"namespace": namespace, "name": name, "limit": _NAMED + 1}
        ).fetchall()
        if users:
            more = " and others" if len(users) > _NAMED else ""
            shown = ", ".join(job_name or str(job_id) for job_id, job_name in users[:_NAMED])
            raise LimitInUseError(
                f"limit {name} of namespace {namespace} is used by {shown}{more}: update or cancel them first"
            )
        deleted = connection.execute(
            "delete from limits where namespace = %s and name = %s", [namespace, name]
        )
        return deleted.rowcount == 1


def list_limits(connection: psycopg.Connection, namespace: str | None = None) -> list[LimitRow]:
    """List the limits of one namespace or of all."""
    with connection.cursor(row_factory=row_of(LimitRow)) as cursor:
        return cursor.execute(statement("list_limits"), {"namespace": namespace}).fetchall()


def check_limit(namespace: str, name: str, figures: Figures) -> None:
    """Refuse an invalid limit.

    Raises:
        LimitError: name or figures are invalid.
    """
    if not re.fullmatch(NAMESPACE_PATTERN, namespace):
        raise LimitError(f"{namespace!r} is not a valid namespace name; expected {NAMESPACE_RULE}")
    if not re.fullmatch(NAMESPACE_PATTERN, name):
        raise LimitError(f"{name!r} is not a valid limit name; expected {NAMESPACE_RULE}")
    if figures.max_running is None and figures.rate_count is None:
        raise LimitError("a limit needs --max-running, --rate, or both")
    if any(number is not None and not 0 < number <= MOST for number in (figures.max_running, figures.burst)):
        raise LimitError(
            f"--max-running or --burst is out of range; expected a whole number from 1 to {MOST}"
        )
    if figures.rate_count is None or figures.rate_seconds is None:
        if figures.burst is not None:
            raise LimitError("--burst needs --rate")
        return
    seconds = (figures.burst or figures.rate_count) * figures.rate_seconds / figures.rate_count
    if seconds > LONGEST_FILL_DAYS * 86400:
        raise LimitError(
            f"a burst of {figures.burst or figures.rate_count} takes {seconds / 86400:.0f} days to fill at"
            f" this rate; expected at most {LONGEST_FILL_DAYS} days, so a lower --burst"
        )
