"""What documents are checked with: the database's time, and facts (default zones, calendars, limits).

A lock keeps the facts unchanged while a transaction relies on them.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import psycopg

from noonmark.core.calendars.calendar import Calendar, CalendarError
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.store.database.scope import outside_scope
from noonmark.store.database.statements import statement

TIME_FACTS_LOCK: Final = 0x6E6F6F6E_74696D65
"""Advisory lock: shared for planning and writing schedules, exclusive for changing the facts."""


class Moment(NamedTuple):
    """Time and facts of one moment."""

    now: datetime
    ledger_floor: datetime
    facts: TimeFacts


class DatabaseClock:
    """Continues from the last time that the database reported, to check a batch before it is sent.

    One thread can set it while another reads it.
    """

    def __init__(self) -> None:
        self._set: tuple[Moment, float] | None = None

    def refresh(self, connection: psycopg.Connection) -> None:
        """Read time, ledger floor and facts from the database."""
        row = connection.execute("select noonmark_now(), ledger_floor, facts from install").fetchone()
        assert row is not None
        now, floor, number = row
        known = self._set[0].facts if self._set else None
        facts = known if known is not None and known.number == number else read_time_facts(connection)
        self._set = (Moment(now, floor, facts), time.monotonic())

    def observe(self, now: datetime) -> None:
        """Set the time to one that a statement returned."""
        if self._set is not None:
            self._set = (self._set[0]._replace(now=now), time.monotonic())

    def moment(self) -> Moment | None:
        """Return the current moment; None before the first refresh."""
        if self._set is None:
            return None
        moment, at = self._set
        return moment._replace(now=moment.now + timedelta(seconds=time.monotonic() - at))


def share_time_facts(connection: psycopg.Connection, *, wait: bool = False) -> bool:
    """Keep the facts unchanged until the open transaction ends; return False if a change is in progress.

    Later statements see all earlier changes.
    """
    if wait:
        connection.execute(statement("lock_time_facts"), {"lock": TIME_FACTS_LOCK})
        return True
    row = connection.execute("select pg_try_advisory_xact_lock_shared(%s)", [TIME_FACTS_LOCK]).fetchone()
    return bool(row and row[0])


def change_time_facts(connection: psycopg.Connection) -> None:
    """Wait for all users of the facts, and keep them out until the open transaction ends."""
    connection.execute("select pg_advisory_xact_lock(%s)", [TIME_FACTS_LOCK])


def facts_number(connection: psycopg.Connection) -> int:
    """Return the number that every change of the facts increments."""
    row = connection.execute("select facts from install").fetchone()
    assert row is not None
    number: int = row[0]
    return number


def read_time_facts(connection: psycopg.Connection) -> TimeFacts:
    """Read default zones, pauses, calendars, limits and caps of all namespaces, whatever the scope.

    Processes cache them for all requests, so they must not depend on what one request can see.
    """
    with outside_scope(connection):
        return _read_time_facts(connection)


def _read_time_facts(connection: psycopg.Connection) -> TimeFacts:
    # Read the number first: if a change follows, the number is too low, and the facts are read again.
    number = facts_number(connection)
    zones: dict[str, str] = {}
    paused: set[str] = set()
    capped: set[str] = set()
    bounded: set[str] = set()
    for name, zone, is_paused, has_cap, has_quota in connection.execute(
        "select name, timezone, paused_at is not null, max_in_flight is not null, max_jobs is not null"
        " from namespaces"
    ).fetchall():
        if zone != "UTC":
            zones[name] = zone
        if is_paused:
            paused.add(name)
        if has_cap:
            capped.add(name)
        if has_quota:
            bounded.add(name)
    calendars: defaultdict[str, dict[str, Calendar]] = defaultdict(dict)
    rows = connection.execute(
        "select namespace, name, body from calendars join calendar_contents using (digest)"
    ).fetchall()
    for namespace, name, body in rows:
        # Documents that name an unreadable calendar are refused; others are not affected.
        with contextlib.suppress(CalendarError):
            calendars[namespace][name] = Calendar.parse(body)
    limits: defaultdict[str, set[str]] = defaultdict(set)
    for namespace, name in connection.execute("select namespace, name from limits").fetchall():
        limits[namespace].add(name)
    return TimeFacts(
        number,
        zones,
        frozenset(paused),
        dict(calendars),
        {namespace: frozenset(names) for namespace, names in limits.items()},
        frozenset(capped),
        frozenset(bounded),
    )


def active_zone_data(connection: psycopg.Connection) -> str | None:
    """Return the version of the zone data that the installation plans with; None if none was activated."""
    row = connection.execute("select version from zone_data where active").fetchone()
    return row[0] if row else None
