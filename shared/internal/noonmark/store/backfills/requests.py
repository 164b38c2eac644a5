"""Requests for backfills: a dry run, start, cancel. `steps.py` executes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.ids import uuid7
from noonmark.core.planning.backfill import MOST_INSTANTS, BackfillError, BackfillRange, to_run
from noonmark.core.schedules.schedule import TICK, Schedule, ScheduleError
from noonmark.core.states import BackfillMode, JobState, RunState
from noonmark.core.zones.zones import zone_data_version
from noonmark.schemas.events.submissions import JobRef
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.jobs.locks import LiveRun, lock_job, span
from noonmark.store.limits.slots import release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of

_PLAN_CHUNK: Final = 1000
"""Instants that a dry run compares with the ledger at once."""

_NOT_IN: Final = {
    JobState.CANCELLED: "a cancelled job runs no more: create it again",
    JobState.BROKEN: "correct its schedule first, then try again",
}


class BackfillBounds(NamedTuple):
    """The bounds of every backfill: the database's time, the ledger floor, the active zone data."""

    now: datetime
    ledger_floor: datetime
    zone_data: str | None


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """What a backfill would do.

    Attributes:
        job_id: the job.
        job_version: the job version that its runs would have.
        schedule: the schedule of that version.
        range: the requested range.
        mode: the requested mode.
        total: instants in the range.
        to_run: the number of these that would run.
        listed: the first of these, up to a limit.
        job_state: the state of the job; one completed by `max_runs` still has instants after its last run.
    """

    job_id: UUID
    job_version: int
    schedule: Schedule
    range: BackfillRange
    mode: BackfillMode
    total: int
    to_run: int
    listed: Sequence[datetime]
    job_state: str

    @property
    def note(self) -> str | None:
        """A sentence about counted instants that the schedule would not have run."""
        if self.job_state != JobState.COMPLETED or self.schedule.max_runs is None:
            return None
        return (
            f"the job is completed by its max_runs of {self.schedule.max_runs}: instants after its last run"
            " count as missing; end the range there to leave them out"
        )


class _Job(NamedTuple):
    """What a backfill needs of a job; `schedule` is JSON text."""

    id: UUID
    version: int
    state: str
    state_reason: str | None
    name: str | None
    schedule: str | None

    def __str__(self) -> str:
        return f"job {self.id}" + (f" ({self.name})" if self.name else "")


class Cancelled(NamedTuple):
    """What a cancel did: whether it ended the backfill, runs that ended, runs that were asked to stop."""

    done: bool
    ended: int = 0
    stopping: int = 0


def plan(
    connection: psycopg.Connection,
    job_id: UUID,
    asked: BackfillRange,
    mode: BackfillMode,
    *,
    limit: int = 50,
    most: int = MOST_INSTANTS,
) -> BackfillPlan:
    """Return what a backfill would run. Nothing is written.

    Args:
        connection: in autocommit mode, because reading a schedule may take longer than a transaction should.
        job_id: the id of the job.
        asked: the range.
        mode: which instants run.
        limit: the most instants to list, the first ones.
        most: the most instants of the range; larger ranges are refused.

    Raises:
        BackfillError: the backfill cannot be started; the message says why and what to do.
    """
    job = _read_job(connection, job_id)
    schedule = _schedule_of(connection, job, asked)
    total = asked.count(schedule, most)
    listed: list[datetime] = []
    running = 0
    position = asked.from_at
    while instants := asked.instants(schedule, position, _PLAN_CHUNK):
        chosen = to_run(mode, instants, read_ledger(connection, job_id, instants))
        running += len(chosen)
        listed += chosen[: limit - len(listed)]
        if len(instants) < _PLAN_CHUNK:
            break
        position = instants[-1] + TICK
    return BackfillPlan(job_id, job.version, schedule, asked, mode, total, running, listed, job.state)


def start(connection: psycopg.Connection, planned: BackfillPlan, *, requested_by: str | None = None) -> UUID:
    """Create a backfill and return its id; the trigger that owns the job's shard executes it.

    Args:
        connection: no transaction is open.
        planned: the plan that was shown for confirmation.
        requested_by: who requested it, for people.

    Raises:
        BackfillError: the job or the ledger floor changed since the plan was made, or another backfill of the
            job is running in a part of the range.
    """
    backfill_id = uuid7()
    with connection.transaction():
        job = lock_job(connection, JobRef(planned.job_id, "", None))
        if job is None or job.state in _NOT_IN or job.version != planned.job_version:
            raise BackfillError(f"job {planned.job_id} was changed meanwhile: check the plan again")
        asked = planned.range
        bounds = read_bounds(connection)
        asked.check(now=bounds.now, floor=bounds.ledger_floor)
        other = connection.execute(
            statement("find_overlapping_backfill"),
            {"job_id": job.id, "from_at": asked.from_at, "until_at": asked.until_at},
        ).fetchone()
        if other is not None:
            raise BackfillError(
                f"backfill {other[0]} of {job} is running in a part of this range: wait until it is done,"
                " or cancel it"
            )
        connection.execute(
            statement("insert_backfill"),
            {
                "id": backfill_id,
                "job_id": job.id,
                "namespace": job.namespace,
                "pool": job.pool,
                "shard": job.shard,
                "job_version": job.version,
                "schedule": orjson.dumps(job.schedule).decode(),
                "mode": planned.mode.value,
                "from_at": asked.from_at,
                "until_at": asked.until_at,
                "total": planned.total,
                "requested_by": requested_by,
            },
        )
    return backfill_id


