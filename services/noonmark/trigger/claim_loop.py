"""The claim loop: claims what is due, high lane first, then sleeps until the next due instant."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg

from noonmark.core.states import Lane, TimerKind
from noonmark.service.database_loop import DatabaseLoop, Pace
from noonmark.service.runner import Service
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import ClaimResult
from noonmark.store.claims.planner import Planner
from noonmark.store.cluster import capabilities
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.store.outbox import relay
from noonmark.store.outcomes.events import EventTopics
from noonmark.telemetry.declared.instruments import exemplar_of
from noonmark.telemetry.metrics import CLAIM_BATCH_SIZE, CLAIM_SECONDS, CLAIMED, PLANNING_BROKEN
from noonmark.telemetry.verdicts import UNKNOWN_KIND, count_ends, count_skipped
from noonmark.trigger.zone_watch import ZoneWatch

_PRESSURE_SECONDS = 1.0
_SMALL_ROUND = 8
_SMALL_STRETCH = 3.0
"""Under a light load each round costs more than its runs: rounds with few runs come a third as often."""

_WITHOUT_ZONE = (TimerKind.ONCE, TimerKind.RETRY, TimerKind.DEADLINE, TimerKind.PLANNED)
_KINDS = (*_WITHOUT_ZONE, TimerKind.ZONED)


class ClaimLoop(DatabaseLoop):
    """Turns due timers of the owned shards into runs and outbox rows."""

    def __init__(
        self,
        service: Service,
        membership: Membership,
        topics: EventTopics,
        hints: HintSender,
        *,
        shards: int,
        waiting_runs: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the loop; it claims nothing until the membership owns a shard.

        Args:
            service: the process.
            membership: the shards that it owns.
            topics: where verdicts are announced.
            hints: wakes the dispatcher.
            shards: the number of shards of the installation.
            waiting_runs: called after a claim whose runs wait for capacity.
        """
        super().__init__(service, "claim")
        settings = service.settings
        self._membership = membership
        self._topics = topics
        self._hints = hints
        self._waiting_runs = waiting_runs
        self._shards = shards
        self._planner = Planner(catch_up_cap=settings.catch_up_cap, ledger_cap=settings.ledger_cap)
        self._zone_watch = ZoneWatch(self._planner.zone_data, self._log)
        self._pace = Pace(settings.claim_pause_ms / 1000)
        self._blocked: frozenset[tuple[int, int]] = frozenset()
        self._pressure_at = 0.0
        self._arrays = False
        self._stretch = 1.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Claim one batch of each lane and kind that has due timers."""
        owned = self._membership.owned
        if not owned:
            return 0.2
        self._pace.hold(self._service.stop, stretch=self._stretch)
        kinds = _KINDS if self._zone_watch.agrees(connection) else _WITHOUT_ZONE
        probe = claims.probe(connection, owned)
        if probe is None:
            return 1.0
        if probe.due:
            self._check_pressure(connection, owned)
        claimed = 0
        for lane in Lane:
            for kind in kinds:
                due = probe.due.get((lane, kind), [])
                shards = [shard for shard in due if (shard, lane) not in self._blocked]
                if shards:
                    claimed += self._claim(connection, lane, kind, shards).claimed
        self._stretch = _SMALL_STRETCH if claimed < _SMALL_ROUND else 1.0
        if claimed:
            return 0.0
        if probe.next_at is None:
            return 1.0
        return max(0.001, (probe.next_at - probe.now).total_seconds())

    def _claim(
        self, connection: psycopg.Connection, lane: Lane, kind: TimerKind, shards: list[int]
    ) -> ClaimResult:
        began, began_at = time.perf_counter(), time.time()
        try:
            result = self._claim_kind(connection, lane, kind, shards)
        except psycopg.errors.CheckViolation:
            # The instant is on a day without a ledger partition: create the day, then claim again.
            if not claims.missing_days(connection, shards, self._service.settings.claim_batch):
                raise
            result = self._claim_kind(connection, lane, kind, shards)
        seconds, trace_id = time.perf_counter() - began, None
        if result.made and self._service.traces is not None:
            traces, jobs = self._service.traces, dict(result.made)
            roots = traces.roots(connection, result.made)
            traces.claimed(roots, jobs, began=began_at, ended=time.time())
            trace_id = next((root.trace_id for root in roots.values()), None)
        CLAIM_SECONDS.labels(f"claim_{kind.name.lower()}").observe(seconds, exemplar_of(trace_id))
        CLAIM_BATCH_SIZE.observe(result.claimed)
        CLAIMED.labels(lane.label).inc(result.claimed)
        if result.queued:
            self._hints.outbox()
        if result.waiting:
            self._waiting_runs()
        for reason, count in result.skipped.items():
            count_skipped(reason, lane, count)
        if result.settled:
            self._hints.freed()
            count_ends({(state, lane, UNKNOWN_KIND): count for state, count in result.settled.items()})
        for job_id, reason in result.broken:
            PLANNING_BROKEN.inc()
            self._log.error("job_broken", job_id=str(job_id), reason=reason)
        return result

    def _claim_kind(
        self, connection: psycopg.Connection, lane: Lane, kind: TimerKind, shards: list[int]
    ) -> ClaimResult:
        limit = self._service.settings.claim_batch
        if lane is Lane.LOW:
            # Smaller batches: what comes due in a higher lane meanwhile waits less.
            limit = max(1, limit // 2)
        named = self._service.traces is not None
        if kind is TimerKind.ONCE:
            return claims.claim_once(connection, lane, shards, limit, named=named, arrays=self._arrays)
        if kind is TimerKind.RETRY:
            return claims.claim_retries(connection, lane, shards, limit)
        if kind is TimerKind.DEADLINE:
            return claims.claim_deadlines(
                connection, lane, shards, limit, topics=self._topics, install_shards=self._shards
            )
        return claims.claim_planned(
            connection,
            lane,
            shards,
            limit,
            kind=kind,
            plan=self._planner,
            topics=self._topics,
            install_shards=self._shards,
            named=named,
            arrays=self._arrays,
        )

    def _check_pressure(self, connection: psycopg.Connection, owned: tuple[int, ...]) -> None:
        """Stop claiming for a slice's lane whose relay is far behind: what stays unclaimed misfires."""
        now = time.monotonic()
        if now < self._pressure_at:
            return
        self._pressure_at = now + _PRESSURE_SECONDS
        settings = self._service.settings
        self._arrays = capabilities.reads_arrays(connection, settings.owner_timeout_seconds)
        blocked = frozenset(
            (p.slice, p.lane)
            for p in relay.pressure(connection, owned, cap=settings.outbox_depth_limit)
            if (p.age_seconds or 0) > settings.outbox_age_limit_seconds
            or p.rows >= settings.outbox_depth_limit
        )
        if blocked != self._blocked:
            self._log.warning(
                "claims_held_back" if blocked else "claims_go_on", slices_and_lanes=sorted(blocked)
            )
            self._blocked = blocked
