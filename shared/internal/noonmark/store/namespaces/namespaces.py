"""Namespaces: the default time zone of their jobs, caps and quotas. For pauses see `pauses.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.zones.zones import load_zone
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN, NAMESPACE_RULE
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.schedules.time_facts import change_time_facts

_MOST_IN_FLIGHT: Final = 1_000_000
_MOST_JOBS: Final = 10_000_000

_NAMED: Final = 5
"""Maximum number of calendars that an error names."""


class NamespaceRow(NamedTuple):
    """A row of the listing of namespaces; `paused_at` is None while it is not paused."""

    name: str
    timezone: str
    paused_at: datetime | None
    pause_reason: str | None
    max_in_flight: int | None
    max_jobs: int | None
    updated_at: datetime | None


class JobCount(NamedTuple):
    """How many recurring jobs of a namespace are in a state; `paused_by` is set only for paused ones."""

    state: str
    paused_by: str | None
    jobs: int


class NamespaceError(Exception):
    """Another user paused or resumed the namespace while this process worked on it."""


class NamespaceNameError(NamespaceError):
    """A name is not valid for a namespace."""


class NamespaceInUseError(NamespaceError):
    """A namespace cannot be reset to its defaults while it is paused or has calendars."""


def set_timezone(connection: psycopg.Connection, name: str, timezone: str) -> bool:
    """Set the zone of schedules that name none; return False if it is set already.

    Existing jobs keep the zone that they were created with, which is part of their stored schedule.

    Args:
        connection: a connection; a transaction may be open.
        name: name of the namespace.
        timezone: IANA name.

    Raises:
        NamespaceNameError: the name is not valid for a namespace.
        ZoneError: no zone has this name; the error suggests similar ones.
    """
    check_name(name)
    zone = load_zone(timezone)
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("insert_namespace"), {"name": name})
        moved = connection.execute(statement("set_namespace_zone"), {"name": name, "timezone": zone.name})
        return moved.rowcount == 1


def mark_cap(connection: psycopg.Connection, name: str, most: int | None) -> bool:
    """Cap the runs of each lane of a namespace that are in flight at a time; None removes the cap.

    Runs that are queued already continue and are not counted. After the commit, and after `plan_some` was
    called for the jobs of `TO_PLAN`, every due run requests a slot. Returns False if nothing changes.

    Args:
        connection: a connection; a transaction may be open.
        name: name of the namespace.
        most: at least 1.

    Raises:
        NamespaceNameError: the name is not valid for a namespace, or the number for a cap.
    """
    check_name(name)
    if most is not None and not 0 < most <= _MOST_IN_FLIGHT:
        raise NamespaceNameError(
            f"{most} is not a valid cap: use a whole number from 1 to {_MOST_IN_FLIGHT:,}"
        )
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("insert_namespace"), {"name": name})
        capped = connection.execute(statement("set_namespace_cap"), {"name": name, "most": most})
        return capped.rowcount == 1


def plan_some(connection: psycopg.Connection, ids: Sequence[UUID]) -> None:
    """Let the planner handle one-time instants of jobs, because Postgres claims them without checking caps.

    Jobs that are created while a cap is set need no such change.
    """
    connection.execute(statement("plan_one_time_timers"), {"ids": list(ids)})


def set_max_jobs(connection: psycopg.Connection, name: str, most: int | None) -> bool:
    """Set how many recurring jobs that are not cancelled a namespace may have; None means any number.

    Existing jobs stay, even if there are more of them.

    Args:
        connection: a connection; a transaction may be open.
        name: name of the namespace.
        most: at least 1.

    Returns:
        False if the quota is the same already.

    Raises:
        NamespaceNameError: the name is not valid for a namespace, or the number for a quota.
    """
    check_name(name)
    if most is not None and not 0 < most <= _MOST_JOBS:
        raise NamespaceNameError(f"{most} is not a valid quota: use a whole number from 1 to {_MOST_JOBS:,}")
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("insert_namespace"), {"name": name})
        bound = connection.execute(statement("set_namespace_quota"), {"name": name, "most": most})
        return bound.rowcount == 1


def delete_namespace(connection: psycopg.Connection, name: str) -> bool:
    """Reset a namespace to its defaults; return False if it had no settings.

    Jobs stay unchanged and keep the zone that they were created with.

    Args:
        connection: a connection; a transaction may be open.
        name: name of the namespace.

    Raises:
        NamespaceInUseError: it is paused, some of its jobs are still paused, or it has calendars.
    """
    with connection.transaction():
        change_time_facts(connection)
        if is_paused(connection, name) or any(
            count.paused_by == "namespace" for count in count_jobs(connection, name)
        ):
            raise NamespaceInUseError(
                f"namespace {name} is paused, or some of its jobs still are: run"
                f" `noonmark namespace resume {name}` first"
            )
        calendars = connection.execute(
            "select name from calendars where namespace = %s order by name limit %s", [name, _NAMED + 1]
        ).fetchall()
        if calendars:
            more = " and others" if len(calendars) > _NAMED else ""
            shown = ", ".join(row[0] for row in calendars[:_NAMED])
            raise NamespaceInUseError(f"namespace {name} has the calendars {shown}{more}: delete them first")
        return connection.execute("delete from namespaces where name = %s", [name]).rowcount == 1


def without_jobs(connection: psycopg.Connection, name: str) -> str | None:
    """Return a hint if a namespace has no recurring job, with a similar name if there is one; else None.

    `default` gets no hint, because it is not a misspelt name.
    """
    if name == "default":
        return None
    spaces = [row.name for row in list_namespaces(connection)]
    if name in spaces and count_jobs(connection, name):
        return None
    return name_hint(name, spaces)


def name_hint(name: str, spaces: Sequence[str]) -> str:
    """Return the hint that a namespace has no recurring job, with a similar existing name."""
    near = get_close_matches(name, [one for one in spaces if one != name], n=1, cutoff=0.6)
    return f"namespace {name!r} has no recurring job yet" + (f"; did you mean {near[0]!r}?" if near else "")


def list_namespaces(connection: psycopg.Connection, name: str | None = None) -> list[NamespaceRow]:
    """List namespaces that have settings, a pause or a recurring job; `name` selects one of them."""
    with connection.cursor(row_factory=row_of(NamespaceRow)) as cursor:
        return cursor.execute(statement("list_namespaces"), {"name": name}).fetchall()


def count_jobs(connection: psycopg.Connection, name: str) -> list[JobCount]:
    """Count the recurring jobs of a namespace by state."""
    with connection.cursor(row_factory=row_of(JobCount)) as cursor:
        return cursor.execute(statement("count_namespace_jobs"), {"name": name}).fetchall()


def check_name(name: str) -> None:
    """Check the name of a namespace.

    Raises:
        NamespaceNameError: it is not valid.
    """
    if not re.fullmatch(NAMESPACE_PATTERN, name):
        raise NamespaceNameError(f"{name!r} is not a valid namespace name; expected {NAMESPACE_RULE}")


def is_paused(connection: psycopg.Connection, name: str) -> bool:
    """Return whether a namespace is paused."""
    row = connection.execute(
        "select paused_at is not null from namespaces where name = %s", [name]
    ).fetchone()
    return bool(row and row[0])
