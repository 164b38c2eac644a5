"""Checks runs, timers, dead letters and statistics, and raises and resolves alerts."""

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
from noonmark.service.database_errors import must_reconnect
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
    """The problems of one kind. Unless `whole`, some may be missing, so no alert of the kind is resolved."""

    alerts: list[FoundAlert]
    whole: bool = True


Check = Callable[[psycopg.Connection, list[OpenAlert]], Found | None]
"""Finds the problems of one kind; None if it cannot say at the moment."""


class _Targets(TypedDict):
    """Where changes of alerts are sent."""

    channels: Collection[str]
    topic: str
    shards: int


class WatchLoop(DatabaseLoop):
    """Compares the current problems with the open alerts. Only the leading observer does so.

    Every change is guarded, so two leaders at the same moment do no harm. The result of a check depends only
    on the database, so another observer finds the same after a crash.
    """

    def __init__(
        self, service: Service, membership: Membership, topics: Topics, hints: HintSender, *, shards: int
    ) -> None:
        """Create the loop; it idles while this observer does not lead."""
        super().__init__(service, "alerts", max_age_seconds=60.0)
        settings = service.settings
        self._settings = settings
        self._membership = membership
        self._topics = topics
        self._hints = hints
        self._shards = shards
        self._targets: _Targets = {
            "channels": channel_names(settings),
            "topic": topics.alerts,
            "shards": shards,
        }
        # Since when the problem of an open alert has been absent. Resolving at once would repeat the
        # notifications of a problem that comes and goes.
        self._gone_at: dict[AlertKind, dict[str, float]] = {}
        self._check_at = 0.0
        self._prune_at = 0.0
        self._pruned_to = UUID(int=0)

    def run_once(self, connection: psycopg.Connection) -> float:
        """Run one check, if it is due."""
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
            # The open alerts of the last check are outdated, and another observer may lead.
            ALERTS_OPEN.replace({})
            raise
        if now >= self._prune_at:
            self._prune_at = now + _PRUNE_SECONDS
            self._pruned_to = statistics.prune(connection, after=self._pruned_to, limit=_PRUNE_ROWS) or UUID(
                int=0
            )
        return 0.0

    def check_all(self, connection: psycopg.Connection) -> None:
        """Check all kinds once; raise and resolve the alerts that have changed.

        Raises:
            psycopg.Error: a check failed; those of the other kinds were made, unless the connection is lost.
        """
        open_ones: dict[str, list[OpenAlert]] = defaultdict(list)
        for alert in queries.open_alerts(connection):
            open_ones[alert.kind].append(alert)
        checks: dict[AlertKind, Check] = {
            # Late runs first, because the check for silence depends on them.
            AlertKind.LATE: self._late,
            AlertKind.RUNAWAY: self._runaway,
            AlertKind.STUCK: self._stuck,
            AlertKind.FAILING: self._failing,
            AlertKind.DEAD: self._dead,
            AlertKind.SILENT: self._silent,
        }
        count: Counter[tuple[str, ...]] = Counter({(kind.value,): 0 for kind in AlertKind})
        changes = 0
        failed: psycopg.Error | None = None
        for kind, check in checks.items():
            self._progress.beat()
            try:
                raised, resolved = self._check(connection, kind, check, open_ones[kind])
            except psycopg.Error as error:
                if connection.broken or must_reconnect(error):
                    raise
                # One query that takes too long must not silence the alerts of the other kinds.
                failed = error
                self._log.error("alerts_not_checked", kind=kind.value, error=str(error).strip())
                continue
            count[kind.value,] = len(open_ones[kind]) + raised - resolved
            changes += raised + resolved
        ALERTS_OPEN.replace({labels: float(number) for labels, number in count.items()})
        if changes:
            self._hints.outbox()
        if failed is not None:
            raise failed

    def _check(
        self, connection: psycopg.Connection, kind: AlertKind, check: Check, open_ones: list[OpenAlert]
    ) -> tuple[int, int]:
        """Check one kind; return how many alerts were raised, and how many resolved."""
        # A check advances its watermark in the same transaction as its alerts, or not at all.
        with connection.transaction():
            found = check(connection, open_ones)
            raised, resolved = self._compare(connection, kind, open_ones, found)
        ALERTS.labels(kind, AlertChange.RAISED).inc(raised)
        ALERTS.labels(kind, AlertChange.RESOLVED).inc(resolved)
        if raised or resolved:
            self._log.info("alerts_changed", kind=kind.value, raised=raised, resolved=resolved)
        return raised, resolved

    def _compare(
        self, connection: psycopg.Connection, kind: AlertKind, open_ones: list[OpenAlert], found: Found | None
    ) -> tuple[int, int]:
        """Raise new alerts up to the limit; resolve those whose problem has been absent for long enough."""
        if found is None:
            return 0, 0
        known = {alert.fingerprint for alert in open_ones}
        still = [alert for alert in found.alerts if alert.fingerprint in known]
        new = [alert for alert in found.alerts if alert.fingerprint not in known]
        raisable = new[: max(0, MOST_OF_A_KIND - len(known))]
        raised = raise_alerts(connection, [*still, *raisable], **self._targets)
        gone = known - {alert.fingerprint for alert in still} if found.whole else set()
        now, before = time.monotonic(), self._gone_at.get(kind, {})
        self._gone_at[kind] = {one: before.get(one, now) for one in gone}
        enough = now - self._settings.alert_hold_seconds
        over = {one for one, at in self._gone_at[kind].items() if at <= enough}
        return len(raised), len(resolve_alerts(connection, over, **self._targets))

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
            # A success that has not been read yet may be later than the dead letters.
            return None
        known, new = {*map(_cause, open_ones)}, queries.new_causes(connection)
        unknown = list(dict.fromkeys(one.cause for one in new if one.cause not in known))
        capacity = max(0, MOST_OF_A_KIND - len(known))
        taken, left = unknown[:capacity], set(unknown[capacity:])
        if new:
            # Causes beyond the limit are found again when the number of open alerts allows it.
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
