"""Pauses and resumes all jobs of a namespace.

A pause first marks the namespace, in a transaction that excludes intake: jobs created after its commit are
paused. Existing jobs follow in batches. If the work is interrupted, repeating the same request finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from noonmark.core.states import JobState, ResumeChoice
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.jobs.pauses import pause_runs, resume_runs
from noonmark.store.namespaces.namespaces import NamespaceError, check_name, is_paused
from noonmark.store.schedules.time_facts import change_time_facts

_Counts = TypeVar("_Counts", bound=tuple[int, ...])

_TRIES: Final = 5

_NOT_PAUSED: Final = (JobState.ACTIVE, JobState.COMPLETED, JobState.BROKEN, JobState.CANCELLED)
"""States of jobs that are not paused and may have unfinished runs: if cancelled, open workflow runs."""


class _Job(NamedTuple):
    id: UUID
    state: str
    paused_by: str | None
    shard: int
    recurring: bool


def mark_paused(connection: psycopg.Connection, name: str, reason: str | None) -> bool:
    """Mark a namespace as paused; return False if it was. Then call `pause_some` for jobs of `TO_PAUSE`.

    Jobs that are paused separately stay paused after the namespace's resume. Running runs continue. A
    repeated request pauses the jobs that an earlier one did not reach.

    Args:
        connection: any connection.
        name: name of the namespace, which need not have any job.
        reason: the reason, for people; None keeps that of an earlier request.

    Raises:
        NamespaceNameError: the name is not valid for a namespace.
    """
    check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        before = is_paused(connection, name)
        connection.execute(statement("insert_namespace"), {"name": name})
        connection.execute(statement("mark_namespace_paused"), {"name": name, "reason": reason})
    return not before


def mark_resumed(connection: psycopg.Connection, name: str) -> bool:
    """Mark a namespace as resumed; return False if it was. Then call `resume_some` for jobs of `TO_RESUME`.

    Raises:
        NamespaceNameError: the name is not valid for a namespace.
    """
    check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        return connection.execute(statement("mark_namespace_resumed"), {"name": name}).fetchone() is not None


def pause_some(connection: psycopg.Connection, name: str, ids: Sequence[UUID]) -> tuple[int, int]:
    """Pause some jobs of a paused namespace; return the numbers of jobs and of runs.

    Raises:
        NamespaceError: another user has resumed it meanwhile.
    """
    return _in_batch(connection, name, ids, _pause_batch, paused=True)


def resume_some(
    connection: psycopg.Connection, name: str, ids: Sequence[UUID], missed: ResumeChoice
) -> tuple[int, int, int]:
    """Resume some jobs of a namespace that is not paused; return the numbers of jobs, runs and late jobs.

    Args:
        connection: a connection without an open transaction.
        name: name of the namespace.
        ids: ids of the jobs.
        missed: what happens to the instants that came due during the pause. Jobs with such instants are the
            late ones; the next claims settle them.

    Raises:
        NamespaceError: another user has paused it again meanwhile.
    """

    def resume_batch(open_: psycopg.Connection, found: Sequence[_Job]) -> tuple[int, int, int]:
        return _resume_batch(open_, found, missed)

    return _in_batch(connection, name, ids, resume_batch, paused=False)


def _in_batch(
    connection: psycopg.Connection,
    name: str,
    ids: Sequence[UUID],
    work: Callable[[psycopg.Connection, Sequence[_Job]], _Counts],
    *,
    paused: bool,
) -> _Counts:
    """Run one batch in a transaction that locks timers, then jobs; retry after a deadlock with a worker."""
    for retries_left in reversed(range(_TRIES)):
        try:
            with connection.transaction():
                change_time_facts(connection)
                if is_paused(connection, name) != paused:
                    done = "resumed" if paused else "paused again"
                    raise NamespaceError(f"another user has {done} namespace {name} in the meantime")
                connection.execute(statement("lock_job_timers"), {"ids": list(ids)})
                with connection.cursor(row_factory=row_of(_Job)) as cursor:
                    found = cursor.execute(statement("lock_namespace_jobs"), {"ids": list(ids)}).fetchall()
                return work(connection, found)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
            if not retries_left:
                raise
    raise AssertionError  # the last try returns or raises


def _pause_batch(connection: psycopg.Connection, found: Sequence[_Job]) -> tuple[int, int]:
    active = [job for job in found if job.state == JobState.ACTIVE]
    connection.execute(statement("pause_namespace_jobs"), {"ids": [job.id for job in active]})
    # Completed, broken and cancelled jobs may only have runs to pause.
    pausable = [job for job in found if job.state in _NOT_PAUSED]
    waiting = pause_runs(
        connection,
        [job.id for job in pausable],
        recurring=[job.id for job in active if job.recurring],
        shards=[job.shard for job in pausable],
    )
    return len(active), waiting


def _resume_batch(
    connection: psycopg.Connection, found: Sequence[_Job], missed: ResumeChoice
) -> tuple[int, int, int]:
    resumed = connection.execute(
        statement("resume_namespace_jobs"), {"ids": [job.id for job in found], "missed": missed.value}
    ).fetchall()
    # The other jobs may only have paused runs: they are over, or the pause did not reach them.
    others = [job.id for job in found if job.state in _NOT_PAUSED]
    late = connection.execute(
        statement("count_paused_jobs"), {"ids": [row[0] for row in resumed], "never": NEVER}
    ).fetchone()
    assert late is not None
    return len(resumed), resume_runs(connection, [*(row[0] for row in resumed), *others]), late[0]
