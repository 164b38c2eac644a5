"""What the leading trigger does for all: lapse leases, resend vanished messages, housekeeping."""

from __future__ import annotations

import time
from collections import Counter

import psycopg

from noonmark.core.states import Origin
from noonmark.kafka.topics import Topics
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.store.maintenance import housekeeping
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import leases
from noonmark.telemetry.metrics import LAPSED_WORKERS, LOST_RUNS, RESENT_RUNS
from noonmark.telemetry.verdicts import UNKNOWN_KIND, count_ends

_LEASE_GAP_SECONDS = 5.0
"""Passes come every second; after a longer gap, heartbeats may have been refused too."""

_HOUSEKEEPING_SECONDS = 60.0


class LeaseLoop(DatabaseLoop):
    """Finds workers whose lease has lapsed and requeues their runs.

    Every statement is guarded, so a second leader for a moment does no harm.
    """

    def __init__(
        self, service: Service, membership: Membership, topics: EventTopics, hints: HintSender, *, shards: int
    ) -> None:
        """Create the loop; it is idle while this trigger does not lead."""
        super().__init__(service, "leases")
        self._membership = membership
        self._topics = topics
        self._hints = hints
        self._shards = shards

    def run_once(self, connection: psycopg.Connection) -> float:
        """Check all leases once."""
        if not self._membership.leads:
            return 1.0
        done = leases.run_pass(connection, self._topics, shards=self._shards, gap_seconds=_LEASE_GAP_SECONDS)
        if done.lapsed:
            LAPSED_WORKERS.inc(done.lapsed)
            self._log.warning("workers_lapsed", count=done.lapsed, watched_seconds=done.watched_seconds)
        if not done.lost:
            return 1.0
        LOST_RUNS.inc(len(done.lost))
        tasks = [run for run in done.lost if run.origin == Origin.TASK]
        others = [run for run in done.lost if run.origin != Origin.TASK]
        count_ends(Counter((run.state, run.lane, UNKNOWN_KIND) for run in tasks), of_tasks=True)
        count_ends(Counter((run.state, run.lane, UNKNOWN_KIND) for run in others))
        self._log.warning("runs_lost", count=len(done.lost))
        self._hints.outbox()
        self._hints.freed()
        if tasks:
            self._hints.ended()
        return 0.0


class HousekeepingLoop(DatabaseLoop):
    """Creates and drops ledger days, prunes old rows, resends messages that provably vanished."""

    def __init__(self, service: Service, membership: Membership, topics: Topics, hints: HintSender) -> None:
        """Create the loop; it is idle while this trigger does not lead."""
        super().__init__(service, "housekeeping", max_age_seconds=120.0)
        self._membership = membership
        self._topics = topics
        self._hints = hints
        self._housekeeping_at = 0.0
        self._resend_seconds = service.settings.resend_check_seconds
        self._resend_at = time.monotonic() + self._resend_seconds

    def run_once(self, connection: psycopg.Connection) -> float:
        """Do the slow duties that are due."""
        if not self._membership.leads:
            return 1.0
        now = time.monotonic()
        if now >= self._housekeeping_at:
            self._housekeeping_at = now + _HOUSEKEEPING_SECONDS
            report = housekeeping.run_housekeeping(connection, self._service.settings)
            if report.has_changes:
                self._log.info("housekeeping_done", **report.as_fields())
        if now >= self._resend_at:
            self._resend_at = now + self._resend_seconds
            resent = housekeeping.resend_vanished(connection, self._topics)
            if resent:
                RESENT_RUNS.inc(resent)
                self._log.warning("runs_resent", count=resent)
                self._hints.outbox()
        return 1.0
