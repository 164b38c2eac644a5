"""The locks of control statements, always in the same order (timers, job, runs), and the locked job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.states import JobState, ResumeChoice
from noonmark.schemas.events.submissions import JobRef
from noonmark.schemas.jobs.documents import JobType
from noonmark.schemas.problems.refusal import printable
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.jobs.requests import Reason, RejectedRequest, rejected

_TRIES = 5
"""How often a name is looked up whose job was cancelled before it could be locked."""


_ALLOWED: Final = {
    "paused": "a job that is active or paused",
    "resumed": "a job that is paused or active",
    "updated": "a job that is not cancelled; create a new one",
    "triggered": "a job that is not cancelled",
}
"""The jobs that each control request applies to, by its participle."""


class LockedJob(NamedTuple):
    """A job whose timers and row are locked. `schedule` and `policy` are as stored."""

    id: UUID
    namespace: str
    name: str | None
    lane: int
    pool: str
    shard: int
    schedule: dict[str, Any] | None
    policy: dict[str, Any] | None
    unique_name: bool
    state: str
    state_reason: str | None
    paused_by: str | None
    version: int
    event_sequence: int | None
    kind: JobType
    updated_at: datetime

    @property
    def recurring(self) -> bool:
        """Whether its schedule has more than one instant."""
        return self.schedule is not None and "run_at" not in self.schedule

    def __str__(self) -> str:
        return f"job {self.id}" + (f" ({self.name})" if self.name else "")


class LiveRun(NamedTuple):
    """A locked run that is not finished. `workflow`, of a task: the id of its workflow run, as text."""

    id: UUID
    scheduled_for: datetime
    state: str
    reason: str | None
    shard: int
    origin: str
    workflow: str | None = None


def lock_job(
    connection: psycopg.Connection, ref: JobRef, within: frozenset[str] | None = None
) -> LockedJob | None:
    """Find a job and lock its timers, then its row; return None if there is no such job.

    Args:
        connection: a connection in a transaction.
        ref: the id or name of the job.
        within: the only namespaces to find a job in; None means all.
    """
    if within is not None and not _is_within(connection, ref, within):
        return None
    for _ in range(_TRIES):
        job_id = ref.job_id or _id_of_name(connection, ref)
        if job_id is None:
            return None
        job = _lock_in_order(connection, job_id)
        if job is None or ref.job_id is not None:
            return job
        # Between the look-up and the lock, it may have been cancelled and another job may have its name.
        if job.state != JobState.CANCELLED and (job.namespace, job.name) == (ref.namespace, ref.name):
            return job
    return None


def _lock_in_order(connection: psycopg.Connection, job_id: UUID) -> LockedJob | None:
    """Lock the timers of a job, then its row; retry if another transaction replaced the timers meanwhile."""
    for retries_left in reversed(range(_TRIES)):
        with connection.transaction():
            connection.execute(statement("lock_job_timers"), {"ids": [job_id]})
            with connection.cursor(row_factory=row_of(LockedJob)) as cursor:
                job = cursor.execute(statement("lock_job"), {"job_id": job_id}).fetchone()
            missed = connection.execute(statement("find_unlocked_timers"), {"job_id": job_id}).fetchone()
            if retries_left and missed is not None:
                # Waiting for them with the job locked would deadlock with the transaction that holds them.
                raise psycopg.Rollback
            return job
    raise AssertionError("unreachable")


def lock_again(connection: psycopg.Connection, job: LockedJob) -> LockedJob:
    """Read a locked job again, after this transaction changed it."""
    with connection.cursor(row_factory=row_of(LockedJob)) as cursor:
        found = cursor.execute(statement("lock_job"), {"job_id": job.id}).fetchone()
    assert found is not None, f"{job} vanished under its lock"
    return found


def lock_runs(connection: psycopg.Connection, jobs: Sequence[UUID]) -> list[LiveRun]:
    """Lock the unfinished runs of locked jobs."""
    with connection.cursor(row_factory=row_of(LiveRun)) as cursor:
        return cursor.execute(statement("lock_unfinished_runs"), {"ids": list(jobs)}).fetchall()


def span(runs: Sequence[LiveRun]) -> dict[str, object]:
    """Return the ids of runs and the range of their instants, which prunes partitions; never empty."""
    days = [run.scheduled_for for run in runs]
    return {"ids": [run.id for run in runs], "first": min(days), "last": max(days)}


def set_state(
    connection: psycopg.Connection,
    job: LockedJob,
    state: JobState,
    reason: str | None,
    sequence: int | None,
    *,
    missed: ResumeChoice = ResumeChoice.SKIP,
    paused_by: str = "job",
) -> None:
    """Change the state of a locked job and store the sequence of the event that requested it.

    Args:
        connection: a connection in the transaction that locked the job.
        job: the job as it was locked.
        state: the new state.
        reason: why, for people.
        sequence: the sequence of the event.
        missed: for a resume, what happens to the instants that came due during the pause.
        paused_by: for a pause, "job" or "namespace".
    """
    moved = connection.execute(
        statement("set_job_state"),
        {
            "job_id": job.id,
            "state": state.value,
            "reason": reason,
            "sequence": sequence,
            "was": job.state,
            "missed": missed.value,
            "held_by": paused_by,
            "version": job.version,
        },
    ).fetchone()
    assert moved is not None, f"{job} changed under its lock"


def note_sequence(connection: psycopg.Connection, job: LockedJob, sequence: int | None) -> None:
    """Store the sequence of an event that changes nothing else about the job."""
    if sequence is not None:
        set_state(
            connection,
            job,
            JobState(job.state),
            job.state_reason,
            sequence,
            paused_by=job.paused_by or "job",
        )


def refuse_in_state(job: LockedJob, verb: str) -> RejectedRequest:
    """Return the rejection of a request that the job's state does not allow."""
    why = f' (reason given: "{printable(job.state_reason)}")' if job.state_reason else ""
    message = f"{job} is {job.state} and cannot be {verb}{why}"
    return RejectedRequest(
        rejected(Reason.CONFLICT, "", message, _ALLOWED.get(verb, ""))._replace(job_id=job.id)
    )


def _is_within(connection: psycopg.Connection, ref: JobRef, within: frozenset[str]) -> bool:
    if ref.job_id is None:
        return ref.namespace in within
    # A job never moves to another namespace, so a value read before the lock stays true.
    row = connection.execute("select namespace from jobs where id = %s", [ref.job_id]).fetchone()
    return row is not None and row[0] in within


def _id_of_name(connection: psycopg.Connection, ref: JobRef) -> UUID | None:
    row = connection.execute(
        statement("find_job_by_name"), {"namespace": ref.namespace, "name": ref.name}
    ).fetchone()
    return row[0] if row else None
