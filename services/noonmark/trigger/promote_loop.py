"""The promotion loop: queues runs that wait for a limit, a cap or another run when there is capacity."""

from __future__ import annotations

import time

import psycopg

from noonmark.core.planning.promotion import UNCHECKED_QUEUE
from noonmark.core.states import Lane, WaitReason
from noonmark.service.database_loop import DatabaseLoop, Pace
from noonmark.service.runner import Service
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.store.limits import promotion
from noonmark.store.outcomes.events import EventTopics
from noonmark.telemetry.metrics import PROMOTED, PROMOTIONS_BLOCKED, WAITING_RUNS
from noonmark.telemetry.verdicts import count_start_deadline

_PACE_SECONDS = 0.005
_IDLE_SECONDS = 1.0
_COUNT_SECONDS = 5.0


class PromoteLoop(DatabaseLoop):
    """Runs a pass on a hint that capacity was released, and every second.

    It works for all shards, because a limit counts the runs of all. Passes exclude each other in Postgres, so
    any number of triggers may run this loop.
    """

    def __init__(
        self, service: Service, membership: Membership, topics: EventTopics, hints: HintSender, *, shards: int
    ) -> None:
        """Create the loop; it is idle until the membership owns a shard."""
        super().__init__(service, "promote")
        self._membership = membership
        self._topics = topics
        self._hints = hints
        self._shards = shards
        self._pace = Pace(_PACE_SECONDS)
        self._from_key = UNCHECKED_QUEUE
        self._count_at = 0.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Run one pass; return the time until the next token that a run waits for."""
        if not self._membership.owned:
            return 0.2
        self._pace.hold(self._service.stop)
        self._count(connection)
        if not promotion.has_waiting_runs(connection):
            return _IDLE_SECONDS
        done = promotion.promote(
            connection, self._topics, install_shards=self._shards, from_key=self._from_key
        )
        self._from_key = done.from_key
        if done.queued:
            self._hints.outbox()
        for lane, count in done.queued.items():
            PROMOTED.labels(Lane(lane).label).inc(count)
        for lane, count in done.expired.items():
            count_start_deadline(lane, count)
        for reason, count in done.blocked.items():
            PROMOTIONS_BLOCKED.labels(reason).inc(count)
        if done.more:
            return 0.0
        return (
            _IDLE_SECONDS if done.next_seconds is None else max(0.001, min(done.next_seconds, _IDLE_SECONDS))
        )

    def _count(self, connection: psycopg.Connection) -> None:
        """Show now and then how many runs wait, by reason; the leading trigger does it for all."""
        now = time.monotonic()
        if now < self._count_at:
            return
        self._count_at = now + _COUNT_SECONDS
        if not self._membership.leads:
            WAITING_RUNS.replace({})
            return
        counts = promotion.count_waiting(connection)
        WAITING_RUNS.replace({(reason.value,): counts.get(reason.value, 0) for reason in WaitReason})
