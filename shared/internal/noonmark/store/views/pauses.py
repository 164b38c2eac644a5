"""Parsed schedules of listed jobs, and the number of instants that a pause has deferred.

Deferred instants get their ledger rows at the resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import orjson
import psycopg
from sqlalchemy import Connection

from noonmark.core.schedules.schedule import TICK, Schedule, ScheduleError
from noonmark.core.states import JobState
from noonmark.store.documents.schedules import ScheduleTexts

_MOST_WALKED: Final = 10_000


def stored_schedules(connection: Connection, jobs: Sequence[Mapping[str, Any]]) -> dict[UUID, Schedule]:
    """Return the schedules of jobs by job id; jobs without a readable one are left out.

    Args:
        connection: any connection inside a transaction.
        jobs: rows of a listing of jobs.
    """
    texts = {job["id"]: orjson.dumps(job["schedule"]).decode() for job in jobs if job["schedule"]}
    schedules = ScheduleTexts()
    schedules.learn(driver_of(connection), texts.values())
    found: dict[UUID, Schedule] = {}
    for job_id, text in texts.items():
        try:
            found[job_id] = schedules.read(text)
        except (ScheduleError, KeyError):
            # Such a job cannot be planned either, and its state shows that.
            continue
    return found


def held_instants(connection: Connection, job: Mapping[str, Any], schedule: Schedule | None) -> int | None:
    """Count the instants that came due while a job was paused.

    Args:
        connection: any connection inside a transaction.
        job: a row of `views.jobs.find_job`.
        schedule: its schedule from `stored_schedules`.

    Returns:
        None if the job is not paused, its schedule cannot be read, or there are more than 10,000 instants
        that can only be counted one by one.
    """
    if schedule is None or job["state"] != JobState.PAUSED or job["held_from"] is None:
        return None
    row = driver_of(connection).execute("select noonmark_now()").fetchone()
    assert row is not None
    since = job["held_from"] - TICK
    if not schedule.walks:
        return schedule.count(since, row[0])
    # Reading a job that was paused years ago must not keep the server busy.
    found = len(schedule.between(since, row[0], _MOST_WALKED + 1))
    return found if found <= _MOST_WALKED else None


def driver_of(connection: Connection) -> psycopg.Connection:
    """Return the driver's connection of the same transaction."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
