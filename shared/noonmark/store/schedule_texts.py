"""Stored schedules, read once: many jobs share a text, and the calendars that it names never change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import psycopg

from noonmark.core.calendars import Calendar
from noonmark.core.schedule import Schedule, load_schedule

_MOST: Final = 65_536


class ScheduleTexts:
    """Reads stored schedules by their text. One thread uses it."""

    def __init__(self) -> None:
        self._read: dict[str, Schedule] = {}
        self._calendars: dict[str, Calendar] = {}

    def learn(self, connection: psycopg.Connection, texts: Iterable[str]) -> None:
        """Fetch the contents of calendars that these schedules name and that were not seen before."""
        wanted = {
            digest
            for text in texts
            if text not in self._read and '"calendars"' in text
            for digest in _digests(json.loads(text))
        } - self._calendars.keys()
        if wanted:
            rows = connection.execute(
                "select digest, body from calendar_contents where digest = any (%s)", [list(wanted)]
            ).fetchall()
            self._calendars.update((digest, Calendar.parse(body)) for digest, body in rows)

    def read(self, text: str) -> Schedule:
        """Return the schedule of a text whose calendars were learnt.

        Raises:
            ScheduleError: the text is damaged, or a calendar's content is gone.
        """
        schedule = self._read.get(text)
        if schedule is None:
            schedule = load_schedule(json.loads(text), self._calendars.__getitem__)
            if len(self._read) >= _MOST:
                self._read.clear()
            self._read[text] = schedule
        return schedule


def _digests(spec: Mapping[str, Any]) -> Iterator[str]:
    for member in spec.get("any", ()):
        yield from _digests(member)
    calendars = spec.get("calendars", {})
    for key in ("exclude", "include"):
        yield from (digest for _, digest in calendars.get(key, ()))
