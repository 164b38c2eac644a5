"""The release of the time zone data that the installation plans with, and the activation of another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.planning.jitter import Jitter
from noonmark.core.schedules.schedule import Schedule
from noonmark.core.schedules.zone_change import next_open
from noonmark.core.states import JobState
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.schedules.time_facts import active_zone_data, change_time_facts

MAX_LISTED: Final = 1000
"""Maximum number of moved jobs, and of skipped ones, that a report lists; it counts all of them."""

_BATCH: Final = 2000
_MOST_CACHED: Final = 500_000

Progress = Callable[[int], None]
"""Receives the number of timers checked so far."""


class Release(NamedTuple):
    """A release of the zone data that the installation has planned with.

    Attributes:
        version: the version, such as "2026f".
        active: whether the installation plans with it now.
        activated_at: when it was last activated.
        timers: number of zoned jobs checked then; None for the first one of an installation.
        moved: number of jobs whose next instant moved.
    """

    version: str
    active: bool
    activated_at: datetime | None
    timers: int | None
    moved: int | None


@dataclass(frozen=True, slots=True)
class MovedJob:
    """A job whose next instant has moved. Local times are naive, by the clock of the new data.

    Attributes:
        zone: IANA name.
        was: the instant that was planned.
        at: the instant that replaces it; None if the schedule has no further one.
        was_local: the local time of `was`, by the new data.
        at_local: the local time of `at`.
        paused: whether the job waits for its resume.
    """

    job_id: UUID
    name: str | None
    namespace: str
    zone: str
    was: datetime
    at: datetime | None
    was_local: datetime
    at_local: datetime | None
    paused: bool


@dataclass(frozen=True, slots=True)
class SkippedJob:
    """A job that could not be planned again: it keeps its instant, and becomes broken when that is due."""

    job_id: UUID
    name: str | None
    namespace: str | None
    reason: str


@dataclass(slots=True)
class Report:
    """What an activation did, or would do.

    Attributes:
        version: version of this process's zone data.
        previous: the version that was active; None if there was none.
        dry_run: whether this was a preview that changed nothing.
        activated_at: when this call activated the version; None if it did not.
        timers: number of zoned jobs checked.
        moved: number of jobs whose next instant moved.
        respread: number of jobs whose instant stays and whose jitter, bounded by the next instant, changes.
        skipped: number of jobs that could not be planned again.
        moved_jobs: the first `MAX_LISTED` moved jobs.
        skipped_jobs: the first `MAX_LISTED` skipped jobs.
    """

    version: str
    previous: str | None
    dry_run: bool
    activated_at: datetime | None = None
    timers: int = 0
    moved: int = 0
    respread: int = 0
    skipped: int = 0
    moved_jobs: list[MovedJob] = field(default_factory=list)
    skipped_jobs: list[SkippedJob] = field(default_factory=list)

    @property
    def was_active(self) -> bool:
        """Whether the version was active before; then nothing changes."""
        return self.previous == self.version

    @property
    def goes_back(self) -> bool:
        """Whether the version is older than the one that was active."""
        return self.previous is not None and self.version < self.previous


def ensure_active(connection: psycopg.Connection, version: str) -> None:
    """Activate this version if the installation has no active one yet."""
    connection.execute(
        """insert into zone_data (version, active, activated_at)
           select %(version)s, true, noonmark_now()
           where not exists (select from zone_data where active)
           on conflict (version) do update set active = true, activated_at = excluded.activated_at""",
        {"version": version},
    )


def differing_zone_data(version: str, active: str | None) -> str:
    """Return the message for a process with other zone data than the installation plans with."""
    return (
        f"the active zone data are {active or 'unknown'}, but this process has {version}, with which a"
        " trigger claims no job with a time zone: run `noonmark zones activate`, or use the active version"
    )


def history(connection: psycopg.Connection) -> list[Release]:
    """Return the releases that the installation has planned with, the active one first."""
    with connection.cursor(row_factory=row_of(Release)) as cursor:
        return cursor.execute(statement("list_zone_data")).fetchall()


def count_zoned(connection: psycopg.Connection) -> int:
    """Return the number of jobs whose next instant depends on zone data."""
    row = connection.execute("select count(*) from timers where kind = 3").fetchone()
    assert row is not None
    total: int = row[0]
    return total


def activate(
    connection: psycopg.Connection,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
    on_report: Callable[[Report], None] | None = None,
) -> Report:
    """Activate this process's zone data for the installation, and plan waiting instants again.

    All of it happens in one transaction, for which claims of zoned jobs and writers of schedules wait. Runs
    in the ledger stay unchanged. Local time decides what is done: a local time that was settled under the old
    data does not fire again, and one that was not settled fires. If the version is active, nothing changes.

    Args:
        connection: a connection without an open transaction.
        dry_run: whether to only report what would change, without any lock.
        progress: receives the progress; without `dry_run` it counts twice.
        on_report: receives the report, in the transaction that made the changes.

    Raises:
        psycopg.Error: nothing was changed; try again.
    """
    version = zone_data_version()
    replanner = _Replanner(connection, progress)
    with connection.transaction():
        report = Report(version, active_zone_data(connection), dry_run)
        if report.was_active:
            return report
        # First without the lock: the results are cached, so that planners then wait only for the writes.
        for _ in replanner.changes(report):
            pass
        if dry_run:
            return report
    with connection.transaction():
        change_time_facts(connection)
        report = Report(version, active_zone_data(connection), dry_run)
        if report.was_active:
            return report
        for changes in replanner.changes(report):
            _move(connection, changes)
        connection.execute("update zone_data set active = false where active")
        row = connection.execute(
            statement("activate_zone_data"),
            {"version": version, "timers": report.timers, "moved": report.moved},
        ).fetchone()
        assert row is not None
        report.activated_at = row[0]
        if on_report is not None:
            on_report(report)
    return report


class _Timer(NamedTuple):
    """A row of `read_zoned_timers`."""

    job_id: UUID
    scheduled_for: datetime
    fire_at: datetime
    after_at: datetime | None
    after_offset: int | None
    schedule: str | None
    name: str | None
    namespace: str | None
    state: str | None


@dataclass(frozen=True, slots=True)
class _Change:
    """The new instant of a timer. `fire_at` None means as soon as possible; `wakes` ends an endless wait."""

    timer: _Timer
    at: datetime
    fire_at: datetime | None
    wakes: bool


class _Replanner:
    """Finds the timers whose instants differ under this process's zone data."""

    def __init__(self, connection: psycopg.Connection, progress: Progress | None) -> None:
        self._connection = connection
        self._progress = progress or (lambda _: None)
        self._schedules = ScheduleTexts()
        self._found: dict[tuple[str, datetime, int, datetime | None], datetime | None] = {}

    def changes(self, report: Report) -> Iterator[list[_Change]]:
        """Yield the changes to write, batch by batch, and count them in the report."""
        with self._connection.cursor(name="zoned_timers", row_factory=row_of(_Timer)) as cursor:
            cursor.execute(statement("read_zoned_timers"))
            while timers := cursor.fetchmany(_BATCH):
                self._schedules.learn(self._connection, (t.schedule for t in timers if t.schedule))
                yield [change for timer in timers if (change := self._change(timer, report)) is not None]
                report.timers += len(timers)
                self._progress(report.timers)

    def _change(self, timer: _Timer, report: Report) -> _Change | None:
        try:
            return self._plan(timer, report)
        except Exception as error:  # noqa: BLE001 - an error in one job must not stop the others
            report.skipped += 1
            if len(report.skipped_jobs) < MAX_LISTED:
                reason = str(error) or type(error).__name__
                report.skipped_jobs.append(SkippedJob(timer.job_id, timer.name, timer.namespace, reason))
            return None

    def _plan(self, timer: _Timer, report: Report) -> _Change | None:
        if timer.schedule is None or timer.after_at is None or timer.after_offset is None:
            raise ValueError("its timer does not contain the last settled instant")
        schedule = self._schedules.read(timer.schedule)
        is_place = timer.scheduled_for == timer.after_at
        waits = timer.fire_at == NEVER
        if is_place and (not waits or timer.state == JobState.PAUSED):
            return None  # The claim computes its instant, with the zone data of that moment.
        at = self._next(timer.schedule, schedule, timer, None if is_place else timer.scheduled_for)
        if is_place and at is None:
            return None
        if at == timer.scheduled_for:
            return self._respread(timer, schedule, report)
        _note_move(report, timer, schedule, at)
        if at is None:
            # Only a position: the claim completes the job, or lets it wait for its calendars.
            return _Change(timer, timer.after_at, None, wakes=False)
        return _Change(timer, at, _fires(schedule, timer, at), wakes=is_place)

    def _next(
        self, text: str, schedule: Schedule, timer: _Timer, planned: datetime | None
    ) -> datetime | None:
        assert timer.after_at is not None
        assert timer.after_offset is not None
        key = (text, timer.after_at, timer.after_offset, planned)
        if key not in self._found:
            if len(self._found) >= _MOST_CACHED:
                self._found.clear()
            offset = timedelta(seconds=timer.after_offset)
            self._found[key] = next_open(schedule, timer.after_at, offset, planned=planned)
        return self._found[key]

    @staticmethod
    def _respread(timer: _Timer, schedule: Schedule, report: Report) -> _Change | None:
        if not schedule.jitter_seconds or timer.fire_at in (NEVER, timer.scheduled_for):
            return None
        fire_at = _fires(schedule, timer, timer.scheduled_for)
        if fire_at == timer.fire_at:
            return None
        report.respread += 1
        return _Change(timer, timer.scheduled_for, fire_at, wakes=False)


