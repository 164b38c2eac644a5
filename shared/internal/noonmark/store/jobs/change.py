"""Updating the document of a locked job, and triggering it once in addition to its schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import orjson
from msgspec import structs

from noonmark.core.ids import uuid7
from noonmark.core.instants import parse_instant
from noonmark.core.planning.promotion import Gate, gates_of
from noonmark.core.schedules.kinds import members_of, plain_number
from noonmark.core.schedules.schedule import AnyOf, Interval, Schedule
from noonmark.core.states import JobState, Origin, Overlap, RunState, SkipReason, WaitReason
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.schemas.events.submissions import TriggerJob, UpdateJob
from noonmark.schemas.jobs.job import JobSpec, payload_for
from noonmark.schemas.jobs.schedule import schedule_of
from noonmark.schemas.problems.refusal import Refused
from noonmark.store.claims.overlap import SlotDecision, SlotRequest, decide_slots
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import (
    Due,
    first_due,
    labels_text,
    once_due,
    once_text,
    policy_text,
    schedule_text,
    work_text,
)
from noonmark.store.jobs.create import PlannedJob, insert_timers
from noonmark.store.jobs.due_instants import settle_due
from noonmark.store.jobs.locks import LockedJob, lock_again, note_sequence, refuse_in_state
from noonmark.store.jobs.pause_and_cancel import pause_for_namespace
from noonmark.store.jobs.pauses import resume_runs
from noonmark.store.jobs.requests import (
    Batch,
    EventRef,
    Reason,
    RejectedRequest,
    Result,
    Status,
    cannot_run,
    old_release,
    rejected,
    unknown_limit,
    unknown_pool,
)
from noonmark.store.jobs.skipped_instants import announce_skips, skip_due
from noonmark.store.jobs.works import pools_of
from noonmark.store.limits.wait_queue import WaitingRun, enqueue_waiting, reset_waits
from noonmark.store.workflows.tasks import insert_tasks


def update(batch: Batch, job: LockedJob, request: UpdateJob, sequence: int | None) -> Result:
    """Replace a job's document. Instants in the ledger stay unchanged; later ones follow the new document."""
    if job.state == JobState.CANCELLED:
        raise refuse_in_state(job, "updated")
    job = pause_for_namespace(batch, job)
    spec = _in_step(_for_this_job(batch, request, job), job, batch.now)
    _check(batch, job, spec)
    if _is_unchanged(batch, job, spec) and not _is_stranded(batch, job, spec):
        note_sequence(batch.connection, job, sequence)
        return Result(Status.ACCEPTED, job.id)
    if job.recurring and job.state == JobState.ACTIVE:
        if not settle_due(batch, job):
            raise _behind(job)
        job = lock_again(batch.connection, job)
    # A broken or completed job that starts again is paused if its namespace is.
    paused = job.state == JobState.PAUSED or job.namespace in batch.facts.paused
    due = _within_limit(batch, _next_due(batch, spec, job, paused=paused), job)
    state = JobState.COMPLETED if due.at is None else JobState.PAUSED if paused else JobState.ACTIVE
    if _has_had_its_instant(batch, job, spec):
        due, state = Due(schedule_text(spec), None, None), JobState(job.state)
    row = batch.connection.execute(
        statement("update_job"),
        {
            **_columns(job, spec, due.schedule),
            "unique_name": spec.schedule is not None,
            "state": state.value,
            "sequence": sequence,
        },
    ).fetchone()
    assert row is not None, f"{job} changed under its lock"
    insert_tasks(batch.connection, [(job.id, row[0], spec)])
    _drop_fire_timers(batch, job)
    if due.at is not None:
        insert_timers(batch, [PlannedJob(job.id, row[0], job.shard, job.namespace, spec, due)])
    batch.freed |= reset_waits(batch.connection, job.id)
    if job.state == JobState.PAUSED and state is not JobState.PAUSED:
        _end_pause(batch, job)
    return Result(Status.ACCEPTED, job.id)


