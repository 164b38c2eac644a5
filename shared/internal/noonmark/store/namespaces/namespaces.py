"""Namespaces: the default zone of their jobs, their caps and quotas; their pauses: `namespace_pauses`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.zones.zones import load_zone
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.schedules.time_facts import change_time_facts

NAME_RULE: Final = "1 to 63 of a-z, 0-9, '-' and '_', the first a letter or digit"

_MOST_IN_FLIGHT: Final = 1_000_000
_MOST_JOBS: Final = 10_000_000

_NAMED: Final = 5
"""Calendars that a refusal names."""


class NamespaceRow(NamedTuple):
    """A namespace as it is listed; `paused_at` is None while it is not paused."""

    name: str
    timezone: str
    paused_at: datetime | None
    pause_reason: str | None
    max_in_flight: int | None
    max_jobs: int | None
    updated_at: datetime | None


class JobCount(NamedTuple):
    """How many recurring jobs of a namespace are in a state; `paused_by` only of paused ones."""

    state: str
    paused_by: str | None
    jobs: int


class NamespaceError(Exception):
    """The pause of a namespace was changed by others while this process worked on it."""


class NamespaceNameError(NamespaceError):
    """A name is none for a namespace."""


class NamespaceInUseError(NamespaceError):
    """A namespace cannot go back to its defaults while it is paused, or has calendars."""


def set_timezone(connection: psycopg.Connection, name: str, timezone: str) -> bool:
    """Set the zone of schedules that name none; False if it is that already.

    Jobs that exist keep the zone that they were made with: it is part of their stored schedule.

    Args:
        connection: a transaction may be open.
        name: of the namespace.
        timezone: IANA name.

    Raises:
        NamespaceNameError: the name is none for a namespace.
        ZoneError: no zone has this name; it names some that are like it.
    """
    check_name(name)
    zone = load_zone(timezone)
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("insert_namespace"), {"name": name})
        moved = connection.execute(statement("set_namespace_zone"), {"name": name, "timezone": zone.name})
        return moved.rowcount == 1


def mark_cap(connection: psycopg.Connection, name: str, most: int | None) -> bool:
    """Cap the runs of each lane of a namespace that are under way at a time; None takes the cap away.

    Runs that are queued already go on and are not counted; from the commit on every run that comes due asks
    for room, once `plan_some` has had the jobs of `TO_PLAN`. False if that is its cap already.

    Args:
        connection: a transaction may be open.
        name: of the namespace.
        most: from 1 on.

    Raises:
        NamespaceNameError: the name is none for a namespace, or the number none for a cap.
    """
    check_name(name)
    if most is not None and not 0 < most <= _MOST_IN_FLIGHT:
        raise NamespaceNameError(f"{most} is no cap: use a whole number from 1 to {_MOST_IN_FLIGHT:,}")
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("insert_namespace"), {"name": name})
        capped = connection.execute(statement("set_namespace_cap"), {"name": name, "most": most})
        return capped.rowcount == 1


def plan_some(connection: psycopg.Connection, ids: Sequence[UUID]) -> None:
    """Have jobs planned one by one: Postgres claims one-time instants by itself, without a look at caps.

    Jobs that are made under the cap have no such timers.
    """
    connection.execute(statement("plan_one_time_timers"), {"ids": list(ids)})


def set_max_jobs(connection: psycopg.Connection, name: str, most: int | None) -> bool:
    """Set how many recurring jobs of a namespace there may be that are not cancelled; None: any number.

    Jobs that exist stay, also where there are more of them.

    Args:
        connection: a transaction may be open.
        name: of the namespace.
        most: from 1 on.

    Returns:
        False if that is its quota already.

    Raises:
        NamespaceNameError: the name is none for a namespace, or the number none for a quota.
    """
    check_name(name)
    if most is not None and not 0 < most <= _MOST_JOBS:
        raise NamespaceNameError(f"{most} is no quota: use a whole number from 1 to {_MOST_JOBS:,}")
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("insert_namespace"), {"name": name})
        bound = connection.execute(statement("set_namespace_quota"), {"name": name, "most": most})
        return bound.rowcount == 1


def delete_namespace(connection: psycopg.Connection, name: str) -> bool:
    """Forget what was set for a namespace, so that it has the defaults again; False if nothing was.

    Jobs stay as they are, also with the zone that they were made with.

    Args:
        connection: a transaction may be open.
        name: of the namespace.

    Raises:
        NamespaceInUseError: it is paused, jobs of it are still held, or it has calendars.
    """
    with connection.transaction():
        change_time_facts(connection)
        if is_paused(connection, name) or any(
            count.paused_by == "namespace" for count in count_jobs(connection, name)
        ):
            raise NamespaceInUseError(
                f"namespace {name} is paused, or holds jobs still: `noonmark namespace resume {name}` first"
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
    """Return a hint where no recurring job is in a namespace, with a name that may be meant; else None.

    Of `default` there is nothing to say: nobody misspelt it.
    """
    if name == "default":
        return None
    spaces = [row.name for row in list_namespaces(connection)]
    if name in spaces and count_jobs(connection, name):
        return None
    return name_hint(name, spaces)


def name_hint(name: str, spaces: Sequence[str]) -> str:
    """Say that a namespace has no recurring job, and which of those there are may be meant."""
    near = get_close_matches(name, [one for one in spaces if one != name], n=1, cutoff=0.6)
    return f"no recurring job is in namespace {name!r} yet" + (f"; did you mean {near[0]!r}?" if near else "")


def list_namespaces(connection: psycopg.Connection, name: str | None = None) -> list[NamespaceRow]:
    """List namespaces that were set or paused, or have a recurring job; None: all of them."""
    with connection.cursor(row_factory=row_of(NamespaceRow)) as cursor:
        return cursor.execute(statement("list_namespaces"), {"name": name}).fetchall()


def count_jobs(connection: psycopg.Connection, name: str) -> list[JobCount]:
    """Count the recurring jobs of a namespace by state."""
    with connection.cursor(row_factory=row_of(JobCount)) as cursor:
        return cursor.execute(statement("count_namespace_jobs"), {"name": name}).fetchall()


def check_name(name: str) -> None:
    """Refuse what is no name for a namespace.

    Raises:
        NamespaceNameError: it is none.
    """
    if not re.fullmatch(NAMESPACE_PATTERN, name):
        raise NamespaceNameError(f"{name!r} is no name for a namespace: use {NAME_RULE}")


def is_paused(connection: psycopg.Connection, name: str) -> bool:
    """Tell whether a namespace is paused."""
    row = connection.execute(
        "select paused_at is not null from namespaces where name = %s", [name]
    ).fetchone()
    return bool(row and row[0])
