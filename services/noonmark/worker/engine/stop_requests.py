"""Which of the runs in hand somebody asked to stop: known within a second, at next to no cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import psycopg

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.runs.held_runs import read_stop_requests
from noonmark.store.runs.worker_lease import Identity

_LOOK_SECONDS: Final = 0.5
"""Between two looks. A run that is not in hand at two in a row is over before anybody could cancel it."""


class StopRequests:
    """Asks Postgres about runs that are in hand for longer than a look; short ones cost nothing."""

    def __init__(self) -> None:
        self._poll_at = 0.0
        self._seen: set[Any] = set()

    def poll(
        self, connection: psycopg.Connection, identity: Identity, held: Mapping[Any, RunningAttempt]
    ) -> list[tuple[Any, int]]:
        """Return the keys of runs that are to be stopped and were not asked before, if it is time for a look.

        Args:
            connection: autocommit.
            identity: who holds the runs.
            held: all that is in hand, by key; other threads may take from it.
        """
        now = time.monotonic()
        if now < self._poll_at:
            return []
        self._poll_at = now + _LOOK_SECONDS
        in_hand = dict(held)
        long = {
            attempt.run.id: attempt
            for key, attempt in in_hand.items()
            if key in self._seen and not attempt.stop_requested
        }
        self._seen = set(in_hand)
        if not long:
            return []
        runs = [(run_id, attempt.run.scheduled_for) for run_id, attempt in long.items()]
        return [long[run_id].key for run_id in read_stop_requests(connection, identity, runs)]
