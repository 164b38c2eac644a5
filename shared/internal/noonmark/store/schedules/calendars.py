"""Calendars: stores their contents, and plans the jobs that use a changed calendar again.

A job's stored schedule names each calendar with the digest of its contents. Contents never change. A change
of a calendar writes the new digest into the schedules of its jobs; their next instants are computed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.calendars.calendar import NAME_PATTERN, NAME_RULE, Calendar, CalendarError
from noonmark.core.schedules.schedule import ScheduleError
from noonmark.core.states import JobState
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.schedules.time_facts import change_time_facts

MAX_NAMED_JOBS: Final = 5
"""Maximum number of jobs that an error names."""

MAX_CHECKED: Final = 1_000
"""Maximum number of jobs of a calendar whose next instants are checked after a change."""


class Change(StrEnum):
    """What a change of a calendar did."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class CalendarChange(NamedTuple):
    """The result of a change of a calendar.

    Attributes:
        change: whether the calendar is new, has new contents, or had these already.
        digest: digest of its contents now.
        jobs: number of jobs whose schedules now name the new digest; 0 if nothing changed.
        replanned: number of jobs whose next instant the trigger computes again, now or at their resume.
        before: its contents before; None if it is new.
        now: its contents now.
    """

    change: Change
    digest: str
    jobs: int = 0
    replanned: int = 0
    before: Calendar | None = None
    now: Calendar = Calendar()


Edit = Callable[[Calendar | None], Calendar]
"""Returns the new contents of a calendar from its current ones, which are None if it does not exist."""


class CalendarUsers(NamedTuple):
    """Jobs that use a calendar, as far as they were checked.

    Attributes:
        names: names of the jobs, or ids of jobs without a name, by age.
        without_next: those that are active or paused and have no next instant with its contents.
        more: whether further jobs use it, which were not checked.
    """

    names: list[str]
    without_next: list[str]
    more: bool


class CalendarRow(NamedTuple):
    """A row of the listing of calendars. `body` is its JSON form, `jobs` the number of jobs that use it."""

    namespace: str
    name: str
    digest: str
    updated_at: datetime
    body: dict[str, Any]
    jobs: int


class CalendarInUseError(Exception):
    """A calendar cannot be deleted while jobs use it.

    Attributes:
        jobs: names (or ids of jobs without a name) of at most `MAX_NAMED_JOBS` of them.
    """

    def __init__(self, name: str, jobs: list[str], *, more: bool) -> None:
        shown = ", ".join(jobs) + (" and others" if more else "")
        super().__init__(
            f"calendar {name} is used by the job{'s' if len(jobs) > 1 else ''} {shown}; remove it from their"
            " schedules, or cancel them, before you delete it"
        )
        self.jobs = jobs


def preview_calendar(connection: psycopg.Connection, namespace: str, name: str, edit: Edit) -> CalendarChange:
    """Return what `edit_calendar` would do, except the numbers of jobs; nothing is changed or locked.

    Raises:
        CalendarError: the name is not valid for a calendar, or the edit refuses its contents.
    """
    check_name(name)
    before = _contents_of(connection, namespace, name)
    now = edit(before)
    change = Change.CREATED if before is None else Change.UNCHANGED if now == before else Change.CHANGED
    return CalendarChange(change, now.digest(), before=before, now=now)


def edit_calendar(connection: psycopg.Connection, namespace: str, name: str, edit: Edit) -> CalendarChange:
    """Change the contents of a calendar and plan the jobs that use it again, in one transaction.

    Settled instants stay unchanged. Later ones are computed again, with the new contents. Meanwhile no job is
    accepted, and none with a zone is planned.

    Args:
        connection: a connection without an open transaction.
        namespace: its namespace.
        name: name of the calendar.
        edit: returns the new contents from the current ones of this transaction.

    Raises:
        CalendarError: the name is not valid for a calendar, or the edit refuses its contents.
        psycopg.errors.DeadlockDetected: one of its jobs was being changed; retry.
        psycopg.errors.LockNotAvailable: planners or intake did not release their locks in time; retry.
    """
    check_name(name)
    with connection.transaction():
        change_time_facts(connection)
        before = _contents_of(connection, namespace, name)
        calendar = edit(before)
        digest = calendar.digest()
        if before == calendar:
            return CalendarChange(Change.UNCHANGED, digest, before=before, now=calendar)
        body = orjson.dumps(calendar.body()).decode()
        connection.execute(statement("insert_calendar_contents"), {"digest": digest, "body": body})
        connection.execute(
            statement("upsert_calendar"), {"namespace": namespace, "name": name, "digest": digest}
        )
        if before is None:
            return CalendarChange(Change.CREATED, digest, now=calendar)
        return _replan(connection, namespace, name, digest)._replace(before=before, now=calendar)


