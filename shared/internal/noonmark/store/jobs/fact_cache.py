"""Facts that a process caches: which pools and ledger days exist, and what the workers can run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime

import psycopg

from noonmark.store.cluster.catalogues import Catalogues
from noonmark.store.cluster.pools import pool_names


class FactCache:
    """Caches facts from committed rows, so that the next batch need not query them. Not thread-safe."""

    def __init__(self) -> None:
        self.pools: frozenset[str] = frozenset()
        self.catalogues = Catalogues()
        self._days: set[date] = set()

    def unknown_pools(self, connection: psycopg.Connection, wanted: Iterable[str]) -> frozenset[str]:
        """Return those of the pools that do not exist; query Postgres only for pools that are not cached."""
        names = frozenset(wanted)
        if names <= self.pools:
            return frozenset()
        self.pools = frozenset(pool_names(connection))
        return names - self.pools

    def ensure_day(self, connection: psycopg.Connection, at: datetime) -> None:
        """Ensure that the ledger has a partition for the day of an instant, in the caller's transaction."""
        day = at.astimezone(UTC).date()
        if day in self._days:
            return
        row = connection.execute("select noonmark_make_day(%s)", [day]).fetchone()
        # A day created just now is not cached, because this transaction may be rolled back.
        if row is not None and not row[0]:
            self._days.add(day)
