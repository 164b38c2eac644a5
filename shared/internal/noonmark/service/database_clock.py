"""The database's time in this process, the ledger floor and the time facts, to check submissions."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.store.schedules.time_facts import read_time_facts


class Moment(NamedTuple):
    """Time and facts of one moment."""

    now: datetime
    ledger_floor: datetime
    facts: TimeFacts


class DatabaseClock:
    """Continues from the last time that the database reported, to check a batch before it is sent.

    One thread can set it while another reads it.
    """

    def __init__(self) -> None:
        self._set: tuple[Moment, float] | None = None

    def refresh(self, connection: psycopg.Connection) -> None:
        """Read time, ledger floor and facts from the database."""
        row = connection.execute("select noonmark_now(), ledger_floor, facts from install").fetchone()
        assert row is not None
        now, floor, number = row
        known = self._set[0].facts if self._set else None
        facts = known if known is not None and known.number == number else read_time_facts(connection)
        self._set = (Moment(now, floor, facts), time.monotonic())

    def observe(self, now: datetime) -> None:
        """Set the time to one that a statement returned."""
        if self._set is not None:
            self._set = (self._set[0]._replace(now=now), time.monotonic())

    def moment(self) -> Moment | None:
        """Return the current moment; None before the first refresh."""
        if self._set is None:
            return None
        moment, at = self._set
        return moment._replace(now=moment.now + timedelta(seconds=time.monotonic() - at))
