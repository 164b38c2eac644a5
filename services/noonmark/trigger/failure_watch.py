"""The watch on failing jobs: those that asked for it are paused after so many equal failures in a row."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import psycopg

from noonmark.store.jobs import self_pauses
from noonmark.store.jobs.fact_cache import FactCache
from noonmark.store.outcomes.events import EventTopics
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import SELF_PAUSES

_LOOK_SECONDS = 2.0
_FIRST_LOOK_BACK = timedelta(days=1)
"""Where a new leader begins: nobody may have looked for as long as no trigger was up."""

_OVERLAP = timedelta(seconds=60)
"""A death is dated before it is committed: each look begins a little before the latest that was seen."""

_log = get_logger()


class FailureWatch:
    """Looks every few seconds at what died since the look before."""

    def __init__(self, topics: EventTopics, *, shards: int) -> None:
        """Begin; the first look goes a day back."""
        self._topics = topics
        self._shards = shards
        self._known = FactCache()
        self._since: datetime | None = None
        self._check_at = 0.0

    def check(self, connection: psycopg.Connection) -> int:
        """Pause the jobs that are to be paused, if it is time for a look; return how many."""
        now = time.monotonic()
        if now < self._check_at:
            return 0
        self._check_at = now + _LOOK_SECONDS
        if self._since is None:
            row = connection.execute("select noonmark_now()").fetchone()
            assert row is not None
            self._since = row[0] - _FIRST_LOOK_BACK
        died = self_pauses.died_since(connection, self._since)
        paused = [
            done
            for job in self_pauses.failing(connection, list(died))
            if (done := self_pauses.pause(connection, self._topics, job.id, self._known, shards=self._shards))
        ]
        if died:
            self._since = max(self._since, max(died.values()) - _OVERLAP)
        for job in paused:
            SELF_PAUSES.inc()
            _log.warning("job_paused_itself", job_id=str(job.id), failures=job.failures)
        return len(paused)