def calendar_users(
    connection: psycopg.Connection, namespace: str, name: str, calendar: Calendar
) -> CalendarUsers:
    """Return the jobs that use a calendar, and those of them that have no next instant.

    Args:
        connection: any connection; nothing is written.
        namespace: the calendar's namespace.
        name: name of the calendar.
        calendar: its current or future contents.
    """
    rows = connection.execute(
        statement("list_calendar_jobs"),
        {"namespace": namespace, "pair": _pair(name), "limit": MAX_CHECKED + 1},
    ).fetchall()
    users = rows[:MAX_CHECKED]
    pattern, pair = re.compile(_pair(name)), f'["{name}", "{calendar.digest()}"]'
    texts = [pattern.sub(pair, schedule) for _, _, _, schedule in users]
    schedules = ScheduleTexts([calendar])
    schedules.learn(connection, texts)
    row = connection.execute("select noonmark_now()").fetchone()
    assert row is not None
    # Many jobs share a schedule text, and searching for an instant that does not exist takes long.
    ends: dict[str, bool] = {}
    without: list[str] = []
    for (job_id, job_name, state, _), text in zip(users, texts, strict=True):
        if state not in (JobState.ACTIVE, JobState.PAUSED):
            continue
        if text not in ends:
            ends[text] = _has_no_next(schedules, text, row[0])
        if ends[text]:
            without.append(str(job_name or job_id))
    return CalendarUsers([str(row[1] or row[0]) for row in users], without, len(rows) > MAX_CHECKED)


def _has_no_next(schedules: ScheduleTexts, text: str, now: datetime) -> bool:
    try:
        return schedules.read(text).next(now) is None
    except (ScheduleError, KeyError):
        # It cannot be planned with any calendar; the trigger marks the job as broken and says why.
        return False


def delete_calendar(connection: psycopg.Connection, namespace: str, name: str) -> bool:
    """Delete a calendar that no job uses, in one transaction; return False if it does not exist.

    Raises:
        CalendarInUseError: jobs use it.
        psycopg.errors.LockNotAvailable: planners or intake did not release their locks in time; retry.
    """
    with connection.transaction():
        change_time_facts(connection)
        if _digest_of(connection, namespace, name) is None:
            return False
        users = connection.execute(
            statement("list_calendar_jobs"),
            {"namespace": namespace, "pair": _pair(name), "limit": MAX_NAMED_JOBS + 1},
        ).fetchall()
        if users:
            shown = [str(job_name or job_id) for job_id, job_name, _, _ in users[:MAX_NAMED_JOBS]]
            raise CalendarInUseError(name, shown, more=len(users) > MAX_NAMED_JOBS)
        connection.execute(statement("delete_calendar"), {"namespace": namespace, "name": name})
        return True


def list_calendars(
    connection: psycopg.Connection, namespace: str | None = None, name: str | None = None
) -> list[CalendarRow]:
    """List calendars, by namespace and name; None selects every namespace, or every name."""
    with connection.cursor(row_factory=row_of(CalendarRow)) as cursor:
        return cursor.execute(statement("list_calendars"), {"namespace": namespace, "name": name}).fetchall()


def get_calendar(connection: psycopg.Connection, namespace: str, name: str) -> CalendarRow | None:
    """Return a calendar; None if it does not exist."""
    found = list_calendars(connection, namespace, name)
    return found[0] if found else None


def _digest_of(connection: psycopg.Connection, namespace: str, name: str) -> str | None:
    row = connection.execute(
        "select digest from calendars where namespace = %s and name = %s", [namespace, name]
    ).fetchone()
    return row[0] if row else None


def _contents_of(connection: psycopg.Connection, namespace: str, name: str) -> Calendar | None:
    row = connection.execute(
        "select body from calendars join calendar_contents using (digest) where namespace = %s and name = %s",
        [namespace, name],
    ).fetchone()
    return Calendar.parse(row[0]) if row else None


def check_name(name: str) -> None:
    """Check the name of a calendar.

    Raises:
        CalendarError: it is not valid.
    """
    if not NAME_PATTERN.fullmatch(name):
        raise CalendarError("", f"{name!r} is not a valid calendar name; expected {NAME_RULE}")


def _replan(connection: psycopg.Connection, namespace: str, name: str, digest: str) -> CalendarChange:
    """Write the new digest into the jobs that use a calendar, and replace their timers."""
    key = {"namespace": namespace, "pair": _pair(name)}
    connection.execute(statement("lock_calendar_timers"), key)
    jobs: list[tuple[UUID, str]] = connection.execute(
        statement("update_calendar_jobs"), {**key, "new_pair": f'["{name}", "{digest}"]'}
    ).fetchall()
    if not jobs:
        return CalendarChange(Change.CHANGED, digest)
    row = connection.execute(
        statement("replan_calendar_timers"),
        {
            "jobs": [job for job, _ in jobs],
            "paused": [job for job, state in jobs if state == JobState.PAUSED],
        },
    ).fetchone()
    assert row is not None
    deleted, added, unplaced = row
    assert deleted == added, f"{deleted} timers were deleted and {added} inserted"
    assert unplaced == 0, f"{unplaced} timers of jobs with calendars have no last settled instant"
    return CalendarChange(Change.CHANGED, digest, jobs=len(jobs), replanned=added)


def _pair(name: str) -> str:
    """Return a pattern for a calendar's name and digest, as Postgres writes them in a schedule."""
    return rf'\["{re.escape(name)}", "[0-9a-f]+"\]'
