"""Parses stored schedules and caches them: many jobs share a text, and contents of calendars never change."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from typing import Final

import psycopg

from noonmark.core.calendars.calendar import Calendar, CalendarError
from noonmark.core.schedules.schedule import Schedule, load_schedule

_MOST_CHARACTERS: Final = 16 * 1024 * 1024
"""Maximum size of the cached texts; the parsed schedules need a few times more."""

_DIGEST: Final = re.compile(r'\["(?:[^"\\]|\\.)*", ?"([0-9a-z]+)"\]')
"""A calendar's name and digest, matched without parsing: a damaged schedule must not affect others."""


class ScheduleTexts:
    """Parses and caches stored schedules by their text. Not thread-safe."""

    def __init__(self, known: Iterable[Calendar] = ()) -> None:
        """Take calendars whose contents need not be stored."""
        self._read: dict[str, Schedule] = {}
        self._size = 0
        self._calendars: dict[str, Calendar] = {calendar.digest(): calendar for calendar in known}

    def learn(self, connection: psycopg.Connection, texts: Iterable[str]) -> None:
        """Fetch the contents of calendars that these schedules name and that are not cached."""
        wanted = {
            digest
            for text in texts
            if text not in self._read and '"calendars"' in text
            for digest in _DIGEST.findall(text)
        } - self._calendars.keys()
        if not wanted:
            return
        rows = connection.execute(
            "select digest, body from calendar_contents where digest = any (%s)", [list(wanted)]
        ).fetchall()
        for digest, body in rows:
            # An unreadable calendar is reported when a schedule needs it, so only jobs that use it break.
            with contextlib.suppress(CalendarError):
                self._calendars[digest] = Calendar.parse(body)

    def read(self, text: str) -> Schedule:
        """Return the schedule of a text whose calendars were fetched by `learn`.

        Raises:
            ScheduleError: the text is damaged, or the contents of a calendar are missing.
        """
        schedule = self._read.get(text)
        if schedule is None:
            schedule = load_schedule(json.loads(text), self._calendars.__getitem__)
            self._size += len(text)
            if self._size > _MOST_CHARACTERS:
                self._read.clear()
                self._size = len(text)
            self._read[text] = schedule
        return schedule
