"""Stored schedules of listed jobs, read, and what a pause holds of a job, counted for people.

Held instants get their ledger rows at the resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
import psycopg
from sqlalchemy import Connection

from noonmark.core.schedule import TICK, Schedule, ScheduleError
from noonmark.store.schedule_texts import ScheduleTexts


def stored_schedules(connection: Connection, jobs: Sequence[Mapping[str, Any]]) -> dict[UUID, Schedule]:
    """Return the schedules of those jobs that have one which can be read, by the job's id.

    Args:
        connection: of `views.reader`.
        jobs: rows of `views.list_jobs` or `views.find_jobs`.
    """
    texts = {job["id"]: orjson.dumps(job["schedule"]).decode() for job in jobs if job["schedule"]}
    schedules = ScheduleTexts()
    schedules.learn(driver_of(connection), texts.values())
    found: dict[UUID, Schedule] = {}
    for job_id, text in texts.items():
        try:
            found[job_id] = schedules.read(text)
        except (ScheduleError, KeyError):
            # The job cannot be planned either, and its state says so.
            continue
    return found


def held_instants(connection: Connection, job: Mapping[str, Any], schedule: Schedule | None) -> int | None:
    """Count the instants that came due while a job was paused; None where its schedule cannot be read.

    Args:
        connection: of `views.reader`.
        job: a row of `views.find_jobs` whose `held_from` is set.
        schedule: that of `stored_schedules`.
    """
    if schedule is None:
        return None
    row = driver_of(connection).execute("select noonmark_now()").fetchone()
    assert row is not None
    return schedule.count(job["held_from"] - TICK, row[0])


def driver_of(connection: Connection) -> psycopg.Connection:
    """Return the driver's connection of the same transaction."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
