"""What a pause holds of a job, counted for people: instants get their ledger rows at the resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import psycopg
from sqlalchemy import Connection

from noonmark.core.schedule import TICK, ScheduleError
from noonmark.store.schedule_texts import ScheduleTexts


def held_instants(connection: Connection, job: Mapping[str, Any]) -> int | None:
    """Count the instants that came due while a job was paused; None where its schedule cannot be read.

    Args:
        connection: of `views.reader`.
        job: a row of `views.find_jobs` whose `held_from` is set.
    """
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    row = driver.execute("select noonmark_now()").fetchone()
    assert row is not None
    text = orjson.dumps(job["schedule"]).decode()
    schedules = ScheduleTexts()
    schedules.learn(driver, [text])
    try:
        return schedules.read(text).count(job["held_from"] - TICK, row[0])
    except (ScheduleError, KeyError):
        # The job cannot be planned either, and its state will say so.
        return None
