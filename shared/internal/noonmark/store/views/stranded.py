"""Finds jobs and runs that nothing will continue, because their rows contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import namedtuple_row

from noonmark.core.schedules.schedule import Schedule, ScheduleError
from noonmark.core.states import TimerKind
from noonmark.core.why.answers import REMEDIES, Blocker
from noonmark.core.why.stranded import NO_TIMER, RUN_FAULTS, SLACK, UNREADABLE, timer_fault
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.schedules.time_facts import active_zone_data

MOST: Final = 100
"""Maximum number of problems that are reported of one kind."""

_CANDIDATES: Final = 10_000
_TIME_LIMIT: Final = "30s"
_DELETE: Final = "In SQL: `delete from {table} where {column} = '{id}'`."


@dataclass(frozen=True, slots=True)
class Stranded:
    """A job or run that nothing will continue.

    Attributes:
        code: `timer_missing`, `timer_wrong`, `timer_without_job`, `run_stranded` or `message_without_run`.
        namespace: of the job.
        job_id: of the job.
        job: its name, if it has one.
        run_id: of the run, if the problem is a run's.
        sentence: what is wrong.
        remedy: what to do.
    """

    code: str
    namespace: str
    job_id: UUID | None
    job: str | None
    run_id: UUID | None
    sentence: str
    remedy: str

    def __str__(self) -> str:
        """One line for people."""
        job = f"job {self.job or self.job_id} in namespace {self.namespace}"
        what = f"run {self.run_id} of {job}" if self.run_id is not None else job
        return f"{what}: {self.sentence}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class Search:
    """What was found, and the names of the tables that could not be searched in time."""

    found: Sequence[Stranded]
    unsearched: Sequence[str]


def find_stranded(connection: psycopg.Connection, *, most: int = MOST) -> Search:
    """Search all jobs and runs; each statement has a time limit.

    Args:
        connection: in autocommit mode.
        most: maximum number of problems of each kind.
    """
    searches: list[tuple[str, Callable[[psycopg.Connection, int], list[Stranded]]]] = [
        ("jobs", _jobs),
        ("timers", _timers),
        ("runs", _runs),
        ("outbox", _messages),
    ]
    found: list[Stranded] = []
    unsearched: list[str] = []
    for table, search in searches:
        try:
            with connection.transaction():
                connection.execute(f"set local statement_timeout = '{_TIME_LIMIT}'")
                found += search(connection, most)
        except psycopg.errors.QueryCanceled:
            unsearched.append(table)
    return Search(found, unsearched)


def _rows(connection: psycopg.Connection, name: str, most: int, **more: object) -> list[Any]:
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute(statement(name), {"most": most, **more}).fetchall()


def _jobs(connection: psycopg.Connection, most: int) -> list[Stranded]:
    remedy = REMEDIES[Blocker.TIMER_MISSING]
    return [
        Stranded(
            "timer_missing",
            row.namespace,
            row.job_id,
            row.name,
            None,
            NO_TIMER.format(state=row.state),
            remedy,
        )
        for row in _rows(connection, "find_stranded_jobs", most)
    ]


def _timers(connection: psycopg.Connection, most: int) -> list[Stranded]:
    rows = _rows(connection, "find_stranded_timers", _CANDIDATES, slack_seconds=SLACK.total_seconds())
    texts, comparable = ScheduleTexts(), active_zone_data(connection) == zone_data_version()
    texts.learn(connection, [row.schedule for row in rows if row.schedule is not None])
    found = [one for row in rows if (one := _timer(row, texts, comparable=comparable)) is not None]
    return found[:most]


def _timer(row: Any, texts: ScheduleTexts, *, comparable: bool) -> Stranded | None:
    about = (row.namespace, row.job_id, row.name, row.run_id)
    if row.orphaned:
        sentence = "a timer of this job exists, but the job does not"
        remedy = _DELETE.format(table="timers", column="job_id", id=row.job_id)
        return Stranded("timer_without_job", *about, sentence, remedy)
    if row.unreadable is not None:
        fault: str | None = UNREADABLE.format(instants=row.unreadable)
    else:
        # With other zone data, the same schedule can have other instants.
        known = comparable or row.kind != TimerKind.ZONED
        fires_at = None if row.fire_at >= NEVER else row.fire_at
        schedule = _schedule(texts, row.schedule) if known else None
        fault = timer_fault(row.scheduled_for, fires_at, schedule, row.now, settled=row.settled)
    return None if fault is None else Stranded("timer_wrong", *about, fault, REMEDIES[Blocker.TIMER_WRONG])


def _schedule(texts: ScheduleTexts, text: str | None) -> Schedule | None:
    try:
        return texts.read(text) if text is not None else None
    except (ScheduleError, KeyError):
        return None  # it cannot be planned either, and the job's state shows that


def _runs(connection: psycopg.Connection, most: int) -> list[Stranded]:
    remedy = REMEDIES[Blocker.RUN_STRANDED]
    return [
        Stranded(
            "run_stranded",
            row.namespace,
            row.job_id,
            None,
            row.id,
            RUN_FAULTS[row.fault].format(state=row.state),
            remedy.format(run=row.id),
        )
        for row in _rows(connection, "find_stranded_runs", most)
    ]


def _messages(connection: psycopg.Connection, most: int) -> list[Stranded]:
    return [
        Stranded(
            "message_without_run",
            row.namespace,
            row.job_id,
            None,
            row.run_id,
            "a message for this run is in the outbox, but the run does not exist",
            _DELETE.format(table="outbox", column="run_id", id=row.run_id),
        )
        for row in _rows(connection, "find_stranded_messages", most)
    ]
