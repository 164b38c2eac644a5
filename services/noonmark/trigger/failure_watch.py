"""The watch on failing jobs: pauses jobs that asked for it after a number of equal failures in a row."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import psycopg

from noonmark.store.jobs import self_pauses
from noonmark.store.jobs.requests import FactCache
from noonmark.store.outcomes.events import EventTopics
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import SELF_PAUSES

_CHECK_SECONDS = 2.0
_INITIAL_PERIOD = timedelta(days=1)
"""How far back a new leader begins: no trigger may have checked for as long as none was running."""

_OVERLAP = timedelta(seconds=60)
"""A death is dated before it is committed: each check begins a little before the latest death seen."""

_log = get_logger()


class FailureWatch:
    """Checks every few seconds which runs died since the previous check."""

    def __init__(self, topics: EventTopics, *, shards: int) -> None:
        """Create the watch; its first check goes back one day."""
        self._topics = topics
        self._shards = shards
        self._facts = FactCache()
        self._since: datetime | None = None
        self._check_at = 0.0

    def check(self, connection: psycopg.Connection) -> int:
        """Pause the jobs that are to be paused, if a check is due; return how many."""
        now = time.monotonic()
        if now < self._check_at:
            return 0
        self._check_at = now + _CHECK_SECONDS
        if self._since is None:
            row = connection.execute("select noonmark_now()").fetchone()
            assert row is not None
            self._since = row[0] - _INITIAL_PERIOD
        died = self_pauses.died_since(connection, self._since)
        paused = [
            done
            for job in self_pauses.failing(connection, list(died))
            if (done := self_pauses.pause(connection, self._topics, job.id, self._facts, shards=self._shards))
        ]
        if died:
            self._since = max(self._since, max(died.values()) - _OVERLAP)
        for job in paused:
            SELF_PAUSES.inc()
            _log.warning("job_paused_itself", job_id=str(job.id), failures=job.failures)
        return len(paused)
