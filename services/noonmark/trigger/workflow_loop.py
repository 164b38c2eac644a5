"""The workflow loop: opens workflow runs that were queued, and decides what follows when tasks have ended."""

from __future__ import annotations

import time

import psycopg

from noonmark.core.states import Lane, RunState
from noonmark.service.database_loop import DatabaseLoop, Pace
from noonmark.service.runner import Service
from noonmark.store.cluster import capabilities
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.workflows.advance import WorkflowPass, probe
from noonmark.store.workflows.advanced import Advanced
from noonmark.telemetry.metrics import (
    WORKFLOW_FACTS,
    WORKFLOW_PASS_SECONDS,
    WORKFLOW_TASKS,
    WORKFLOWS_BROKEN,
    WORKFLOWS_OPENED,
)
from noonmark.telemetry.verdicts import UNKNOWN_KIND, count_ends

_PACE_SECONDS = 0.002
_ARRAYS_SECONDS = 1.0
_MOST_FACTS = 5000
"""The most timers that a pass takes."""


class WorkflowLoop(DatabaseLoop):
    """Runs a pass over the owned shards on a hint that a task has ended, and every second."""

    def __init__(
        self, service: Service, membership: Membership, topics: EventTopics, hints: HintSender, *, shards: int
    ) -> None:
        """Create the loop; it is idle until the membership owns a shard."""
        super().__init__(service, "workflows")
        self._membership = membership
        self._hints = hints
        self._pass = WorkflowPass(topics, shards=shards)
        self._pace = Pace(_PACE_SECONDS)
        self._arrays = False
        self._arrays_at = 0.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Advance the workflows of each lane that has due timers, the high lane first."""
        owned = self._membership.owned
        if not owned:
            return 0.2
        self._pace.hold(self._service.stop)
        found = probe(connection, owned)
        if not found.due:
            return found.seconds
        self._check_dispatchers(connection)
        taken = 0
        for lane in Lane:
            if shards := found.due.get(lane):
                began = time.perf_counter()
                done = self._pass.run(connection, lane, shards, _MOST_FACTS, arrays=self._arrays)
                WORKFLOW_PASS_SECONDS.observe(time.perf_counter() - began)
                self._report(lane, done)
                taken += done.facts
        # What another trigger has locked is taken by its next pass, or by this one a moment later.
        return 0.0 if taken else 0.05

    def _report(self, lane: Lane, done: Advanced) -> None:
        WORKFLOW_FACTS.inc(done.facts)
        WORKFLOWS_OPENED.inc(done.opened)
        WORKFLOW_TASKS.labels("queued").inc(done.queued)
        WORKFLOW_TASKS.labels("waiting").inc(done.waiting)
        WORKFLOW_TASKS.labels("skipped").inc(done.skipped.total())
        if done.queued:
            self._hints.outbox()
        if done.waiting or done.freed:
            self._hints.freed()
        count_ends({(state, at, UNKNOWN_KIND): count for (state, at), count in done.ended.items()})
        count_ends({(RunState.SKIPPED, lane, UNKNOWN_KIND): done.skipped.total()})
        for run_id, reason in done.broken:
            WORKFLOWS_BROKEN.inc()
            self._log.error("workflow_not_advanced", run_id=str(run_id), reason=reason)

    def _check_dispatchers(self, connection: psycopg.Connection) -> None:
        now = time.monotonic()
        if now >= self._arrays_at:
            self._arrays_at = now + _ARRAYS_SECONDS
            self._arrays = capabilities.reads_arrays(connection, self._service.settings.owner_timeout_seconds)