def _drop_fire_timers(batch: Batch, job: LockedJob) -> None:
    """Delete the timers of a job's instants; those that have come due are skipped."""
    dropped = batch.connection.execute(statement("delete_fire_timers"), {"job_id": job.id}).fetchall()
    if job.recurring:
        # If the job is paused, the pause deferred these. If it is active, they could not be planned before.
        left = skip_due(batch, job, [(at, after_at) for at, after_at, _ in dropped])
        if left is not None:
            raise _behind(job)


def _end_pause(batch: Batch, job: LockedJob) -> None:
    """Let the runs of a paused job continue that an edit has completed: nobody can resume it any more."""
    if job.namespace in batch.facts.paused:
        return  # its resume lets them continue
    if resume_runs(batch.connection, [job.id]):
        batch.queued = batch.freed = True
    batch.due_soon = True


def trigger(batch: Batch, job: LockedJob, request: TriggerJob, event: EventRef | None) -> Result:
    """Run a job once now, by the same rules as its other runs; while it is paused, the run waits."""
    if job.state == JobState.CANCELLED:
        raise refuse_in_state(job, "triggered")
    job = pause_for_namespace(batch, job)
    note_sequence(batch.connection, job, event.sequence if event else None)
    # Only the run uses the request's payload and lane; the job stays unchanged.
    version = job.version if request.payload is None else _one_off(batch, job, request.payload)
    job = job._replace(version=version, lane=job.lane if request.lane is None else int(request.lane))
    policy = job.policy or {}
    run_id = uuid7()
    start_by = _start_by(batch, policy.get("start_deadline_seconds"))
    paused = job.state == JobState.PAUSED or job.namespace in batch.facts.paused
    state, reason = (RunState.WAITING, WaitReason.PAUSED.value) if paused else (RunState.QUEUED, None)
    decision = _request_slot(batch, job, run_id, paused=paused)
    gate = None
    if decision is SlotDecision.SKIPPED:
        state, reason = RunState.SKIPPED, SkipReason.OVERLAP.value
    elif not paused and (gate := _first_gate(batch, job, decision)) is not None:
        state, reason = RunState.WAITING, gate.reason.value
    _insert_run(
        batch,
        job,
        {
            "ids": [run_id],
            "states": [state.value],
            "reasons": [reason],
            "start_by": [start_by],
            "holds_slot": [decision is SlotDecision.HAS_SLOT],
            "request_ids": [event.key.hex() if event else run_id.hex],
        },
    )
    if gate is not None:
        enqueue_waiting(batch.connection, [WaitingRun(run_id, batch.now, job.id, job.lane, gate, start_by)])
        batch.freed = True
    if state is RunState.SKIPPED:
        announce_skips(batch, job, [(run_id, batch.now)], origin=Origin.MANUAL, reason=SkipReason.OVERLAP)
    batch.queued |= state is not RunState.WAITING
    return Result(Status.ACCEPTED, job.id, run_id)


def _one_off(batch: Batch, job: LockedJob, payload: bytes) -> int:
    """Create the version that a single run uses for its own payload."""
    try:
        checked = payload_for(job.kind, orjson.loads(payload))
    except Refused as refused:
        verdict = Result(Status.REJECTED, job.id, reason=Reason.INVALID, refused=refused)
        raise RejectedRequest(verdict) from None
    row = batch.connection.execute(
        statement("insert_one_off_version"),
        {"job_id": job.id, "version": job.version, "payload": checked.decode()},
    ).fetchone()
    assert row is not None, f"{job} changed under its lock"
    version: int = row[0]
    return version


def _columns(job: LockedJob, spec: JobSpec, schedule: str | None) -> dict[str, object]:
    """Return the columns of a job's row for a document."""
    return {
        "job_id": job.id,
        "version": job.version,
        "name": spec.name,
        "kind": spec.kind,
        "handler": spec.handler,
        "lane": int(spec.lane),
        "pool": spec.pool,
        "schedule": schedule,
        "policy": policy_text(spec),
        "work": work_text(spec),
        "labels": labels_text(spec),
        "description": spec.description,
        "owner": spec.owner,
        "idempotency_key": spec.idempotency_key,
    }


