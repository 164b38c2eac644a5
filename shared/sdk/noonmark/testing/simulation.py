"""A job in virtual time: which instants come due, and what the trigger's planner does with each."""

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
from noonmark.core.vocabulary import Overlap
from noonmark.schemas.jobs.job import JobSpec, parse_job

MOST_INSTANTS: Final = 100_000
"""A schedule of every second has more in two days: simulate a shorter time."""

_JOB_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class SimulatedInstant:
    """One due instant, or a range of skipped ones.

    Attributes:
        scheduled_for: the instant, UTC.
        at: when the trigger gave it its verdict.
        skipped: why it does not run, in the ledger's word; None: it runs.
        until: the last instant of a range; None for a single one.
        count: of instants.
    """

    scheduled_for: datetime
    at: datetime
    skipped: str | None = None
    until: datetime | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Simulated:
    """What became of a job.

    Attributes:
        instants: oldest first, each with its verdict.
        next_at: the first instant after the end; None where there is none.
    """

    instants: tuple[SimulatedInstant, ...]
    next_at: datetime | None

    @property
    def runs(self) -> list[datetime]:
        """The instants that run."""
        return [one.scheduled_for for one in self.instants if one.skipped is None]

    @property
    def skipped(self) -> dict[datetime, str]:
        """The instants that do not run, with the reason; of a range the first."""
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
    """Let time pass for a job that is made at `start`, and plan it as the trigger does.

    How long runs take is not part of it: what the overlap rule, limits and workers make of a run comes later.

    Args:
        job: the job document.
        start: when it is made; aware.
        end: until when; aware.
        outages: times in which nothing was planned, each from and until: what came due in them is late.
        calendars: of the job's namespace, by name.
        default_zone: of the namespace: that of a schedule that names none.

    Raises:
        Refused: the document is not valid.
        ValueError: too many instants come due in this time.
    """
    start, end = as_utc(start), as_utc(end)
    namespace = str(job.get("namespace", "default"))
    facts = TimeFacts(zones={namespace: default_zone}, calendars={namespace: calendars or {}})
    spec = parse_job(dict(job), now=start, ledger_floor=datetime.min.replace(tzinfo=UTC), facts=facts)
    schedule: Schedule = spec.schedule or Once(spec.run_at or start)
    if schedule.count(start, end) > MOST_INSTANTS:
        raise ValueError(f"more than {MOST_INSTANTS} instants come due: simulate a shorter time")
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
    """Plan once; return what was given a verdict, and the next instant."""
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
    """Return when the trigger next looks, at this moment or after it."""
    for begins, ends in _sorted(outages):
        if begins <= at < ends:
            at = ends
    return at


def _sorted(outages: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    yield from sorted((as_utc(begins), as_utc(ends)) for begins, ends in outages)
