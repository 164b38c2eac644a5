"""Which runs in flight must be stopped because a cancel was requested: known within a second, at low cost."""

from __future__ import annotations

import time
from typing import Any, Final

import psycopg

from noonmark.store.runs.held_runs import read_stop_requests
from noonmark.store.runs.worker_lease import Identity
from noonmark.worker.in_flight import RunsInFlight

_POLL_SECONDS: Final = 0.5
"""Between two polls. A run that is not in flight at two polls in a row ends before anyone could cancel it."""


class StopRequests:
    """Polls Postgres about runs that are in flight for longer than one poll; short ones cost nothing."""

    def __init__(self) -> None:
        self._poll_at = 0.0
        self._seen: set[Any] = set()

    def poll(
        self, connection: psycopg.Connection, identity: Identity, in_flight: RunsInFlight
    ) -> list[tuple[Any, int]]:
        """Return the keys of runs that must be stopped and have not been asked to yet, if a poll is due.

        Args:
            connection: autocommit.
            identity: of the worker that owns the runs.
            in_flight: the runs in flight; other threads can remove some meanwhile.
        """
        now = time.monotonic()
        if now < self._poll_at:
            return []
        self._poll_at = now + _POLL_SECONDS
        running = in_flight.all()
        long = {
            attempt.run.id: attempt
            for attempt in running
            if attempt.key in self._seen and not attempt.stop_requested
        }
        self._seen = {attempt.key for attempt in running}
        if not long:
            return []
        runs = [attempt.fenced_run for attempt in long.values()]
        return [long[run_id].key for run_id in read_stop_requests(connection, identity, runs)]
