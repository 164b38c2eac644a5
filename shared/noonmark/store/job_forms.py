"""From a checked job to what `jobs` and `timers` hold: small JSON texts, and its first timer."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import orjson

from noonmark.core.instants import format_instant
from noonmark.core.planning import Misfire, MisfirePolicy
from noonmark.core.retry import RetryPolicy
from noonmark.core.schedule import Schedule, next_memo
from noonmark.core.words import Overlap, TimerKind
from noonmark.schemas.job import JobSpec

_DEFAULT_MISFIRE = Misfire()


class Due(NamedTuple):
    """When a job is first due, and by which way its run comes about.

    Attributes:
        schedule: what `jobs.schedule` holds: JSON text, None for a job that was due on arrival.
        fire_at: instant of its timer; None: no timer.
        kind: of the timer.
        now: True for the short way: run and message are written together with the job.
        start_by: of the run of the short way.
    """

    schedule: str | None
    fire_at: datetime | None
    kind: TimerKind = TimerKind.PLANNED
    now: bool = False
    start_by: datetime | None = None


def first_due(spec: JobSpec, now: datetime) -> Due:
    """Tell when a job made at `now` is first due.

    Args:
        spec: the checked job.
        now: the database's time in the transaction that makes the job.
    """
    if spec.schedule is not None:
        return Due(_schedule_text(spec.schedule), next_memo(spec.schedule, now))
    if spec.run_at is None and spec.overlap is Overlap.ALLOW:
        deadline = spec.start_deadline_seconds
        start_by = now + timedelta(seconds=deadline) if deadline is not None else None
        return Due(None, None, now=True, start_by=start_by)
    return once_due(spec, spec.run_at or now)


def once_due(spec: JobSpec, run_at: datetime) -> Due:
    """Give a one-time job its timer. What Postgres can claim by itself is kind `ONCE`."""
    plain = (
        spec.overlap is Overlap.ALLOW
        and spec.start_deadline_seconds is None
        and spec.misfire.policy is not MisfirePolicy.SKIP
    )
    text = f'{{"run_at":"{format_instant(run_at)}"}}'
    return Due(text, run_at, TimerKind.ONCE if plain else TimerKind.PLANNED)


def policy_text(spec: JobSpec) -> str | None:
    """Return what `jobs.policy` holds: what differs from the defaults of a one-time job, or None."""
    if (
        spec.overlap is Overlap.ALLOW
        and spec.start_deadline_seconds is None
        and spec.misfire == _DEFAULT_MISFIRE
    ):
        return None
    return _policy_text(spec.misfire, spec.overlap, spec.start_deadline_seconds)


def work_text(spec: JobSpec) -> str:
    """Return what `jobs.work` holds and workers read: payload, time limit and retry policy."""
    return f'{{"payload":{spec.payload_json.decode()},{_work_tail(spec.timeout_seconds, spec.retry)}'


def labels_text(spec: JobSpec) -> str | None:
    """Return what `jobs.labels` holds."""
    return orjson.dumps(spec.labels).decode() if spec.labels else None


@lru_cache(maxsize=16_384)
def _schedule_text(schedule: Schedule) -> str:
    return orjson.dumps(schedule.spec()).decode()


@lru_cache(maxsize=1024)
def _policy_text(misfire: Misfire, overlap: Overlap, start_deadline_seconds: float | None) -> str:
    stored: dict[str, object] = {"overlap": overlap.value}
    if misfire != _DEFAULT_MISFIRE:
        stored["misfire"] = {
            "policy": misfire.policy.value,
            "grace_seconds": misfire.grace_seconds,
            "look_back_seconds": misfire.look_back_seconds,
        }
    if start_deadline_seconds is not None:
        stored["start_deadline_seconds"] = start_deadline_seconds
    return orjson.dumps(stored).decode()


@lru_cache(maxsize=4096)
def _work_tail(timeout_seconds: float, retry: RetryPolicy) -> str:
    stored = {
        "timeout_seconds": timeout_seconds,
        "retry": {
            "max_retries": retry.max_retries,
            "delay_seconds": retry.delay_seconds,
            "factor": retry.factor,
            "max_delay_seconds": retry.max_delay_seconds,
            "jitter": retry.jitter.value,
        },
    }
    return orjson.dumps(stored).decode()[1:]
