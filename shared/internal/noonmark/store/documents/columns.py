"""From a checked job to what `jobs` and `timers` hold: small JSON texts, and its first timer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

import orjson

from noonmark.core.instants import format_instant
from noonmark.core.planning.jitter import Jitter
from noonmark.core.planning.plan import Misfire, MisfirePolicy
from noonmark.core.retry import RetryPolicy
from noonmark.core.schedules.schedule import Schedule, next_memo
from noonmark.core.vocabulary import DeliverySemantics, Overlap, TimerKind
from noonmark.schemas.jobs.job import JobSpec

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""When the timer of a paused job fires: a date that every driver can read, unlike infinity."""

_DEFAULT_MISFIRE = Misfire()


class Due(NamedTuple):
    """When a job is first due, and by which way its run comes about.

    Attributes:
        schedule: what `jobs.schedule` holds: JSON text, None for a job that was due on arrival.
        at: nominal instant of its timer; None: no timer.
        fire_at: when the timer fires.
        kind: of the timer.
        now: True for the short way: run and message are written together with the job.
        start_by: of the run of the short way.
        after_at: from where the timer's instant was found, kept where it may have to be found again.
        after_offset: seconds from UTC of the wall clock at `after_at`.
        runs_left: of a job with `max_runs`.
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

    def held(self) -> Due:
        """Return it as it is for a paused job: what recurs waits, one instant is planned when it comes."""
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
    held: bool,
    capped: bool = False,
) -> Due:
    """Tell when a job made at `now` is first due.

    Args:
        spec: the checked job.
        job_id: of the job, for its jitter.
        now: the database's time in the transaction that makes the job.
        zone_data_is_active: this process has the version of zone data that the installation plans with.
        held: the job begins paused.
        capped: its namespace has a cap: its runs need room.
    """
    if spec.schedule is not None:
        due = recurring_due(spec.schedule, job_id, now, zone_data_is_active=zone_data_is_active)
        return due.held() if held else due
    if held:
        return once_due(spec, spec.run_at or now).held()
    if spec.run_at is None and spec.overlap is Overlap.ALLOW and not spec.limits and not capped:
        deadline = spec.start_deadline_seconds
        start_by = now + timedelta(seconds=deadline) if deadline is not None else None
        return Due(None, None, None, now=True, start_by=start_by)
    return once_due(spec, spec.run_at or now, capped=capped)


def recurring_due(schedule: Schedule, job_id: UUID, now: datetime, *, zone_data_is_active: bool) -> Due:
    """Give a recurring job its timer: at the first instant after `now`."""
    text = _schedule_text(schedule)
    zone = schedule.zone
    if zone is None and schedule.calendars is None:
        at = next_memo(schedule, now)
        return Due(text, at, _fires(schedule, job_id, at), runs_left=schedule.max_runs)
    offset = int(zone.offset(now).total_seconds()) if zone is not None else None
    kind = TimerKind.PLANNED if zone is None else TimerKind.ZONED
    if zone is not None and not zone_data_is_active:
        # Only a place: a trigger with the active zone data finds the instant after it.
        return Due(text, now, now, kind, after_at=now, after_offset=offset, runs_left=schedule.max_runs)
    at = next_memo(schedule, now)
    fires = _fires(schedule, job_id, at)
    return Due(text, at, fires, kind, after_at=now, after_offset=offset, runs_left=schedule.max_runs)


def _fires(schedule: Schedule, job_id: UUID, at: datetime | None) -> datetime | None:
    if at is None or not schedule.jitter_seconds:
        return at
    return Jitter(schedule, job_id.bytes).fire_at(at)


def once_due(spec: JobSpec, run_at: datetime, *, capped: bool = False) -> Due:
    """Give a one-time job its timer. What Postgres can claim by itself is kind `ONCE`."""
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
    """Return what `jobs.schedule` holds of a document; None where it was due on arrival."""
    if spec.schedule is not None:
        return _schedule_text(spec.schedule)
    return None if spec.run_at is None else once_text(spec.run_at)


def once_text(run_at: datetime) -> str:
    """Return what `jobs.schedule` holds of a job with one instant."""
    return f'{{"run_at":"{format_instant(run_at)}"}}'


def policy_text(spec: JobSpec) -> str | None:
    """Return what `jobs.policy` holds: what differs from the defaults of a one-time job, or None."""
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
    """Return what `jobs.work` holds and workers read: payload, time limits, retry policy and delivery."""
    tail = _work_tail(
        spec.timeout_seconds, spec.retry, spec.delivery, spec.deadline_seconds, spec.pause_after_failures
    )
    return f'{{"payload":{spec.payload_json.decode()},{tail}'


def labels_text(spec: JobSpec) -> str | None:
    """Return what `jobs.labels` holds."""
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


@lru_cache(maxsize=4096)
def _work_tail(
    timeout_seconds: float,
    retry: RetryPolicy,
    delivery: DeliverySemantics,
    deadline_seconds: float | None,
    pause_after_failures: int | None,
) -> str:
    stored: dict[str, object] = {
        "timeout_seconds": timeout_seconds,
        "retry": retry.stored(),
    }
    if delivery is not DeliverySemantics.AT_LEAST_ONCE:
        stored["delivery"] = delivery.value
    if deadline_seconds is not None:
        stored["deadline_seconds"] = deadline_seconds
    if pause_after_failures is not None:
        stored["pause_after_failures"] = pause_after_failures
    return orjson.dumps(stored).decode()[1:]
