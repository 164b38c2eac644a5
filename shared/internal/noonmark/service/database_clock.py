"""The database's time in this process, and the ledger floor: what a submission is checked against."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import NamedTuple

import psycopg

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.store.schedules.time_facts import read_time_facts


class Moment(NamedTuple):
    """What holds at one moment."""

    now: datetime
    ledger_floor: datetime
    facts: TimeFacts


class DatabaseClock:
    """Goes on from the database's last word, so that a batch can be checked before it gets there.

    One thread sets it, another reads it.
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
        """Take over a time that a statement brought along."""
        if self._set is not None:
            self._set = (self._set[0]._replace(now=now), time.monotonic())

    def moment(self) -> Moment | None:
        """Return what holds now; None before the database has said anything."""
        if self._set is None:
            return None
        moment, at = self._set
        return moment._replace(now=moment.now + timedelta(seconds=time.monotonic() - at))
