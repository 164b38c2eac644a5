"""The backfill loop: runs requested past instants, a few at a time, in the lowest lane."""

from __future__ import annotations

import math
import time
from uuid import UUID

import psycopg

from noonmark.core.states import BackfillState, Lane
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.backfills import steps as backfill_steps
from noonmark.store.backfills.steps import Step, StepLimits
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.outbox import relay
from noonmark.telemetry.metrics import BACKFILL_RUNS

_STEP_SECONDS = 0.2
"""Between two steps of a backfill that queue runs; with the runs of a step this determines its rate."""

_SCAN_SECONDS = 0.02
"""Between two steps that found nothing to queue: only Postgres is queried."""

_IDLE_SECONDS = 1.0
_PRESSURE_SECONDS = 1.0
_PAGE = 20
"""Backfills of one pass: the others follow in the next, so that a pass stays short."""


class BackfillLoop(DatabaseLoop):
    """Executes the backfills of the owned shards. Every step is a separate transaction."""

    def __init__(self, service: Service, membership: Membership, hints: HintSender) -> None:
        """Create the loop; it is idle until the membership owns a shard."""
        super().__init__(service, "backfill")
        settings = service.settings
        self._membership = membership
        self._hints = hints
        self._texts = ScheduleTexts()
        self._limits = StepLimits(
            queue=max(1, round(settings.backfill_runs_per_second * _STEP_SECONDS)),
            unfinished=settings.backfill_unfinished_limit,
        )
        self._after: UUID | None = None
        self._not_before: dict[UUID, float] = {}
        self._seen: dict[UUID, float] = {}
        self._held_back: frozenset[int] = frozenset()
        self._pressure_at = 0.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Advance each backfill of a page by one step."""
        owned = self._membership.owned
        if not owned:
            return _IDLE_SECONDS
        page = backfill_steps.running(connection, owned, after=self._after, limit=_PAGE)
        if page:
            self._check_pressure(connection, owned)
        for backfill_id, shard in page:
            not_before = self._not_before.get(backfill_id, 0.0)
            if not_before <= time.monotonic():
                not_before = time.monotonic() + self._step(connection, backfill_id, shard)
            self._seen[backfill_id] = not_before
        self._after = page[-1][0] if len(page) == _PAGE else None
        if self._after is not None:
            return 0.0
        # Backfills that this round did not see have ended, or another trigger owns them now.
        self._not_before, self._seen = self._seen, {}
        first = min(self._not_before.values(), default=math.inf)
        return max(0.001, min(first - time.monotonic(), _IDLE_SECONDS))

    def _check_pressure(self, connection: psycopg.Connection, owned: tuple[int, ...]) -> None:
        """Find the shards whose low lane is far behind in the relay, by the rule of that lane's claims."""
        now = time.monotonic()
        if now < self._pressure_at:
            return
        self._pressure_at = now + _PRESSURE_SECONDS
        settings = self._service.settings
        self._held_back = frozenset(
            p.slice
            for p in relay.pressure(connection, owned, cap=settings.outbox_depth_limit)
            if p.lane == Lane.LOW
            and (
                (p.age_seconds or 0) > settings.outbox_age_limit_seconds
                or p.rows >= settings.outbox_depth_limit
            )
        )

    def _step(self, connection: psycopg.Connection, backfill_id: UUID, shard: int) -> float:
        """Advance one backfill; return the seconds to its next step."""
        done = backfill_steps.step(
            connection, backfill_id, self._texts, self._limits, held_back=shard in self._held_back
        )
        self._log_step(backfill_id, done)
        if done.queued or (done.waits_for and done.soon):
            return _STEP_SECONDS
        return _IDLE_SECONDS if done.waits_for else _SCAN_SECONDS

    def _log_step(self, backfill_id: UUID, done: Step) -> None:
        if done.queued:
            BACKFILL_RUNS.inc(done.queued)
            self._hints.outbox()
            self._hints.freed()  # its runs may wait for capacity, which only a promotion pass finds out
        if done.state is BackfillState.FAILED:
            self._log.error("backfill_failed", backfill_id=str(backfill_id), reason=done.waits_for)
        elif done.state is not BackfillState.RUNNING:
            self._log.info("backfill_ended", backfill_id=str(backfill_id), state=done.state.value)