def _fires(schedule: Schedule, timer: _Timer, at: datetime) -> datetime:
    return Jitter(schedule, timer.job_id.bytes).fire_at(at) if schedule.jitter_seconds else at


def _note_move(report: Report, timer: _Timer, schedule: Schedule, at: datetime | None) -> None:
    report.moved += 1
    if len(report.moved_jobs) >= MAX_LISTED:
        return
    zone = schedule.zone
    assert zone is not None, "a zoned timer of a schedule without a zone"
    report.moved_jobs.append(
        MovedJob(
            timer.job_id,
            timer.name,
            timer.namespace or "",
            zone.name,
            timer.scheduled_for,
            at,
            zone.local(timer.scheduled_for),
            zone.local(at) if at is not None else None,
            timer.state == JobState.PAUSED,
        )
    )


def _move(connection: psycopg.Connection, changes: Sequence[_Change]) -> None:
    if not changes:
        return
    connection.execute(
        statement("move_zoned_timers"),
        {
            "never": NEVER,
            "jobs": [change.timer.job_id for change in changes],
            "was": [change.timer.scheduled_for for change in changes],
            "after_at": [change.timer.after_at for change in changes],
            "at": [change.at for change in changes],
            "fire_at": [change.fire_at for change in changes],
            "wakes": [change.wakes for change in changes],
        },
    )
