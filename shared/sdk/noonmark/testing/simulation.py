"""Simulates a job in virtual time: its due instants, and what the planner of the trigger decides for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.instants import as_utc
from noonmark.core.planning.jitter import Jitter
from noonmark.core.planning.plan import plan
from noonmark.core.schedules.schedule import Once, Schedule
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.states import Overlap
from noonmark.schemas.jobs.job import JobSpec, parse_job

MOST_INSTANTS: Final = 100_000
"""Limit of a simulation: a schedule of every second exceeds it in two days."""

_JOB_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class SimulatedInstant:
    """One due instant, or a range of skipped ones.

    Attributes:
        scheduled_for: the instant, UTC.
        at: when the trigger decided.
        skipped: why it does not run, as in the ledger; None if it runs.
        until: the last instant of a range; None for a single instant.
        count: number of instants.
    """

    scheduled_for: datetime
    at: datetime
    skipped: str | None = None
    until: datetime | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a simulation.

    Attributes:
        instants: the instants with their decisions, oldest first.
        next_at: the first instant after the end; None if there is none.
    """

    instants: tuple[SimulatedInstant, ...]
    next_at: datetime | None

    @property
    def runs(self) -> list[datetime]:
        """The instants that run."""
        return [one.scheduled_for for one in self.instants if one.skipped is None]

    @property
    def skipped(self) -> dict[datetime, str]:
        """The instants that do not run, with their reason; for a range, its first instant."""
        return {one.scheduled_for: one.skipped for one in self.instants if one.skipped is not None}


def simulate(
    job: Mapping[str, Any],
    start: datetime,
    end: datetime,
    *,
    outages: Sequence[tuple[datetime, datetime]] = (),
    calendars: Mapping[str, Calendar] | None = None,
    default_zone: str = "UTC",
) -> Simulated:
    """Simulate a job that is created at `start`, and plan it like the trigger.

    The duration of runs is not simulated, nor what overlap rules, limits and workers do with them.

    Args:
        job: the job document.
        start: when the job is created; with a time zone.
        end: end of the simulation; with a time zone.
        outages: times in which the trigger was down, each as start and end: instants in them are late.
        calendars: calendars of the namespace, by name.
        default_zone: time zone of the namespace, for schedules without one.

    Raises:
        Refused: the document is not valid.
        ValueError: too many instants are due in this time.
    """
    start, end = as_utc(start), as_utc(end)
    namespace = str(job.get("namespace", "default"))
    facts = TimeFacts(zones={namespace: default_zone}, calendars={namespace: calendars or {}})
    spec = parse_job(dict(job), now=start, ledger_floor=datetime.min.replace(tzinfo=UTC), facts=facts)
    schedule: Schedule = spec.schedule or Once(spec.run_at or start)
    if schedule.count(start, end) > MOST_INSTANTS:
        raise ValueError(f"more than {MOST_INSTANTS} instants are due: simulate a shorter time")
    due = (spec.run_at or start) if spec.schedule is None else schedule.next(start)
    found: list[SimulatedInstant] = []
    now = start
    while due is not None:
        now = _awake(max(now, _fires(schedule, due)), outages)
        if now > end:
            break
        step, due = _step(spec, schedule, due, now, found)
        found += step
    return Simulated(tuple(found), due)


def _step(
    spec: JobSpec, schedule: Schedule, due: datetime, now: datetime, found: Sequence[SimulatedInstant]
) -> tuple[list[SimulatedInstant], datetime | None]:
    """Plan once; return the decided instants, and the next instant."""
    left = None if schedule.max_runs is None else schedule.max_runs - sum(not one.skipped for one in found)
    planned = plan(
        schedule,
        spec.misfire,
        due=due,
        now=now,
        jitter=Jitter(schedule, _JOB_ID.bytes) if schedule.jitter_seconds else None,
        start_deadline_seconds=spec.start_deadline_seconds,
        runs_left=left,
        one_at_a_time=spec.schedule is not None and spec.overlap is not Overlap.ALLOW,
    )
    ranges = [
        SimulatedInstant(one.first, now, one.reason.value, one.last, one.count) for one in planned.summary
    ]
    singles = [
        SimulatedInstant(one.scheduled_for, now, one.skipped.value if one.skipped else None)
        for one in planned.runs
    ]
    step = sorted([*ranges, *singles], key=lambda one: one.scheduled_for)
    used_up = left is not None and left <= sum(not one.skipped for one in step)
    return step, None if used_up else planned.next_at


def _fires(schedule: Schedule, due: datetime) -> datetime:
    return Jitter(schedule, _JOB_ID.bytes).fire_at(due) if schedule.jitter_seconds else due


def _awake(at: datetime, outages: Sequence[tuple[datetime, datetime]]) -> datetime:
    """Return when the trigger next runs, at this moment or after it."""
    for begins, ends in _sorted(outages):
        if begins <= at < ends:
            at = ends
    return at


def _sorted(outages: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    yield from sorted((as_utc(begins), as_utc(ends)) for begins, ends in outages)
