"""Computed columns of a job for people: its displayed state, when it is due, and when it ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, and_, case, exists, func, literal, null, or_, select

from noonmark.core.states import NO_NEXT_INSTANT, JobState, Origin, TimerKind
from noonmark.store.documents.columns import NEVER
from noonmark.store.documents.workflows import KIND
from noonmark.store.tables import tables as t

_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)


def job_columns() -> list[ColumnElement[Any]]:
    """Return the displayed columns of a job."""
    j = t.jobs
    shown = [column for column in j.c if column.name not in {"state", "state_reason"}]
    parked = _waits_for_calendars()
    return [
        *shown,
        shown_state().label("state"),
        case((parked, NO_NEXT_INSTANT), else_=j.c.state_reason).label("state_reason"),
        parked.label("no_next_instant"),
        _next_due().label("next_due_at"),
        _held_from().label("held_from"),
    ]


def last_run() -> ColumnElement[Any]:
    """Return the column with the last start of a run of the job; runs of a workflow's tasks do not count."""
    r, own = t.runs, t.runs.alias("own")
    started = select(r.c.started_at).where(r.c.job_id == t.jobs.c.id, r.c.started_at.is_not(None))
    latest = started.order_by(r.c.scheduled_for.desc()).limit(1)
    # The runs of tasks have the instant of their workflow run, which is then found by the whole key.
    instant = latest.with_only_columns(r.c.scheduled_for).scalar_subquery()
    of_workflow = select(func.max(own.c.started_at)).where(
        own.c.job_id == t.jobs.c.id,
        own.c.scheduled_for == instant,
        own.c.origin.in_([origin.value for origin in Origin if origin is not Origin.TASK]),
    )
    return case((t.jobs.c.kind == KIND, of_workflow.scalar_subquery()), else_=latest.scalar_subquery())


def _fire_timer(jobs: FromClause = t.jobs) -> ColumnElement[bool]:
    of_runs = (TimerKind.RETRY.value, TimerKind.ADVANCE.value)
    return and_(t.timers.c.job_id == jobs.c.id, t.timers.c.kind.not_in(of_runs))


def _readable() -> ColumnElement[bool]:
    """Return whether the instant of a timer can be read by a driver; `infinity`, for example, cannot."""
    return t.timers.c.scheduled_for.between(_FIRST, NEVER)


def _next_due() -> ColumnElement[Any]:
    """Return the column with the next instant; null if the job is paused or it must be computed again."""
    timers = t.timers
    known = or_(timers.c.after_at.is_(None), timers.c.after_at != timers.c.scheduled_for)
    wanted = and_(_fire_timer(), _readable(), timers.c.fire_at < NEVER, known)
    return select(func.min(timers.c.scheduled_for)).where(wanted).scalar_subquery()


def _waits_for_calendars() -> ColumnElement[bool]:
    """Return whether an active job's timer stays at its last settled instant, because none follows."""
    timers = t.timers
    parked = and_(_fire_timer(), timers.c.fire_at >= NEVER, timers.c.after_at == timers.c.scheduled_for)
    return and_(t.jobs.c.state == JobState.ACTIVE.value, exists(select(null()).where(parked)))


def _held_from() -> ColumnElement[Any]:
    """Return the column with the first instant deferred by a pause; null if there is none."""
    timers = t.timers
    settled = case(
        (timers.c.after_at == timers.c.scheduled_for, timedelta(microseconds=1)), else_=timedelta()
    )
    wanted = and_(_fire_timer(), _readable(), timers.c.fire_at >= NEVER)
    return select(func.min(timers.c.scheduled_for + settled)).where(wanted).scalar_subquery()


def one_time(jobs: FromClause = t.jobs) -> ColumnElement[bool]:
    """Return whether a job has a single instant."""
    schedule = jobs.c.schedule
    return or_(
        schedule.is_(None),
        func.jsonb_typeof(schedule) == "null",
        func.jsonb_exists(schedule, literal("run_at")),
    )


def shown_state(jobs: FromClause = t.jobs) -> ColumnElement[Any]:
    """Return the displayed state: a one-time job without a timer is completed; its row still says active."""
    fires = exists(select(null()).where(_fire_timer(jobs)).correlate(jobs))
    done = and_(jobs.c.state == JobState.ACTIVE.value, one_time(jobs), ~fires)
    return case((done, JobState.COMPLETED.value), else_=jobs.c.state)
