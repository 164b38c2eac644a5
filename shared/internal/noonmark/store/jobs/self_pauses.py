"""Pauses jobs after `pause_after_failures` runs in a row died of the same cause.

Only the sweep does this, so it does not matter which process recorded a failure, or crashed after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.states import JobState
from noonmark.schemas.events.submissions import JobRef, PauseJob
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.jobs.locks import lock_job
from noonmark.store.jobs.requests import FactCache, Request, Status
from noonmark.store.jobs.submit import accept
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.schedules.time_facts import read_time_facts, share_time_facts

REASON_PREFIX: Final = "paused itself: "
"""How the state reason of such a job begins."""

_LOCK_TIMEOUT: Final = "2s"
"""Other failing jobs must not wait longer for the lock of one."""

_MOST_REASON: Final = 500
"""Maximum length in characters, the same as for an operator's reason."""


class FailingJob(NamedTuple):
    """A job whose last `failures` runs died of one cause; `error` is the latest."""

    id: UUID
    failures: int
    error: str | None

    @property
    def reason(self) -> str:
        """Why it is paused, for people."""
        runs = "run" if self.failures == 1 else "runs"
        why = self.error or "no error was recorded"
        text = f"{REASON_PREFIX}{self.failures} {runs} in a row died: {why}"
        return text if len(text) <= _MOST_REASON else text[: _MOST_REASON - 1] + "…"


def died_since(connection: psycopg.Connection, since: datetime) -> dict[UUID, datetime]:
    """Return the jobs that had a run die after `since`, each with the time of the latest one."""
    return dict(connection.execute(statement("list_jobs_with_recent_deaths"), {"since": since}).fetchall())


def failing(connection: psycopg.Connection, jobs: Sequence[UUID]) -> list[FailingJob]:
    """Return those of the jobs that are to be paused."""
    if not jobs:
        return []
    with connection.cursor(row_factory=row_of(FailingJob)) as cursor:
        return cursor.execute(statement("find_jobs_to_pause"), {"ids": list(jobs)}).fetchall()


def pause(
    connection: psycopg.Connection, topics: EventTopics, job_id: UUID, known: FactCache, *, shards: int
) -> FailingJob | None:
    """Pause a failing job as an operator's request would, in one transaction; return None if not needed.

    Raises:
        psycopg.errors.LockNotAvailable: another session locks the job or the facts about time.

    Args:
        connection: a connection without an open transaction.
        topics: topics for outcomes of runs that the pause settles.
        job_id: id of a job that `failing` returned.
        known: the pools and days that this process has cached.
        shards: number of shards of the installation.
    """
    with connection.transaction():
        connection.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'")
        share_time_facts(connection, wait=True)
        job = lock_job(connection, JobRef(job_id, "", None))
        if job is None or job.state != JobState.ACTIVE:
            return None
        # Check again under the lock: the job may have been resumed or edited, or have succeeded.
        found = failing(connection, [job_id])
        if not found:
            return None
        request = PauseJob(JobRef(job_id, job.namespace, None), found[0].reason)
        taken = accept(
            connection,
            [Request(request, None)],
            shards=shards,
            topics=topics,
            known=known,
            facts=read_time_facts(connection),
        )
    return found[0] if taken.results[0].status is Status.ACCEPTED else None
