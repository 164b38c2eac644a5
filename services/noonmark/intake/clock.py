"""The database's time in this process, and the ledger floor: what a submission is checked against."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg


class Moment(NamedTuple):
    """What holds at one moment."""

    now: datetime
    ledger_floor: datetime


class DatabaseClock:
    """Goes on from the database's last word, so that a batch can be checked before it gets there.

    One thread sets it, another reads it.
    """

    def __init__(self) -> None:
        self._set: tuple[datetime, float, datetime] | None = None

    def look(self, connection: psycopg.Connection) -> None:
        """Read time and ledger floor from the database."""
        row = connection.execute("select noonmark_now(), ledger_floor from install").fetchone()
        assert row is not None
        self._set = (row[0], time.monotonic(), row[1])

    def hear(self, now: datetime) -> None:
        """Take over a time that a statement brought along."""
        if self._set is not None:
            self._set = (now, time.monotonic(), self._set[2])

    def moment(self) -> Moment | None:
        """Return what holds now; None before the database has said anything."""
        if self._set is None:
            return None
        now, at, floor = self._set
        return Moment(now + timedelta(seconds=time.monotonic() - at), floor)
