"""Measurements that the leading trigger shows for all: rare, and a few statements each time."""

from __future__ import annotations

import time
from typing import Final

import psycopg

from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.cluster.members import Membership
from noonmark.store.maintenance import measures
from noonmark.telemetry.declared.instruments import show_nothing
from noonmark.telemetry.metrics import (
    DATABASE_CONNECTIONS,
    DEAD_LETTERS,
    DEAD_ROWS,
    DUE_OLDEST,
    DUE_TIMERS,
    NAMESPACE_RUNS,
    OLDEST_XMIN,
    POOL_SLOTS,
    WORKERS,
    WORKFLOW_FACTS_OLDEST,
)

_OFTEN_SECONDS: Final = 5.0
_SELDOM_SECONDS: Final = 15.0
_OFTEN: Final = (DUE_TIMERS, DUE_OLDEST, WORKFLOW_FACTS_OLDEST, WORKERS, POOL_SLOTS)
_SELDOM: Final = (DEAD_LETTERS, NAMESPACE_RUNS, OLDEST_XMIN, DEAD_ROWS, DATABASE_CONNECTIONS)


class MeasureLoop(DatabaseLoop):
    """Shows backlog, workers, namespaces and the state of the database while this trigger leads."""

    def __init__(self, service: Service, membership: Membership, *, shards: int) -> None:
        """Create the loop; it shows nothing while this trigger does not lead."""
        super().__init__(service, "measure", max_age_seconds=60.0)
        self._membership = membership
        self._shards = shards
        self._often_at = 0.0
        self._seldom_at = 0.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Measure what is due."""
        if not self._membership.leads:
            self._forget()
            return 1.0
        now = time.monotonic()
        try:
            if now >= self._often_at:
                self._often_at = now + _OFTEN_SECONDS
                self._show_often(connection)
            if now >= self._seldom_at:
                self._seldom_at = now + _SELDOM_SECONDS
                self._show_seldom(connection)
        except psycopg.Error:
            # The last measurements are outdated, and another trigger may lead.
            self._forget()
            raise
        return 1.0

    def _forget(self) -> None:
        show_nothing((*_OFTEN, *_SELDOM))
        self._often_at = self._seldom_at = 0.0

    def _show_often(self, connection: psycopg.Connection) -> None:
        due = measures.due(connection, shards=self._shards)
        DUE_TIMERS.replace({(lane.label,): found.timers for lane, found in due.items()})
        DUE_OLDEST.replace({(lane.label,): found.oldest_seconds for lane, found in due.items()})
        WORKFLOW_FACTS_OLDEST.replace({(lane.label,): found.facts_seconds for lane, found in due.items()})
        pools = measures.pools(connection)
        WORKERS.replace(
            {
                (pool, state): getattr(found, state)
                for pool, found in pools.items()
                for state in ("live", "silent", "draining")
            }
        )
        POOL_SLOTS.replace(
            {
                (pool, state): getattr(found, state)
                for pool, found in pools.items()
                for state in ("busy", "free")
            }
        )

    @staticmethod
    def _show_seldom(connection: psycopg.Connection) -> None:
        DEAD_LETTERS.replace({(): measures.dead_letters(connection)})
        found = measures.namespaces(connection)
        NAMESPACE_RUNS.replace({labels: float(runs) for labels, runs in found.items()})
        database = measures.database(connection)._asdict()
        OLDEST_XMIN.replace({(): database.pop("oldest_xmin_seconds")})
        DATABASE_CONNECTIONS.replace({(state,): count for state, count in database.items()})
        DEAD_ROWS.replace({(table,): float(rows) for table, rows in measures.dead_rows(connection).items()})
