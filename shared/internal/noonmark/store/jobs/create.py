"""Creating jobs: consecutive creates are written together, with one statement per table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from noonmark.core.ids import shard_of, uuid7_batch
from noonmark.core.states import JobState
from noonmark.schemas.jobs.job import JobSpec
from noonmark.store.database.columns import SmallInts, UuidBytes, folded
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import Due, first_due, spec_columns
from noonmark.store.jobs.quotas import over_quota, read_quotas
from noonmark.store.jobs.requests import (
    UNFIT,
    Batch,
    Reason,
    Result,
    Status,
    cannot_run,
    old_release,
    rejected,
    unknown_limit,
    unknown_pool,
    unplannable,
)
from noonmark.store.jobs.works import pools_of
from noonmark.store.workflows.tasks import insert_tasks

_TRIES = 3
"""How often to insert a job whose conflicting job was gone when it was looked up."""


class Create(NamedTuple):
    """A job to create; `place` is the index of its result."""

    place: int
    spec: JobSpec
    sequence: int | None


class PlannedJob(NamedTuple):
    """A job and its next instant. `namespace` is the job's own, because an update by id need not name it."""

    id: UUID
    version: int
    shard: int
    namespace: str
    spec: JobSpec
    due: Due


def create_jobs(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> None:
    """Create jobs inside the caller's transaction and store a result for each.

    Jobs that Postgres refuses are found by bisection, so that one bad job never fails its batch.
    """
    wanted = _runnable(batch, creates, results)
    if any(create.sequence is not None and _unique_name(create.spec) for create in wanted):
        wanted = _without_tombstone(batch, wanted, results)
    bounded = batch.facts.bounded
    if bounded and any(c.spec.namespace in bounded and _unique_name(c.spec) for c in wanted):
        wanted = _within_quotas(batch, wanted, results)
    if wanted:
        _write_or_halve(batch, wanted, results)


def _runnable(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> list[Create]:
    """Drop jobs whose pool or limits do not exist, and jobs that no live worker of their pool can run."""
    unknown = batch.known.unknown_pools(batch.connection, pools_of(create.spec for create in creates))
    known: list[Create] = []
    found: set[tuple[str, str, str | None]] = set()
    for create in creates:
        spec, verdict = create.spec, None
        work = (spec.pool, spec.kind, spec.handler)
        if work in found and not spec.limits and spec.workflow is None:
            known.append(create)
            continue
        if unknown and (missing := unknown_pool(spec, batch.known.pools)) is not None:
            verdict = missing
        elif (old := old_release(batch, spec)) is not None:
            verdict = old
        elif (misfit := batch.misfit(spec)) is not None:
            verdict = cannot_run(misfit)
        elif spec.limits:
            verdict = unknown_limit(spec.limits, spec.namespace, batch.facts.limits_of(spec.namespace))
        if verdict is None:
            found.add(work)
            known.append(create)
        else:
            results[create.place] = verdict
    return known


def _without_tombstone(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> list[Create]:
    """Drop creates that are older than a cancel of their name."""
    ordered = [create for create in creates if create.sequence is not None and _unique_name(create.spec)]
    rows = batch.connection.execute(
        statement("read_tombstones"),
        {
            "namespaces": [create.spec.namespace for create in ordered],
            "names": [create.spec.name for create in ordered],
        },
    ).fetchall()
    tombstones: dict[tuple[str, str | None], int] = {(row[0], row[1]): row[2] for row in rows}
    stale = {
        create.place
        for create in ordered
        if (create.sequence or 0) <= tombstones.get((create.spec.namespace, create.spec.name), -1)
    }
    for place in stale:
        results[place] = Result(Status.STALE)
    return [create for create in creates if create.place not in stale]


def _within_quotas(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> list[Create]:
    """Drop recurring jobs that exceed the quota of their namespace."""
    bounded = [c for c in creates if c.spec.namespace in batch.facts.bounded and _unique_name(c.spec)]
    quotas = read_quotas(batch.connection, {create.spec.namespace for create in bounded})
    over: set[int] = set()
    for namespace, quota in quotas.items():
        mine = [create for create in bounded if create.spec.namespace == namespace]
        if len(mine) <= quota.free:
            continue
        # Jobs that exist already do not count, and get their own results.
        new = _explain(batch, mine, results)
        for create in new[max(quota.free, 0) :]:
            results[create.place] = over_quota(namespace, quota)
        over |= {create.place for create in mine} - {create.place for create in new[: max(quota.free, 0)]}
    return [create for create in creates if create.place not in over]


def _write_or_halve(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> None:
    try:
        with batch.connection.transaction():
            left = creates
            for _ in range(_TRIES):
                left = _insert(batch, left, results)
                if not left:
                    break
            for create in left:
                results[create.place] = rejected(
                    Reason.CONFLICT,
                    "",
                    "other events create and cancel this job at the same time; send it again",
                )
    except UNFIT as error:
        verdict = unplannable(error)
        if len(creates) == 1:
            results[creates[0].place] = verdict
            return
        middle = len(creates) // 2
        _write_or_halve(batch, creates[:middle], results)
        _write_or_halve(batch, creates[middle:], results)


def _insert(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> list[Create]:
    """Insert jobs with their timers and runs; return those to retry."""
    jobs = _planned(batch, creates)
    written = _insert_jobs(batch, creates, jobs)
    created = jobs
    to_retry: list[Create] = []
    if written is not None:
        created = [job for job in jobs if job.id.bytes in written]
        left_out = [c for c, job in zip(creates, jobs, strict=True) if job.id.bytes not in written]
        to_retry = _explain(batch, left_out, results)
    insert_tasks(batch.connection, [(job.id, job.version, job.spec) for job in created])
    if timed := [job for job in created if job.due.at is not None]:
        insert_timers(batch, timed)
    if due_now := [job for job in created if job.due.now]:
        _insert_runs(batch, due_now)
    for create, job in zip(creates, jobs, strict=True):
        if written is None or job.id.bytes in written:
            results[create.place] = Result(Status.ACCEPTED, job.id)
    return to_retry


def _planned(batch: Batch, creates: Sequence[Create]) -> list[PlannedJob]:
    facts, shards = batch.facts, batch.shards
    jobs = []
    for job_id, (_, spec, _) in zip(uuid7_batch(len(creates)), creates, strict=True):
        namespace = spec.namespace
        due = first_due(
            spec,
            job_id,
            batch.now,
            zone_data_is_active=batch.zone_data_is_active,
            paused=namespace in facts.paused,
            capped=namespace in facts.capped,
        )
        jobs.append(PlannedJob(job_id, 1, shard_of(job_id, shards), namespace, spec, due))
    return jobs


def _insert_jobs(batch: Batch, creates: Sequence[Create], jobs: Sequence[PlannedJob]) -> set[bytes] | None:
    """Return the ids of the rows that were written; None if all were."""
    specs = [job.spec for job in jobs]
    row = batch.connection.execute(
        batch.known.insert("insert_jobs"),
        {
            "now": batch.now,
            "wanted": len(jobs),
            "ids": UuidBytes.of(job.id for job in jobs),
            "shards": SmallInts([job.shard for job in jobs]),
            **folded(
                {
                    "namespaces": [spec.namespace for spec in specs],
                    **spec_columns(specs),
                    "schedules": [job.due.schedule for job in jobs],
                    "unique_names": [_unique_name(spec) for spec in specs],
                    "sequences": [create.sequence for create in creates],
                    "states": _states(batch, jobs),
                }
            ),
        },
        binary=True,
    ).fetchone()
    assert row is not None
    if row[0] == len(jobs):
        return None
    batch.known.note_conflict("insert_jobs")
    joined = row[1] or b""
    return {joined[at : at + 16] for at in range(0, len(joined), 16)}


def _explain(batch: Batch, creates: Sequence[Create], results: dict[int, Result]) -> list[Create]:
    """Store why jobs were not written; return those whose conflicting job is gone, to retry them."""
    rows = batch.connection.execute(
        statement("find_job_conflicts"),
        {
            "places": [create.place for create in creates],
            "namespaces": [create.spec.namespace for create in creates],
            "idempotency_keys": [create.spec.idempotency_key for create in creates],
            "names": [create.spec.name if _unique_name(create.spec) else None for create in creates],
        },
    ).fetchall()
    conflicts = {row[0]: row[1:] for row in rows}
    to_retry = []
    for create in creates:
        same_key, same_name, newest = conflicts.get(create.place, (None, None, None))
        if same_key is not None:
            results[create.place] = Result(Status.DUPLICATE, same_key)
        elif same_name is None:
            to_retry.append(create)
        elif create.sequence is not None and newest is not None and create.sequence <= newest:
            results[create.place] = Result(Status.STALE, same_name)
        else:
            results[create.place] = _name_taken(create.spec, same_name)
    return to_retry


def _name_taken(spec: JobSpec, job_id: UUID) -> Result:
    return rejected(
        Reason.CONFLICT,
        "/name",
        f"namespace {spec.namespace!r} already has a job named {spec.name!r}: {job_id}",
        "another name, or an update of that job",
    )._replace(job_id=job_id)


def insert_timers(batch: Batch, jobs: Sequence[PlannedJob]) -> None:
    """Write the next timers of jobs; each job has a due time."""
    dues = [job.due for job in jobs]
    specs = [job.spec for job in jobs]
    fire_at: list[datetime] = [due.fire_at for due in dues if due.fire_at is not None]
    batch.note_timer(min(fire_at))
    batch.connection.execute(
        statement("insert_timers"),
        {
            "job_ids": UuidBytes.of(job.id for job in jobs),
            "shards": SmallInts([job.shard for job in jobs]),
            **folded(
                {
                    "fire_at": fire_at,
                    "scheduled_for": [due.at for due in dues],
                    "after_at": [due.after_at for due in dues],
                    "after_offset": [due.after_offset for due in dues],
                    "runs_left": [due.runs_left for due in dues],
                    "job_versions": [job.version for job in jobs],
                    "lanes": [int(spec.lane) for spec in specs],
                    "kinds": [int(due.kind) for due in dues],
                    "namespaces": [job.namespace for job in jobs],
                    "pools": [spec.pool for spec in specs],
                }
            ),
        },
    )


def _insert_runs(batch: Batch, jobs: Sequence[PlannedJob]) -> None:
    """Write the runs of jobs that are due on arrival, with their messages."""
    batch.known.ensure_day(batch.connection, batch.now)
    batch.queued = True
    run_ids, job_ids = uuid7_batch(len(jobs)), [job.id for job in jobs]
    batch.begun.append((run_ids, job_ids))
    batch.connection.execute(
        statement("insert_immediate_runs"),
        {
            "now": batch.now,
            "ids": UuidBytes.of(run_ids),
            "job_ids": UuidBytes.of(job_ids),
            "shards": SmallInts([job.shard for job in jobs]),
            **folded(
                {
                    "start_by": [job.due.start_by for job in jobs],
                    "lanes": [int(job.spec.lane) for job in jobs],
                    "namespaces": [job.spec.namespace for job in jobs],
                    "pools": [job.spec.pool for job in jobs],
                }
            ),
        },
    )


def _states(batch: Batch, jobs: Sequence[PlannedJob]) -> list[str]:
    paused = batch.facts.paused
    completed, waits, active = JobState.COMPLETED.value, JobState.PAUSED.value, JobState.ACTIVE.value
    return [
        completed
        if job.due.at is None and not job.due.now
        else (waits if job.namespace in paused else active)
        for job in jobs
    ]


def _unique_name(spec: JobSpec) -> bool:
    """Return whether the job's name is unique: yes for recurring jobs; one-time jobs share names."""
    return spec.schedule is not None
