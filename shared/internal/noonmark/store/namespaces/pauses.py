"""Pauses of namespaces: all of their jobs at once.

A pause marks the namespace first, in a transaction that no intake overlaps: from its commit on new jobs are
made held. Those that exist follow in batches. Whatever ends the work in between, the same order given again
finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from noonmark.core.vocabulary import JobState, ResumeChoice
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.jobs.pauses import pause_runs, resume_runs
from noonmark.store.namespaces.namespaces import NamespaceError, check_name, is_paused
from noonmark.store.schedules.time_facts import change_time_facts

_Counts = TypeVar("_Counts", bound=tuple[int, ...])

_TRIES: Final = 5

_GOING: Final = (JobState.ACTIVE, JobState.COMPLETED, JobState.BROKEN)
"""States of jobs that may have runs which nobody holds."""


class _Job(NamedTuple):
    id: UUID
    state: str
    paused_by: str | None
    shard: int
    recurring: bool


def mark_paused(connection: psycopg.Connection, name: str, reason: str | None) -> bool:
    """Mark a namespace as paused, in a transaction; False where it was. `pause_some`, of `TO_HOLD`, follows.

    Jobs that are paused on their own account stay so, also after the namespace's resume. Runs that are under
    way go on. Given again, the order holds what an earlier one did not get to.

    Args:
        connection: any.
        name: of the namespace; one without any job may be paused.
        reason: for people; None keeps the one of an earlier order.

    Raises:
        NamespaceNameError: the name is none for a namespace.
    """
    check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        before = is_paused(connection, name)
        connection.execute(statement("insert_namespace"), {"name": name})
        connection.execute(statement("mark_namespace_paused"), {"name": name, "reason": reason})
    return not before


def mark_resumed(connection: psycopg.Connection, name: str) -> bool:
    """Mark a namespace as going on, in a transaction; False if it was. `resume_some`, of `TO_FREE`, follows.

    Raises:
        NamespaceNameError: the name is none for a namespace.
    """
    check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        return connection.execute(statement("mark_namespace_resumed"), {"name": name}).fetchone() is not None


def pause_some(connection: psycopg.Connection, name: str, ids: Sequence[UUID]) -> tuple[int, int]:
    """Hold some jobs of a namespace that is paused; return how many jobs and runs.

    Raises:
        NamespaceError: somebody has resumed it meanwhile.
    """
    return _in_batch(connection, name, ids, _pause_batch, paused=True)


def resume_some(
    connection: psycopg.Connection, name: str, ids: Sequence[UUID], missed: ResumeChoice
) -> tuple[int, int, int]:
    """Let some jobs of a namespace go on that is not paused; return how many, their runs, the late ones.

    Args:
        connection: no transaction open.
        name: of the namespace.
        ids: of the jobs.
        missed: what becomes of the instants that the pause held; jobs that have some are the late ones, and
            get their verdicts with the next claims.

    Raises:
        NamespaceError: somebody has paused it again meanwhile.
    """

    def free_batch(open_: psycopg.Connection, found: Sequence[_Job]) -> tuple[int, int, int]:
        return _resume_batch(open_, found, missed)

    return _in_batch(connection, name, ids, free_batch, paused=False)


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
                if is_paused(connection, name) != paused:
                    done = "resumed" if paused else "paused again"
                    raise NamespaceError(f"namespace {name} was {done} by somebody else in the meantime")
                connection.execute(statement("lock_job_timers"), {"ids": list(ids)})
                with connection.cursor(row_factory=row_of(_Job)) as cursor:
                    found = cursor.execute(statement("lock_namespace_jobs"), {"ids": list(ids)}).fetchall()
                return work(connection, found)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
            if not left:
                raise
    raise AssertionError  # the last try returns or raises


def _pause_batch(connection: psycopg.Connection, found: Sequence[_Job]) -> tuple[int, int]:
    active = [job for job in found if job.state == JobState.ACTIVE]
    connection.execute(statement("pause_namespace_jobs"), {"ids": [job.id for job in active]})
    # What is completed or broken has runs to hold, and nothing else.
    held = [job for job in found if job.state in _GOING]
    waiting = pause_runs(
        connection,
        [job.id for job in held],
        recurring=[job.id for job in active if job.recurring],
        shards=[job.shard for job in held],
    )
    return len(active), waiting


def _resume_batch(
    connection: psycopg.Connection, found: Sequence[_Job], missed: ResumeChoice
) -> tuple[int, int, int]:
    freed = connection.execute(
        statement("resume_namespace_jobs"), {"ids": [job.id for job in found], "missed": missed.value}
    ).fetchall()
    # Of the others only runs were held: they are completed or broken, or the pause never got to them.
    others = [job.id for job in found if job.state in _GOING]
    late = connection.execute(
        statement("count_paused_jobs"), {"ids": [row[0] for row in freed], "never": NEVER}
    ).fetchone()
    assert late is not None
    return len(freed), resume_runs(connection, [*(row[0] for row in freed), *others]), late[0]