def _has_had_its_instant(batch: Batch, job: LockedJob, spec: JobSpec) -> bool:
    """Return whether a one-time job keeps an instant that is past, so that an edit does not run it again."""
    if spec.schedule is not None or schedule_text(spec) != _once_of(job) or job.state == JobState.BROKEN:
        return False
    if spec.run_at is not None and spec.run_at > batch.now:
        return False  # without a timer, it was lost
    left = batch.connection.execute(
        "select 1 from timers where job_id = %s and kind in (0, 1, 3)", [job.id]
    ).fetchone()
    return left is None


def _once_of(job: LockedJob) -> str | None:
    """Return a one-time job's instant in the form that edits store it; None if it was due on arrival."""
    run_at = (job.schedule or {}).get("run_at")
    return None if run_at is None else once_text(parse_instant(run_at))


def _is_unchanged(batch: Batch, job: LockedJob, spec: JobSpec) -> bool:
    """Return whether a document equals the job's current one; False for a broken job, which it replaces."""
    if job.state == JobState.BROKEN:
        return False
    found = batch.connection.execute(
        statement("job_is_unchanged"), _columns(job, spec, schedule_text(spec))
    ).fetchone()
    return found is not None


def _is_stranded(batch: Batch, job: LockedJob, spec: JobSpec) -> bool:
    """Return whether the timer of a job was lost or moved outside noonmark: the job must be planned again."""
    paused = job.state == JobState.PAUSED
    if not (paused or job.state == JobState.ACTIVE) or _has_had_its_instant(batch, job, spec):
        return False
    due = _next_due(batch, spec, job, paused=paused)
    if due.at is None or (not job.recurring and due.at <= batch.now):
        return False
    jitter = spec.schedule.jitter_seconds if spec.schedule is not None else 0.0
    about = {"job_id": job.id, "paused": paused, "at": due.at, "jitter_seconds": jitter}
    return batch.connection.execute(statement("job_has_timer"), about).fetchone() is None


def _check(batch: Batch, job: LockedJob, spec: JobSpec) -> None:
    if batch.known.unknown_pools(batch.connection, pools_of([spec])):
        missing = unknown_pool(spec, batch.known.pools)
        assert missing is not None, "a pool is unknown"
        raise RejectedRequest(missing)
    if (old := old_release(batch, spec)) is not None:
        raise RejectedRequest(old._replace(job_id=job.id))
    if (misfit := batch.misfit(spec)) is not None:
        raise RejectedRequest(cannot_run(misfit)._replace(job_id=job.id))
    limits = batch.facts.limits_of(job.namespace)
    if (verdict := unknown_limit(spec.limits, job.namespace, limits)) is not None:
        raise RejectedRequest(verdict._replace(job_id=job.id))
    if job.recurring and spec.schedule is None and spec.run_at is None:
        # An update replaces the whole document. A forgotten schedule must not end it and run the job now.
        raise RejectedRequest(
            rejected(
                Reason.INVALID,
                "/schedule",
                f"is missing: {job} is recurring, and an update replaces its whole document",
                "the schedule, or run_at to make it a one-time job",
            )._replace(job_id=job.id)
        )


def _for_this_job(batch: Batch, request: UpdateJob, job: LockedJob) -> JobSpec:
    """Parse the schedule of a job that the request identified by id, with the job's namespace and name."""
    if request.schedule is None:
        return request.spec
    try:
        schedule = schedule_of(
            request.schedule,
            now=batch.now,
            namespace=job.namespace,
            name=request.spec.name or job.name,
            facts=batch.facts,
        )
    except Refused as refused:
        raise RejectedRequest(
            Result(Status.REJECTED, job.id, reason=Reason.INVALID, refused=refused)
        ) from None
    return structs.replace(request.spec, schedule=schedule)


