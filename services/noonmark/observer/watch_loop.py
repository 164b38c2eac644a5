"""Looks at runs, timers, dead letters and what was made of outcomes, and raises and resolves alerts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypedDict
from uuid import UUID

import psycopg

from noonmark.alerting.channels import channel_names
from noonmark.core.monitoring.alerts import AlertChange, AlertKind, FoundAlert
from noonmark.kafka.topics import Topics
from noonmark.observer import findings
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.alerts import queries, statistics
from noonmark.store.alerts.alerts import raise_alerts, resolve_alerts
from noonmark.store.alerts.queries import MOST_OF_A_KIND, Cause, OpenAlert
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.telemetry.metrics import ALERTS, ALERTS_OPEN

_PRUNE_SECONDS: Final = 30.0
_PRUNE_ROWS: Final = 5000
_MOMENT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Found:
    """What is wrong of one kind. Where not all of it was found, nothing of the kind is over."""

    alerts: list[FoundAlert]
    whole: bool = True


class _Side(TypedDict):
    """Where changes of alerts are told."""

    channels: Collection[str]
    topic: str
    shards: int


class WatchLoop(DatabaseLoop):
    """Compares what is wrong with what is open. Of several observers the leading one looks.

    Every change is guarded, so a second leader for a moment does no harm. What a look finds depends on the
    database alone: whoever looks next, after whatever crash, comes to the same.
    """

    def __init__(
        self, service: Service, membership: Membership, topics: Topics, hints: HintSender, *, shards: int
    ) -> None:
        """Make the loop; it idles while this observer does not lead."""
        super().__init__(service, "alerts", max_age_seconds=60.0)
        settings = service.settings
        self._settings = settings
        self._membership = membership
        self._topics = topics
        self._hints = hints
        self._shards = shards
        self._side: _Side = {"channels": channel_names(settings), "topic": topics.alerts, "shards": shards}
        # What comes and goes would be told again and again: since when what is open is not found any more.
        self._gone_at: dict[AlertKind, dict[str, float]] = {}
        self._check_at = 0.0
        self._prune_at = 0.0
        self._pruned_to = UUID(int=0)

    def run_once(self, connection: psycopg.Connection) -> float:
        """Look once, if it is time."""
        if not self._membership.leads:
            ALERTS_OPEN.replace({})
            self._gone_at.clear()
            return 0.2
        now = time.monotonic()
        if now < self._check_at:
            return min(0.2, self._check_at - now)
        self._check_at = now + self._settings.observer_check_seconds
        statistics.begin(connection)
        try:
            self.check_all(connection)
        except psycopg.Error:
            # What was open at the last look says nothing about now, and another observer may lead.
            ALERTS_OPEN.replace({})
            raise
        if now >= self._prune_at:
            self._prune_at = now + _PRUNE_SECONDS
            self._pruned_to = statistics.prune(connection, after=self._pruned_to, limit=_PRUNE_ROWS) or UUID(
                int=0
            )
        return 0.0

    def check_all(self, connection: psycopg.Connection) -> None:
        """Look at everything once, and raise and resolve what has changed."""
        open_ones: dict[str, list[OpenAlert]] = defaultdict(list)
        for alert in queries.open_alerts(connection):
            open_ones[alert.kind].append(alert)
        looks: dict[AlertKind, Callable[[psycopg.Connection, list[OpenAlert]], Found | None]] = {
            # First the late runs: whether there are any is a sign of silence.
            AlertKind.LATE: self._late,
            AlertKind.RUNAWAY: self._runaway,
            AlertKind.STUCK: self._stuck,
            AlertKind.FAILING: self._failing,
            AlertKind.DEAD: self._dead,
            AlertKind.SILENT: self._silent,
        }
        count: Counter[tuple[str, ...]] = Counter({(kind.value,): 0 for kind in AlertKind})
        told = 0
        for kind, look in looks.items():
            # What a look moves on in the ledger is moved with what it found, or not at all.
            with connection.transaction():
                found = look(connection, open_ones[kind])
                raised, resolved = self._compare(connection, kind, open_ones[kind], found)
            ALERTS.labels(kind, AlertChange.RAISED).inc(raised)
            ALERTS.labels(kind, AlertChange.RESOLVED).inc(resolved)
            count[kind.value,] = len(open_ones[kind]) + raised - resolved
            told += raised + resolved
            if raised or resolved:
                self._log.info("alerts_changed", kind=kind.value, raised=raised, resolved=resolved)
        ALERTS_OPEN.replace({labels: float(number) for labels, number in count.items()})
        if told:
            self._hints.outbox()

    def _compare(
        self, connection: psycopg.Connection, kind: AlertKind, open_ones: list[OpenAlert], found: Found | None
    ) -> tuple[int, int]:
        """Raise what is new, as far as there is room; resolve what has been over for long enough."""
        if found is None:
            return 0, 0
        known = {alert.fingerprint for alert in open_ones}
        still = [alert for alert in found.alerts if alert.fingerprint in known]
        new = [alert for alert in found.alerts if alert.fingerprint not in known]
        raised = raise_alerts(connection, [*still, *new[: max(0, MOST_OF_A_KIND - len(known))]], **self._side)
        gone = known - {alert.fingerprint for alert in still} if found.whole else set()
        now, before = time.monotonic(), self._gone_at.get(kind, {})
        self._gone_at[kind] = {one: before.get(one, now) for one in gone}
        enough = now - self._settings.alert_hold_seconds
        over = {one for one, at in self._gone_at[kind].items() if at <= enough}
        return len(raised), len(resolve_alerts(connection, over, **self._side))

    def _late(self, connection: psycopg.Connection, _open: list[OpenAlert]) -> Found:
        late_after = self._settings.late_after_seconds
        timers = queries.late_timers(connection, shards=self._shards, late_after=late_after)
        groups = queries.late_groups(connection, late_after=late_after)
        alerts = findings.late(timers, groups, queries.late_by_rule(connection))
        alerts.sort(key=lambda alert: str(alert.details["since"]))
        return _capped(alerts)

    def _runaway(self, connection: psycopg.Connection, _open: list[OpenAlert]) -> Found:
        rows = queries.long_runs(
            connection,
            factor=self._settings.runaway_factor,
            min_runs=self._settings.runaway_min_runs,
            min_seconds=self._settings.runaway_min_seconds,
        )
        rates = statistics.rates(connection, {row.job_id for row in rows})
        return Found(findings.runaways(rows, rates), whole=len(rows) < MOST_OF_A_KIND)

    def _stuck(self, connection: psycopg.Connection, _open: list[OpenAlert]) -> Found:
        silence, most = self._settings.stuck_after_seconds, self._settings.stuck_runs
        row = queries.stuck_runs(connection, silence=silence, most=10 * most)
        return Found(findings.stuck(row, more_than=most, silence=silence))

    def _failing(self, connection: psycopg.Connection, _open: list[OpenAlert]) -> Found | None:
        if not queries.caught_up(connection, self._topics.lifecycle):
            return None
        rows = queries.failing_jobs(connection, failing_after=self._settings.failing_after)
        rates = statistics.rates(connection, {row.job_id for row in rows})
        return Found(findings.failing(rows, rates), whole=len(rows) < MOST_OF_A_KIND)

    def _dead(self, connection: psycopg.Connection, open_ones: list[OpenAlert]) -> Found | None:
        if not queries.caught_up(connection, self._topics.lifecycle):
            # A success that is not read yet may have come after the deaths.
            return None
        known, new = {*map(_cause, open_ones)}, queries.new_causes(connection)
        strange = list(dict.fromkeys(one.cause for one in new if one.cause not in known))
        room = max(0, MOST_OF_A_KIND - len(known))
        taken, left = strange[:room], set(strange[room:])
        if new:
            # Causes for which there is no room are found again when there is.
            ends = [one.first_at - _MOMENT for one in new if one.cause in left]
            queries.dead_until(connection, min([max(one.last_at for one in new), *ends]))
        return Found(findings.dead(queries.dead_causes(connection, [*known, *taken])))

    def _silent(self, connection: psycopg.Connection, _open: list[OpenAlert]) -> Found:
        after = self._settings.silent_after_seconds
        row = queries.silence(connection, shards=self._shards, seconds=after)
        return Found(findings.silent(row, after=after))


def _cause(alert: OpenAlert) -> Cause:
    return Cause(alert.namespace or "", str(alert.details.get("cause")), alert.job_id)


def _capped(alerts: list[FoundAlert]) -> Found:
    return Found(alerts[:MOST_OF_A_KIND], whole=len(alerts) <= MOST_OF_A_KIND)
