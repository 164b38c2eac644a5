"""Reads the facts about a job or a run that explain why it has not run, in a few statements.

`noonmark.core.why.jobs.explain` turns them into answers. The caller measures the backlog in Kafka after the
transaction (`noonmark.kafka.lag.backlog`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from noonmark.core.planning.promotion import GateLimit, filled
from noonmark.core.schedules.schedule import TICK, Interval, Once, Schedule, ScheduleError
from noonmark.core.states import JobState, Lane, Origin, Overlap, RunState, TimerKind, WaitReason
from noonmark.core.why.facts import (
    DEFAULT_BOUNDS,
    Bounds,
    Facts,
    GateFacts,
    JobFacts,
    PathFacts,
    PoolFacts,
    RoleFacts,
    RunFacts,
    ScheduleFacts,
    SkippedInstant,
    TimerFacts,
    WorkflowFacts,
)
from noonmark.core.why.stranded import UNREADABLE, timer_fault
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.zones.zones import UTC_ZONE, zone_data_version
from noonmark.store.cluster.catalogues import live_catalogues
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.jobs.self_pauses import REASON_PREFIX
from noonmark.store.limits.promotion import rule_of
from noonmark.store.views.why_workflows import run_of_task, workflow_facts

_RECENT: Final = 20
"""Number of runs of a job that are checked: this many of the latest, and of the waiting ones."""

_HOLDERS: Final = 5
"""Maximum number of slot holders that are named for one gate."""

_CUT_OFF: Final = 5
_FIRST_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Setup(NamedTuple):
    """Settings and lookups of this process.

    Attributes:
        owner_timeout_seconds: a trigger or dispatcher without a heartbeat for longer is not live.
        bounds: thresholds for lateness.
        topic_of: returns the topic of a pool's lane.
    """

    owner_timeout_seconds: float = 3.0
    bounds: Bounds = DEFAULT_BOUNDS
    topic_of: Callable[[str, Lane], str] | None = None


def facts_of_job(connection: psycopg.Connection, job_id: UUID, setup: Setup) -> Facts | None:
    """Read the facts about a job and its latest runs; return None if the job does not exist.

    Args:
        connection: a connection in a read-only transaction whose statements all see the same snapshot.
        job_id: id of the job.
        setup: settings of this process.
    """
    job = _job(connection, job_id)
    if job is None:
        return None
    runs = _runs(connection, _recent(connection, job_id))
    # A run may use another lane than its job; the oldest queued run decides.
    lane = next((run.lane for run in reversed(runs) if run.state == RunState.QUEUED), job.lane)
    now, path = _path(connection, setup, job._replace(lane=lane), None)
    timer, after = _timer(connection, job, now)
    return Facts(
        now,
        job,
        path,
        setup.bounds,
        runs=runs,
        timer=timer,
        schedule=_schedule(connection, job, timer, after, now),
        timer_missing=timer is None and _needs_timer(connection, job, runs, now),
        gates=_gates(connection, runs),
        slot=_slot(connection, job),
        zone_data=zone_data_version(),
        workflow=_first_workflow(connection, runs),
    )


def facts_of_run(
    connection: psycopg.Connection, run_id: UUID, setup: Setup, task: str | None = None
) -> Facts | None:
    """Read the facts about a run, as `facts_of_job` does; return None if the run does not exist.

    Args:
        connection: as of `facts_of_job`.
        run_id: id of the run.
        setup: settings of this process.
        task: of a workflow run: the key of a task, which is asked about instead. None is returned if it has
            no such task.
    """
    runs = _runs(connection, [(run_id, None)])
    if not runs:
        return None
    run = runs[0]
    workflow = workflow_facts(connection, run)
    if task is not None:
        found = run_of_task(workflow, task) if workflow is not None and workflow.id == run.id else None
        if not isinstance(found, WorkflowFacts):
            return None if found is None else facts_of_run(connection, found, setup)
        workflow = found
    job = _job(connection, run.job_id)
    if job is not None:
        # A run goes to the pool of the job version that it was planned with, or of its task.
        job = job._replace(pool=run.pool, pool_known=run.pool_known)
        if run.task_kind is not None:
            job = job._replace(kind=run.task_kind, handler=run.task_handler)
    now, path = _path(connection, setup, job, run)
    return Facts(
        now,
        job,
        path,
        setup.bounds,
        run=run,
        gates=_gates(connection, runs),
        slot=_slot(connection, job) if run.state == RunState.SKIPPED and job is not None else None,
        zone_data=zone_data_version(),
        workflow=workflow,
    )


def _first_workflow(connection: psycopg.Connection, runs: Sequence[RunFacts]) -> WorkflowFacts | None:
    """Return the facts about the oldest unfinished workflow run of a job, or about the latest one."""
    first = next((run for run in reversed(runs) if run.unfinished), runs[0] if runs else None)
    return workflow_facts(connection, first) if first is not None and first.origin != Origin.TASK else None


def _job(connection: psycopg.Connection, job_id: UUID) -> JobFacts | None:
    with connection.cursor(row_factory=row_of(JobFacts)) as cursor:
        job = cursor.execute(statement("explain_job"), {"job_id": job_id}).fetchone()
    if job is None or not job.pauses_itself:
        return job
    reason = job.state_reason or ""
    if not reason.startswith(REASON_PREFIX):
        return job._replace(pauses_itself=False)
    return job._replace(state_reason=reason.removeprefix(REASON_PREFIX))


def _recent(connection: psycopg.Connection, job_id: UUID) -> list[tuple[UUID, datetime | None]]:
    return connection.execute(
        statement("explain_recent_runs"), {"job_id": job_id, "most": _RECENT}
    ).fetchall()


def _runs(connection: psycopg.Connection, wanted: Iterable[tuple[UUID, datetime | None]]) -> list[RunFacts]:
    """Read runs, the latest instant first; a run whose instant is unknown is looked up in every day."""
    wanted = list(wanted)
    if not wanted:
        return []
    known = [at for _, at in wanted if at is not None]
    bounded = len(known) == len(wanted)
    with connection.cursor(row_factory=row_of(RunFacts)) as cursor:
        return cursor.execute(
            statement("explain_runs"),
            {
                "ids": [run_id for run_id, _ in wanted],
                "first": min(known) if bounded else _FIRST_DAY,
                "last": max(known) if bounded else NEVER,
            },
        ).fetchall()


# gates


def _gates(connection: psycopg.Connection, runs: Sequence[RunFacts]) -> dict[UUID, GateFacts]:
    """Read the gates of those runs that wait for a slot."""
    waiting = {run.id: run for run in runs if run.state == RunState.WAITING and run.key is not None}
    if not waiting:
        return {}
    keys = {run.key for run in waiting.values() if run.key is not None}
    holders = _holders(connection, keys)
    rows = connection.execute(
        statement("explain_gates"),
        {"run_ids": list(waiting), "keys": [run.key for run in waiting.values()]},
    ).fetchall()
    gates = {}
    for run_id, max_running, rate_count, rate_seconds, burst, cap, used, tokens, age, before in rows:
        run = waiting[run_id]
        rule = None
        if run.reason == WaitReason.FAIRNESS:
            rule = GateLimit(cap) if cap is not None else None
        elif run.reason == WaitReason.LIMIT and (max_running is not None or rate_count is not None):
            rule = rule_of(max_running, rate_count, rate_seconds, burst)
        left = filled(tokens, age or 0.0, rule) if rule is not None else 0.0
        assert run.key is not None
        gates[run_id] = GateFacts(rule, used, left, before, holders.get(run.key, ()))
    return gates


def _holders(connection: psycopg.Connection, keys: Iterable[UUID]) -> dict[UUID, list[RunFacts]]:
    slots = connection.execute(
        statement("explain_slot_holders"), {"keys": list(keys), "most": _HOLDERS}
    ).fetchall()
    runs = {run.id: run for run in _runs(connection, [(run_id, None) for _, run_id in slots])}
    holders: defaultdict[UUID, list[RunFacts]] = defaultdict(list)
    for key, run_id in slots:
        if run_id in runs:
            holders[key].append(runs[run_id])
    return dict(holders)


def _slot(connection: psycopg.Connection, job: JobFacts) -> RunFacts | None:
    """Return the run that holds the overlap slot of a job."""
    if job.overlap in (None, Overlap.ALLOW.value):
        return None
    return next(iter(_holders(connection, [job.id]).get(job.id, ())), None)


# the path to a worker


def _path(
    connection: psycopg.Connection, setup: Setup, job: JobFacts | None, run: RunFacts | None
) -> tuple[datetime, PathFacts]:
    about = run or job
    assert about is not None
    topic = None
    if setup.topic_of is not None and about.pool != WORKFLOW_POOL:
        topic = setup.topic_of(about.pool, Lane(about.lane))
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(
            statement("explain_path"),
            {
                "pool": about.pool,
                "shard": about.shard,
                "lane": about.lane,
                "timeout_seconds": setup.owner_timeout_seconds,
                "cap": setup.bounds.outbox_rows,
                "topic": topic,
            },
        ).fetchone()
    assert row is not None
    misfit = None
    if job is not None and row["workers"]:
        catalogue = live_catalogues(connection).get(about.pool)
        misfit = catalogue.misfit(about.pool, job.kind, job.handler) if catalogue is not None else None
    pool = PoolFacts(
        row["workers"],
        row["worker_beat_at"],
        row["in_flight"],
        f"{misfit.message} ({misfit.expected})" if misfit is not None else None,
        None if misfit is None else "kind" if misfit.pointer == "/type" else "handler",
    )
    path = PathFacts(
        RoleFacts(row["triggers"], row["trigger_beat_at"]),
        RoleFacts(row["dispatchers"], row["dispatcher_beat_at"]),
        pool,
        row["unsent"],
        row["oldest_unsent_at"],
        row["passed_until"],
    )
    return row["now"], path


# the next instant


def _timer(
    connection: psycopg.Connection, job: JobFacts, now: datetime
) -> tuple[TimerFacts | None, datetime | None]:
    """Return the next instant of a job, and the last settled one if the timer contains it."""
    row = connection.execute(statement("explain_timer"), {"job_id": job.id}).fetchone()
    if row is None:
        return None, None
    at, fires_at, after_at, kind, unreadable = row
    zoned = kind == TimerKind.ZONED
    if unreadable is not None:
        return TimerFacts(now, None, False, zoned, UNREADABLE.format(instants=unreadable)), None
    place, fires_at = after_at is not None and after_at == at, None if fires_at >= NEVER else fires_at
    fault = None
    if job.state == JobState.ACTIVE and job.namespace_paused_at is None:
        # With other zone data, the same schedule can have other instants.
        comparable = not zoned or job.zone_data == zone_data_version()
        schedule = _parsed(connection, job) if comparable else None
        fault = timer_fault(at, fires_at, schedule, now, settled=place)
    return TimerFacts(at, fires_at, place, zoned, fault), after_at


def _needs_timer(
    connection: psycopg.Connection, job: JobFacts, runs: Sequence[RunFacts], now: datetime
) -> bool:
    """Return whether a job without a timer should have one; a one-time job that has had its run does not."""
    schedule = _parsed(connection, job) if job.state in (JobState.ACTIVE, JobState.PAUSED) else None
    return schedule is not None and (not isinstance(schedule, Once) or (schedule.run_at > now and not runs))


def _parsed(connection: psycopg.Connection, job: JobFacts) -> Schedule | None:
    if job.schedule is None:
        return None
    texts = ScheduleTexts()
    texts.learn(connection, [job.schedule])
    try:
        return texts.read(job.schedule)
    except (ScheduleError, KeyError):
        return None  # it cannot be planned either, and the job's state shows that


def _schedule(
    connection: psycopg.Connection,
    job: JobFacts,
    timer: TimerFacts | None,
    after: datetime | None,
    now: datetime,
) -> ScheduleFacts | None:
    schedule = _parsed(connection, job)
    if schedule is None or isinstance(schedule, Once):
        return None
    cut_off: list[SkippedInstant] = []
    deferred = None
    if timer is not None and timer.fault is not None:
        pass  # its instants say nothing
    elif timer is not None and timer.fires_at is None:
        deferred = schedule.count(timer.at if timer.place else timer.at - TICK, now)
    elif timer is not None and not timer.place:
        cut_off = _cut_off(schedule, after or now, timer.at, now)
    rule = schedule.calendars
    return ScheduleFacts(
        over=schedule.next(now) is None,
        max_runs=schedule.max_runs,
        end=schedule.end,
        jitter_seconds=schedule.jitter_seconds,
        calendars=[name for name, _ in (*rule.days.exclude, *rule.days.include)] if rule is not None else (),
        cut_off=cut_off,
        held=deferred,
    )


def _cut_off(schedule: Schedule, after: datetime, until: datetime, now: datetime) -> list[SkippedInstant]:
    """Return times between the last settled instant and the next one that do not fire."""
    rule, zone = schedule.calendars, schedule.zone or UTC_ZONE
    if isinstance(schedule, Interval):
        # An interval has no fixed times on a closed day, so the day itself is reported.
        local = zone.local(now)
        note = rule.days.closed_by(local.date()) if rule is not None and until > now else None
        return (
            [SkippedInstant(local.replace(microsecond=0), f"skipped: {note}", calendar=True)] if note else []
        )
    return [
        SkippedInstant(local, note, rule is not None and rule.days.closed_by(local.date()) is not None)
        for local, note in schedule.removed(after, until, _CUT_OFF)
    ]