def _in_step(spec: JobSpec, job: LockedJob, now: datetime) -> JobSpec:
    """Keep the phase of an interval without a `start`, and a one-time instant that is past.

    Otherwise every edit would restart the interval, and run the one-time job again.
    """
    old = job.schedule or {}
    if spec.schedule is None and spec.run_at is None and "run_at" in old:
        run_at = parse_instant(old["run_at"])
        return structs.replace(spec, run_at=run_at) if run_at <= now else spec
    anchors = {
        member["every"]: parse_instant(member["anchor"])
        for member in (old, *old.get("any", ()))
        if "anchor" in member and "start" not in member and "start" not in old
    }

    def in_step(schedule: Schedule) -> Schedule:
        if isinstance(schedule, AnyOf) and schedule.start is None:
            return replace(schedule, members=members_of(in_step(member) for member in schedule.members))
        if isinstance(schedule, Interval) and schedule.start is None:
            # A single interval keeps its phase even if its period changes; several are identified by period.
            every = plain_number(schedule.every.total_seconds())
            anchor = anchors.get(every, anchors.get(old.get("every")) if "every" in old else None)
            return schedule if anchor is None else replace(schedule, anchor=anchor)
        return schedule

    return spec if spec.schedule is None else structs.replace(spec, schedule=in_step(spec.schedule))


def _within_limit(batch: Batch, due: Due, job: LockedJob) -> Due:
    """Continue the count of a job with `max_runs`: an edit does not restart it."""
    before = (job.schedule or {}).get("max_runs")
    if due.runs_left is None or before is None:
        return due
    row = batch.connection.execute(statement("read_runs_left"), {"job_id": job.id}).fetchone()
    if row is None and job.state != JobState.COMPLETED:
        return due  # broken: the count was deleted with its timer
    left = due.runs_left - before + (row[0] if row is not None else 0)
    return due._replace(runs_left=left) if left > 0 else due._replace(at=None, fire_at=None)


def _behind(job: LockedJob) -> RejectedRequest:
    message = f"{job} has instants that came due before this update and are not planned yet"
    return RejectedRequest(
        rejected(
            Reason.CONFLICT, "", message, "the same update, sent again after a trigger has planned them"
        )._replace(job_id=job.id)
    )


def _next_due(batch: Batch, spec: JobSpec, job: LockedJob, *, paused: bool) -> Due:
    due = first_due(
        spec,
        job.id,
        batch.now,
        zone_data_is_active=batch.zone_data_is_active,
        paused=paused,
        capped=job.namespace in batch.facts.capped,
    )
    return once_due(spec, batch.now) if due.now else due


def _request_slot(batch: Batch, job: LockedJob, run_id: UUID, *, paused: bool) -> SlotDecision | None:
    """Request the slot of the job; return None if its runs may overlap."""
    overlap = Overlap((job.policy or {}).get("overlap", Overlap.ALLOW))
    if overlap is Overlap.ALLOW:
        return None
    if paused and overlap is Overlap.CANCEL_RUNNING:
        overlap = Overlap.QUEUE_ONE  # a run that cannot start yet must not stop one that runs
    request = SlotRequest(run_id, job.id, overlap)
    return decide_slots(batch.connection, [request], topics=batch.topics, install_shards=batch.shards)[run_id]


def _first_gate(batch: Batch, job: LockedJob, decision: SlotDecision | None) -> Gate | None:
    policy = job.policy or {}
    rule = policy.get("overlap", Overlap.ALLOW) if decision is SlotDecision.QUEUED_FOR_SLOT else Overlap.ALLOW
    # A workflow run takes nothing of its namespace's cap: its tasks do.
    capped = job.namespace in batch.facts.capped and job.pool != WORKFLOW_POOL
    gates = gates_of(job.id, job.namespace, job.lane, policy.get("limits", ()), rule, capped=capped)
    return gates[0] if gates else None


def _start_by(batch: Batch, deadline_seconds: float | None) -> datetime | None:
    return batch.now + timedelta(seconds=deadline_seconds) if deadline_seconds is not None else None


def _insert_run(batch: Batch, job: LockedJob, values: dict[str, object]) -> None:
    batch.known.ensure_day(batch.connection, batch.now)
    batch.connection.execute(
        statement("insert_runs"),
        {
            "scheduled_for": [batch.now],
            "last_scheduled_for": [None],
            "instants": [1],
            "job_ids": [job.id],
            "job_versions": [job.version],
            "shards": [job.shard],
            "lanes": [job.lane],
            "namespaces": [job.namespace],
            "pools": [job.pool],
            "origins": [Origin.MANUAL.value],
            "arrays": False,
            **values,
        },
    )
