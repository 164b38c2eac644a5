"""What documents are read with: zone data, default zones, calendars, limits; the lock on changes of these."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Final

import psycopg

from noonmark.core.calendars.calendar import Calendar, CalendarError
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.store.database.scope import outside_scope

_LOCK: Final = 0x6E6F6F6E_74696D65
"""Advisory lock: shared by whoever plans or writes schedules, exclusive for whoever changes the facts."""


def share_time_facts(connection: psycopg.Connection, *, wait: bool = False) -> bool:
    """Keep the facts as they are until the open transaction ends; False where a change is under way.

    Statements after this one see every change that came before.
    """
    if wait:
        connection.execute("select pg_advisory_xact_lock_shared(%s)", [_LOCK])
        return True
    row = connection.execute("select pg_try_advisory_xact_lock_shared(%s)", [_LOCK]).fetchone()
    return bool(row and row[0])


def change_time_facts(connection: psycopg.Connection) -> None:
    """Wait for all who use the facts, and keep them out until the open transaction ends."""
    connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])


def facts_number(connection: psycopg.Connection) -> int:
    """Return the number that every change of the facts raises."""
    row = connection.execute("select facts from install").fetchone()
    assert row is not None
    number: int = row[0]
    return number


def read_time_facts(connection: psycopg.Connection) -> TimeFacts:
    """Read default zones, pauses, calendars, limits and caps of all namespaces, whatever the scope.

    Processes keep them: what one tenant's requests may see must not be what another's are checked with.
    """
    with outside_scope(connection):
        return _read_time_facts(connection)


def _read_time_facts(connection: psycopg.Connection) -> TimeFacts:
    # The number first: a change that comes between makes it too low, and the facts are read again.
    number = facts_number(connection)
    zones: dict[str, str] = {}
    paused: set[str] = set()
    capped: set[str] = set()
    bounded: set[str] = set()
    for name, zone, held, has_cap, has_quota in connection.execute(
        "select name, timezone, paused_at is not null, max_in_flight is not null, max_jobs is not null"
        " from namespaces"
    ).fetchall():
        if zone != "UTC":
            zones[name] = zone
        if held:
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
        # Documents that name one which cannot be read are refused; the others are none the worse.
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
    """Return the version of the zone data that the installation plans with; None before any was activated."""
    row = connection.execute("select version from zone_data where active").fetchone()
    return row[0] if row else None
