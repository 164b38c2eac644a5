"""Converts a checked job to columns of `jobs` and `timers`: small JSON texts, and its first timer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from noonmark.core.instants import format_instant
from noonmark.core.planning.jitter import Jitter
from noonmark.core.planning.plan import Misfire, MisfirePolicy
from noonmark.core.schedules.schedule import Schedule, next_memo
from noonmark.core.states import Overlap, TimerKind
from noonmark.schemas.jobs import work
from noonmark.schemas.jobs.job import JobSpec

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""`fire_at` of a paused job's timer: a date that every driver can read, unlike infinity."""

_DEFAULT_MISFIRE = Misfire()


class Due(NamedTuple):
    """When a job is first due, and how its run is created.

    Attributes:
        schedule: value of `jobs.schedule`: JSON text, None for a job that was due on arrival.
        at: nominal instant of its timer; None if it has no timer.
        fire_at: when the timer fires.
        kind: kind of the timer.
        now: whether run and message are written together with the job (the fast path).
        start_by: start deadline of the run on the fast path.
        after_at: the instant that the timer's instant follows, stored if it may have to be computed again.
        after_offset: offset from UTC of the local time at `after_at`, in seconds.
        runs_left: remaining runs of a job with `max_runs`.
    """

    schedule: str | None
    at: datetime | None
    fire_at: datetime | None
    kind: TimerKind = TimerKind.PLANNED
    now: bool = False
    start_by: datetime | None = None
    after_at: datetime | None = None
    after_offset: int | None = None
    runs_left: int | None = None

    def when_paused(self) -> Due:
        """Return its form for a paused job: a recurring job waits, a single instant is planned when due."""
        if self.at is None:
            return self
        if self.runs_by_schedule:
            return self._replace(fire_at=NEVER)
        return self._replace(kind=TimerKind.PLANNED)

    @property
    def runs_by_schedule(self) -> bool:
        """Whether the job recurs."""
        return self.schedule is not None and not self.schedule.startswith('{"run_at"')


def first_due(
    spec: JobSpec,
    job_id: UUID,
    now: datetime,
    *,
    zone_data_is_active: bool,
    paused: bool,
    capped: bool = False,
) -> Due:
    """Return when a job that is created at `now` is first due.

    Args:
        spec: the checked job.
        job_id: id of the job, for its jitter.
        now: the database's time in the transaction that creates the job.
        zone_data_is_active: whether this process has the active version of the zone data.
        paused: whether the job starts paused.
        capped: whether its namespace has a cap, so that its runs need a slot.
    """
    if spec.schedule is not None:
        due = recurring_due(spec.schedule, job_id, now, zone_data_is_active=zone_data_is_active)
        return due.when_paused() if paused else due
    if paused:
        return once_due(spec, spec.run_at or now).when_paused()
    if spec.run_at is None and spec.overlap is Overlap.ALLOW and not spec.limits and not capped:
        deadline = spec.start_deadline_seconds
        start_by = now + timedelta(seconds=deadline) if deadline is not None else None
        return Due(None, None, None, now=True, start_by=start_by)
    return once_due(spec, spec.run_at or now, capped=capped)


def recurring_due(schedule: Schedule, job_id: UUID, now: datetime, *, zone_data_is_active: bool) -> Due:
    """Return the timer of a recurring job, at the first instant after `now`."""
    text = _schedule_text(schedule)
    zone = schedule.zone
    if zone is None and schedule.calendars is None:
        at = next_memo(schedule, now)
        return Due(text, at, _fires(schedule, job_id, at), runs_left=schedule.max_runs)
    offset = int(zone.offset(now).total_seconds()) if zone is not None else None
    kind = TimerKind.PLANNED if zone is None else TimerKind.ZONED
    if zone is not None and not zone_data_is_active:
        # Only a position: a trigger with the active zone data computes the instant after it.
        return Due(text, now, now, kind, after_at=now, after_offset=offset, runs_left=schedule.max_runs)
    at = next_memo(schedule, now)
    fires = _fires(schedule, job_id, at)
    return Due(text, at, fires, kind, after_at=now, after_offset=offset, runs_left=schedule.max_runs)