def cancel(
    connection: psycopg.Connection,
    backfill_id: UUID,
    *,
    reason: str | None = None,
    runs_in: tuple[EventTopics, int] | None = None,
) -> Cancelled:
    """End a backfill: it queues no more runs.

    Args:
        connection: no transaction is open.
        backfill_id: the id of the backfill.
        reason: the reason, for people.
        runs_in: cancel its unfinished runs too, even if the backfill is done: where verdicts are announced,
            and the number of shards. None: queued runs still run.

    Raises:
        BackfillError: the backfill does not exist.
    """
    with connection.transaction():
        # First the backfill, then timers, job and runs: as a step of it does.
        ended = connection.execute(
            statement("cancel_backfill"), {"id": backfill_id, "reason": reason}
        ).fetchone()
        if runs_in is None and ended is not None:
            return Cancelled(done=True)
        row = connection.execute(
            "select job_id, from_at, until_at from backfills where id = %s", [backfill_id]
        ).fetchone()
        if row is None:
            raise BackfillError(
                f"there is no backfill {backfill_id}: `noonmark backfill list` shows those there are"
            )
        if runs_in is None:
            return Cancelled(done=False)
        stopped = _stop_runs(connection, backfill_id, row[0], BackfillRange(row[1], row[2]), runs_in)
        return Cancelled(done=ended is not None, **stopped)


def read_bounds(connection: psycopg.Connection) -> BackfillBounds:
    """Read the bounds of every backfill."""
    with connection.cursor(row_factory=row_of(BackfillBounds)) as cursor:
        found = cursor.execute(statement("read_backfill_bounds")).fetchone()
    assert found is not None
    return found


def read_ledger(
    connection: psycopg.Connection, job_id: UUID, instants: Sequence[datetime]
) -> dict[datetime, str]:
    """Return, for each instant that has a run that was not skipped, the state of the newest one."""
    if not instants:
        return {}
    rows = connection.execute(
        statement("read_backfill_ledger"),
        {"job_id": job_id, "first": instants[0], "last": instants[-1], "instants": list(instants)},
    )
    return dict(rows.fetchall())


def zone_data_problem(schedule: Schedule, zone_data: str | None) -> str | None:
    """Return why this process cannot compute the instants of a schedule; None if it can."""
    if schedule.zone is None or zone_data == zone_data_version():
        return None
    return (
        f"this process has zone data {zone_data_version()}, the installation plans with"
        f" {zone_data or 'none'}: use a noonmark with the same zone data"
    )


def _read_job(connection: psycopg.Connection, job_id: UUID) -> _Job:
    with connection.cursor(row_factory=row_of(_Job)) as cursor:
        job = cursor.execute(
            "select id, version, state, state_reason, name, schedule::text from jobs where id = %s", [job_id]
        ).fetchone()
    if job is None:
        raise BackfillError(f"there is no job {job_id}: `noonmark job list` shows those there are")
    return job


def _schedule_of(connection: psycopg.Connection, job: _Job, asked: BackfillRange) -> Schedule:
    """Return the schedule whose instants are in the range, if a backfill of the job is possible."""
    stored = orjson.loads(job.schedule) if job.schedule is not None else None
    if stored is None or "run_at" in stored:
        raise BackfillError(
            f"{job} has one instant only: a backfill is for recurring jobs; trigger it instead"
        )
    if (what := _NOT_IN.get(JobState(job.state))) is not None:
        why = f" ({job.state_reason})" if job.state_reason else ""
        raise BackfillError(f"{job} is {job.state}{why}; {what}")
    bounds = read_bounds(connection)
    asked.check(now=bounds.now, floor=bounds.ledger_floor)
    texts = ScheduleTexts()
    assert job.schedule is not None
    try:
        texts.learn(connection, [job.schedule])
        schedule = texts.read(job.schedule)
    except ScheduleError as error:
        raise BackfillError(f"the schedule of {job} cannot be read: {error}") from error
    if (problem := zone_data_problem(schedule, bounds.zone_data)) is not None:
        raise BackfillError(problem)
    return schedule


def _stop_runs(
    connection: psycopg.Connection,
    backfill_id: UUID,
    job_id: UUID,
    asked: BackfillRange,
    announced_to: tuple[EventTopics, int],
) -> dict[str, int]:
    """Cancel the unfinished runs of a backfill, as a cancel of their job would."""
    job = lock_job(connection, JobRef(job_id, "", None))
    if job is None:
        return {}
    with connection.cursor(row_factory=row_of(LiveRun)) as cursor:
        runs = cursor.execute(
            statement("lock_backfill_runs"),
            {
                "job_id": job_id,
                "first": asked.from_at,
                "last": asked.until_at,
                "request_id": backfill_id.hex,
            },
        ).fetchall()
    if not runs:
        return {}
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        which = {**span(runs), "shards": [job.shard], "reason": "with its backfill"}
        stopped = cursor.execute(statement("cancel_runs"), which).fetchall()
    ended = [run for run in stopped if run.state == RunState.CANCELLED]
    release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    topics, shards = announced_to
    announce(connection, topics, [settled_of(run) for run in ended], shards=shards)
    return {"ended": len(ended), "stopping": len(stopped) - len(ended)}
