"""The watch on failing jobs: pauses jobs that asked for it after a number of equal failures in a row."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import psycopg

from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.cluster.members import Membership
from noonmark.store.jobs import self_pauses
from noonmark.store.jobs.requests import FactCache
from noonmark.store.jobs.self_pauses import FailingJob
from noonmark.store.outcomes.events import EventTopics
from noonmark.telemetry.metrics import SELF_PAUSES

_CHECK_SECONDS = 2.0
_INITIAL_PERIOD = timedelta(days=1)
"""How far back a new leader begins: no trigger may have checked for as long as none was running."""

_OVERLAP = timedelta(seconds=60)
"""A death is dated before it is committed: each check begins a little before the latest death seen."""


class FailureLoop(DatabaseLoop):
    """Checks every few seconds which runs died since the previous check, while this trigger leads.

    It is a loop of its own: a pause locks the job, and while another session holds that lock, the leases of
    workers must be watched all the same.
    """

    def __init__(self, service: Service, membership: Membership, topics: EventTopics, *, shards: int) -> None:
        """Create the loop; its first check goes back one day."""
        super().__init__(service, "failures", max_age_seconds=120.0)
        self._membership = membership
        self._topics = topics
        self._shards = shards
        self._facts = FactCache()
        self._since: datetime | None = None
        self._check_at = 0.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Pause the jobs that are to be paused, if a check is due."""
        now = time.monotonic()
        if not self._membership.leads or now < self._check_at:
            return 1.0
        self._check_at = now + _CHECK_SECONDS
        if self._since is None:
            row = connection.execute("select noonmark_now()").fetchone()
            assert row is not None
            self._since = row[0] - _INITIAL_PERIOD
        died = self_pauses.died_since(connection, self._since)
        busy = 0
        for job in self_pauses.failing(connection, list(died)):
            try:
                self._pause_job(connection, job)
            except psycopg.errors.LockNotAvailable:
                busy += 1
            self._progress.beat()
        if busy:
            # The next check finds them again, because the time from which it looks has not moved.
            self._log.warning("jobs_not_paused_yet", count=busy, reason="another session has locked them")
        elif died:
            self._since = max(self._since, max(died.values()) - _OVERLAP)
        return 1.0

    def _pause_job(self, connection: psycopg.Connection, failing: FailingJob) -> None:
        job = self_pauses.pause(connection, self._topics, failing.id, self._facts, shards=self._shards)
        if job is not None:
            SELF_PAUSES.inc()
            self._log.warning("job_paused_itself", job_id=str(job.id), failures=job.failures)