def _fires(schedule: Schedule, job_id: UUID, at: datetime | None) -> datetime | None:
    if at is None or not schedule.jitter_seconds:
        return at
    return Jitter(schedule, job_id.bytes).fire_at(at)


def once_due(spec: JobSpec, run_at: datetime, *, capped: bool = False) -> Due:
    """Return the timer of a one-time job. Postgres claims timers of kind `ONCE` without the planner."""
    plain = (
        spec.overlap is Overlap.ALLOW
        and not spec.limits
        and not capped
        and spec.start_deadline_seconds is None
        and spec.misfire.policy is not MisfirePolicy.SKIP
    )
    text = once_text(run_at)
    return Due(text, run_at, run_at, TimerKind.ONCE if plain else TimerKind.PLANNED)


def schedule_text(spec: JobSpec) -> str | None:
    """Return the value of `jobs.schedule` for a document; None if it was due on arrival."""
    if spec.schedule is not None:
        return _schedule_text(spec.schedule)
    return None if spec.run_at is None else once_text(spec.run_at)


def once_text(run_at: datetime) -> str:
    """Return the value of `jobs.schedule` for a job with one instant."""
    return f'{{"run_at":"{format_instant(run_at)}"}}'


def policy_text(spec: JobSpec) -> str | None:
    """Return the value of `jobs.policy`: differences from the defaults of a one-time job, or None."""
    if (
        spec.overlap is Overlap.ALLOW
        and spec.start_deadline_seconds is None
        and spec.late_after_seconds is None
        and spec.misfire == _DEFAULT_MISFIRE
        and not spec.limits
    ):
        return None
    return _policy_text(
        spec.misfire, spec.overlap, spec.start_deadline_seconds, spec.late_after_seconds, spec.limits
    )


def work_text(spec: JobSpec) -> str:
    """Return the value of `jobs.work`, which workers read: payload, time limits, retry policy, delivery."""
    return work.work_text(
        spec.payload_json,
        spec.timeout_seconds,
        spec.retry,
        spec.delivery,
        deadline_seconds=spec.deadline_seconds,
        pause_after_failures=spec.pause_after_failures,
    )


def labels_text(spec: JobSpec) -> str | None:
    """Return the value of `jobs.labels`."""
    return orjson.dumps(spec.labels).decode() if spec.labels else None


@lru_cache(maxsize=16_384)
def _schedule_text(schedule: Schedule) -> str:
    return orjson.dumps(schedule.spec()).decode()


@lru_cache(maxsize=1024)
def _policy_text(
    misfire: Misfire,
    overlap: Overlap,
    start_deadline_seconds: float | None,
    late_after_seconds: float | None,
    limits: tuple[tuple[str, str | None], ...],
) -> str:
    stored: dict[str, object] = {"overlap": overlap.value}
    if misfire != _DEFAULT_MISFIRE:
        stored["misfire"] = {
            "policy": misfire.policy.value,
            "grace_seconds": misfire.grace_seconds,
            "look_back_seconds": misfire.look_back_seconds,
        }
    if start_deadline_seconds is not None:
        stored["start_deadline_seconds"] = start_deadline_seconds
    if late_after_seconds is not None:
        stored["late_after_seconds"] = late_after_seconds
    if limits:
        stored["limits"] = limits
    return orjson.dumps(stored).decode()


def spec_columns(specs: Sequence[JobSpec]) -> dict[str, list[Any]]:
    """Return the columns of new rows of `jobs` that follow from the jobs alone, for `folded`."""
    return {
        "names": [spec.name for spec in specs],
        "kinds": [spec.kind for spec in specs],
        "handlers": [spec.handler for spec in specs],
        "lanes": [int(spec.lane) for spec in specs],
        "pools": [spec.pool for spec in specs],
        "policies": [policy_text(spec) for spec in specs],
        "works": [work_text(spec) for spec in specs],
        "labels": [labels_text(spec) for spec in specs],
        "descriptions": [spec.description for spec in specs],
        "owners": [spec.owner for spec in specs],
        "idempotency_keys": [spec.idempotency_key for spec in specs],
    }
