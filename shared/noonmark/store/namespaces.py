"""Namespaces: the default zone of their jobs, and the pause of all of them at once.

A pause marks the namespace first, in a transaction that no intake overlaps: from its commit on new jobs are
made held. Those that exist follow in batches. Whatever ends the work in between, the same order given again
finishes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final, LiteralString, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from noonmark.core.words import JobState, ResumeChoice
from noonmark.core.zones import load_zone
from noonmark.schemas.policy_documents import NAMESPACE_PATTERN
from noonmark.store.job_forms import NEVER
from noonmark.store.job_pauses import free, hold
from noonmark.store.rows import row_of
from noonmark.store.statements import statement
from noonmark.store.time_facts import change_time_facts

NAME_RULE: Final = "1 to 63 of a-z, 0-9, '-' and '_', the first a letter or digit"

_Counts = TypeVar("_Counts", bound=tuple[int, ...])

_FIRST: Final = UUID(int=0)
_STRETCH: Final = 5_000
"""Jobs of any namespace that one look goes through."""

_BATCH: Final = 500
"""Jobs held or freed in one transaction: it keeps intake and claims of zoned jobs waiting."""

_TRIES: Final = 5

_MOST_IN_FLIGHT: Final = 1_000_000

_NAMED: Final = 5
"""Calendars that a refusal names."""

_GOING: Final = (JobState.ACTIVE, JobState.COMPLETED, JobState.BROKEN)
"""States of jobs that may have runs which nobody holds."""

Progress = Callable[[int, int], None]
"""Told after each batch how many jobs and runs are done so far."""


class NamespaceRow(NamedTuple):
    """A namespace as it is listed; `paused_at` is None while it is not paused."""

    name: str
    timezone: str
    paused_at: datetime | None
    pause_reason: str | None
    max_in_flight: int | None
    updated_at: datetime | None


class PauseResult(NamedTuple):
    """What pausing or resuming a namespace did.

    Attributes:
        changed: the namespace was not paused, or not active, before.
        jobs: how many jobs are held, or go on, by this call.
        runs: how many of their runs wait, or are queued again.
        jobs_with_held_instants: of a resume, how many of its jobs had instants that came due in the pause:
            they get their verdicts with the next claims.
    """

    changed: bool
    jobs: int
    runs: int
    jobs_with_held_instants: int = 0


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


class _Job(NamedTuple):
    id: UUID
    state: str
    paused_by: str | None
    shard: int
    recurring: bool


def set_timezone(connection: psycopg.Connection, name: str, timezone: str) -> bool:
    """Set the zone of schedules that name none; False if it is that already.

    Jobs that exist keep the zone that they were made with: it is part of their stored schedule.

    Args:
        connection: no transaction open.
        name: of the namespace.
        timezone: IANA name.

    Raises:
        NamespaceNameError: the name is none for a namespace.
        ZoneError: no zone has this name; it names some that are like it.
    """
    _check_name(name)
    zone = load_zone(timezone)
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("namespace_put"), {"name": name})
        moved = connection.execute(statement("namespace_set_zone"), {"name": name, "timezone": zone.name})
        return moved.rowcount == 1


def pause_namespace(
    connection: psycopg.Connection, name: str, reason: str | None = None, *, progress: Progress | None = None
) -> PauseResult:
    """Hold all jobs of a namespace, those that exist and those made from now on.

    Jobs that are paused on their own account stay so, also after the namespace's resume. Runs that are under
    way go on. Given again, it holds what an earlier call did not get to.

    Args:
        connection: in autocommit, no transaction open.
        name: of the namespace; one without any job may be paused.
        reason: for people; None keeps the one of an earlier call.
        progress: told of each batch.

    Raises:
        NamespaceNameError: the name is none for a namespace.
        NamespaceError: somebody resumes it at the same time.
    """
    _check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        before = _paused(connection, name)
        connection.execute(statement("namespace_put"), {"name": name})
        connection.execute(statement("namespace_mark_paused"), {"name": name, "reason": reason})
    jobs = runs = 0
    for ids in _batches(connection, "namespace_jobs_to_hold", name):
        held, waiting = _in_batch(connection, name, ids, _hold_batch, paused=True)
        jobs, runs = jobs + held, runs + waiting
        if progress is not None:
            progress(jobs, runs)
    return PauseResult(not before, jobs, runs)


def resume_namespace(
    connection: psycopg.Connection,
    name: str,
    missed: ResumeChoice = ResumeChoice.SKIP,
    *,
    progress: Progress | None = None,
) -> PauseResult:
    """Let the jobs of a namespace go on that its pause held.

    Given again, also of a namespace that is not paused, it frees what an earlier call did not get to.

    Args:
        connection: in autocommit, no transaction open.
        name: of the namespace.
        missed: what becomes of the instants that the pause held.
        progress: told of each batch.

    Raises:
        NamespaceNameError: the name is none for a namespace.
        NamespaceError: somebody pauses it again at the same time.
    """
    _check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        marked = connection.execute(statement("namespace_mark_resumed"), {"name": name}).fetchone()
    jobs = runs = late = 0
    for ids in _batches(connection, "namespace_jobs_to_free", name):

        def free_batch(open_: psycopg.Connection, found: Sequence[_Job]) -> tuple[int, int, int]:
            return _free_batch(open_, found, missed)

        freed, queued, had_instants = _in_batch(connection, name, ids, free_batch, paused=False)
        jobs, runs, late = jobs + freed, runs + queued, late + had_instants
        if progress is not None:
            progress(jobs, runs)
    return PauseResult(marked is not None, jobs, runs, late)


def set_max_in_flight(connection: psycopg.Connection, name: str, most: int | None) -> bool:
    """Cap the runs of each lane of a namespace that are under way at a time; None takes the cap away.

    Runs that are queued already go on and are not counted; from the commit on every run that comes due asks
    for room. Given again, it has the one-time instants planned that an interrupted call did not get to.

    Args:
        connection: in autocommit, no transaction open.
        name: of the namespace.
        most: from 1 on.

    Returns:
        False if that is its cap already.

    Raises:
        NamespaceNameError: the name is none for a namespace, or the number none for a cap.
    """
    _check_name(name)
    if most is not None and not 0 < most <= _MOST_IN_FLIGHT:
        raise NamespaceNameError(f"{most} is no cap: use a whole number from 1 to {_MOST_IN_FLIGHT:,}")
    with connection.transaction():
        change_time_facts(connection)
        connection.execute(statement("namespace_put"), {"name": name})
        changed = (
            connection.execute(statement("namespace_set_cap"), {"name": name, "most": most}).rowcount == 1
        )
    if most is not None:
        # Postgres claims one-time instants by itself, without a look at caps. New jobs have no such timers.
        for ids in _batches(connection, "namespace_jobs_to_plan", name):
            connection.execute(statement("namespace_plan_timers"), {"ids": list(ids)})
    return changed


def delete_namespace(connection: psycopg.Connection, name: str) -> bool:
    """Forget what was set for a namespace, so that it has the defaults again; False if nothing was.

    Jobs stay as they are, also with the zone that they were made with.

    Args:
        connection: no transaction open.
        name: of the namespace.

    Raises:
        NamespaceInUseError: it is paused, jobs of it are still held, or it has calendars.
    """
    with connection.transaction():
        change_time_facts(connection)
        if _paused(connection, name) or any(
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
    near = get_close_matches(name, [one for one in spaces if one != name], n=1, cutoff=0.6)
    return f"no recurring job is in namespace {name!r} yet" + (f"; did you mean {near[0]!r}?" if near else "")


def list_namespaces(connection: psycopg.Connection, name: str | None = None) -> list[NamespaceRow]:
    """List namespaces that were set or paused, or have a recurring job; None: all of them."""
    with connection.cursor(row_factory=row_of(NamespaceRow)) as cursor:
        return cursor.execute(statement("namespace_list"), {"name": name}).fetchall()


def count_jobs(connection: psycopg.Connection, name: str) -> list[JobCount]:
    """Count the recurring jobs of a namespace by state."""
    with connection.cursor(row_factory=row_of(JobCount)) as cursor:
        return cursor.execute(statement("namespace_count_jobs"), {"name": name}).fetchall()


def _check_name(name: str) -> None:
    if not re.fullmatch(NAMESPACE_PATTERN, name):
        raise NamespaceNameError(f"{name!r} is no name for a namespace: use {NAME_RULE}")


def _paused(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute(
        "select paused_at is not null from namespaces where name = %s", [name]
    ).fetchone()
    return bool(row and row[0])


def _batches(connection: psycopg.Connection, look: LiteralString, name: str) -> Iterator[Sequence[UUID]]:
    """Yield the ids that a look through all jobs finds, in batches."""
    after = _FIRST
    while True:
        row = connection.execute(
            statement(look), {"namespace": name, "after": after, "limit": _STRETCH}
        ).fetchone()
        assert row is not None
        seen, last, found = row
        ids = found or []
        for start in range(0, len(ids), _BATCH):
            yield ids[start : start + _BATCH]
        if seen < _STRETCH:
            return
        after = last


def _in_batch(
    connection: psycopg.Connection,
    name: str,
    ids: Sequence[UUID],
    work: Callable[[psycopg.Connection, Sequence[_Job]], _Counts],
    *,
    paused: bool,
) -> _Counts:
    """Do one batch in a transaction that locks timers, then jobs; again if it lost a deadlock to a worker."""
    for left in reversed(range(_TRIES)):
        try:
            with connection.transaction():
                change_time_facts(connection)
                if _paused(connection, name) != paused:
                    done = "resumed" if paused else "paused again"
                    raise NamespaceError(f"namespace {name} was {done} by somebody else in the meantime")
                connection.execute(statement("job_lock_timers"), {"ids": list(ids)})
                with connection.cursor(row_factory=row_of(_Job)) as cursor:
                    found = cursor.execute(statement("namespace_lock_jobs"), {"ids": list(ids)}).fetchall()
                return work(connection, found)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
            if not left:
                raise
    raise AssertionError  # the last try returns or raises


def _hold_batch(connection: psycopg.Connection, found: Sequence[_Job]) -> tuple[int, int]:
    active = [job for job in found if job.state == JobState.ACTIVE]
    connection.execute(statement("namespace_hold_jobs"), {"ids": [job.id for job in active]})
    # What is completed or broken has runs to hold, and nothing else.
    held = [job for job in found if job.state in _GOING]
    waiting = hold(
        connection,
        [job.id for job in held],
        recurring=[job.id for job in active if job.recurring],
        shards=[job.shard for job in held],
    )
    return len(active), waiting


def _free_batch(
    connection: psycopg.Connection, found: Sequence[_Job], missed: ResumeChoice
) -> tuple[int, int, int]:
    freed = connection.execute(
        statement("namespace_free_jobs"), {"ids": [job.id for job in found], "missed": missed.value}
    ).fetchall()
    # Of the others only runs were held: they are completed or broken, or the pause never got to them.
    others = [job.id for job in found if job.state in _GOING]
    late = connection.execute(
        statement("namespace_count_held"), {"ids": [row[0] for row in freed], "never": NEVER}
    ).fetchone()
    assert late is not None
    return len(freed), free(connection, [*(row[0] for row in freed), *others]), late[0]
