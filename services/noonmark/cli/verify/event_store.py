"""Keeps the events about runs in a temporary file, so that memory does not grow with the topic.

Events come in the order in which runs ended, runs are judged in the order of their ids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from noonmark.verify.history import Death, LifecycleRecord

_DAY_SECONDS: Final = 86_400
_CACHE_KB: Final = 16_384
_DEATH: Final = "dead letter event"
"""In place of the state of an outcome."""

_encode = msgspec.msgpack.Encoder().encode
_decode_outcome: Final = msgspec.msgpack.Decoder(LifecycleRecord).decode
_decode_death: Final = msgspec.msgpack.Decoder(Death).decode


class RunEvents(NamedTuple):
    """What events say about some runs."""

    outcomes: list[LifecycleRecord]
    deaths: list[Death]


class EventStore:
    """Events by the day of their run's instant and its id. An event that was sent twice is stored once.

    Args:
        file: is created; must not exist.

    Raises:
        sqlite3.OperationalError: from all methods: the disk is full, or the file cannot be written.
    """

    def __init__(self, file: Path) -> None:
        self._db = sqlite3.connect(file, isolation_level=None)
        # Nothing has to survive this process.
        self._db.executescript(
            f"""pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive;
                pragma cache_size = -{_CACHE_KB};
                create table events (day integer, run blob, state text, event text, fence integer, body blob,
                                   primary key (day, run, state, event, fence)) without rowid"""
        )

    def add(self, outcomes: Iterable[LifecycleRecord], deaths: Iterable[Death]) -> None:
        """Store events; each must name the instant of its run."""
        rows = [
            (_day(one.scheduled_for), _key(one.run), one.state, one.event, one.fence, _encode(one))
            for one in outcomes
            if one.scheduled_for is not None
        ]
        rows += [
            (_day(one.scheduled_for), _key(one.run), _DEATH, "", one.fence, _encode(one))
            for one in deaths
            if one.scheduled_for is not None
        ]
        self._db.execute("begin")
        self._db.executemany("insert or ignore into events values (?, ?, ?, ?, ?, ?)", rows)
        self._db.execute("commit")

    def about(self, day: datetime, after: UUID, last: UUID, runs: Collection[str]) -> RunEvents:
        """Return the events about runs of a day of which the ids are above `after`, up to `last`."""
        wanted = {_key(run) for run in runs}
        found = RunEvents([], [])
        where = (_day(day), after.bytes, last.bytes)
        for run, state, body in self._db.execute(
            "select run, state, body from events where day = ? and run > ? and run <= ? order by run, fence",
            where,
        ):
            if run not in wanted:
                continue
            if state == _DEATH:
                found.deaths.append(_decode_death(body))
            else:
                found.outcomes.append(_decode_outcome(body))
        return found

    def about_others(
        self, day: datetime, after: UUID, last: UUID, runs: Collection[str]
    ) -> list[LifecycleRecord]:
        """Return the outcomes of a day about other runs than these; ids as in `about`."""
        known = {_key(run) for run in runs}
        where = (_day(day), after.bytes, last.bytes, _DEATH)
        found = self._db.execute(
            "select run, body from events where day = ? and run > ? and run <= ? and state <> ?", where
        )
        return [_decode_outcome(body) for run, body in found if run not in known]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _day(at: datetime) -> int:
    return int(at.timestamp() // _DAY_SECONDS)


def _key(run: str) -> bytes:
    return UUID(run).bytes
