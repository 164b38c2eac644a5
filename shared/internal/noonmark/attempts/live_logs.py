"""Stores the output of attempts while they run, about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from uuid import UUID

import psycopg

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify, must_reconnect
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.outcomes.attempt_logs import AttemptLog, LiveLog, save_logs
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import FENCED_WRITES

ROUND_SECONDS: Final = 1.0
"""Time between two rounds; output of attempts that are shorter is stored with their outcome only."""

ROUND_BYTES: Final = 1024 * 1024
"""About the most that a round writes for all attempts together."""

_LAST_SECONDS: Final = 2.0
"""Time limit for the output of runs that are handed back."""

_Batch = list[tuple[RunningAttempt, AttemptLog, LiveLog]]


class LogWriter:
    """Stores the output of running attempts. Without output it costs nothing, not even a connection.

    Each round stores the output of the attempts that wrote something, those first whose output was stored
    longest ago. So an attempt with a flood of output delays only its own. Output that is not stored when an
    attempt ends is stored with its outcome.
    """

    name = "logs"

    def __init__(
        self,
        service: Service,
        identity: Callable[[], Identity],
        running: Callable[[], Sequence[RunningAttempt]],
    ) -> None:
        """Create the writer.

        Args:
            service: the process.
            identity: returns the current lease of the worker.
            running: returns the attempts in flight.
        """
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._identity = identity
        self._running = running
        self._health = service.health.progress(self.name, 60.0)
        self._closed = threading.Event()
        self._connection: psycopg.Connection | None = None

    def run(self, stop: threading.Event) -> None:
        """Store output until the engine closes the writer, at the end of a drain."""
        del stop
        backoff = Backoff(first_seconds=0.1, cap_seconds=5.0)
        while not self._closed.wait(ROUND_SECONDS):
            self._health.beat()
            try:
                self.run_once()
            except psycopg.Error as error:
                self._failed(error)
                backoff.wait(self._closed)
            else:
                backoff.reset()
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        """Stop the writer; called when no run is in flight any more."""
        self._closed.set()

    def run_once(self) -> int:
        """Store the output of one round; return the number of attempts whose output was stored."""
        batch = list(_first(self._waiting(), ROUND_BYTES))
        if not batch:
            return 0
        if self._connection is None:
            self._connection = connect(self._service.settings.dsn, application="logs", autocommit=True)
        return self._save(self._connection, batch)

    def save_last(self, connection: psycopg.Connection, attempts: Sequence[RunningAttempt]) -> None:
        """Store all output of attempts that are handed back, while the worker still owns their runs.

        Args:
            connection: in autocommit mode.
            attempts: the attempts; their logs are closed.
        """
        until = time.monotonic() + _LAST_SECONDS
        logs = [(attempt, attempt.extras.log) for attempt in attempts if attempt.extras is not None]
        left = [(attempt, log) for attempt, log in logs if log is not None and not log.closed]
        for attempt, log in left:
            log.move(attempt.current_redactor, final=True)
        try:
            while (batch := list(_first(left, ROUND_BYTES))) and time.monotonic() < until:
                self._save(connection, batch)
        except psycopg.Error as error:
            if classify(error) is not DbFault.PERMANENT:
                raise
            # Output that Postgres refuses does not keep the runs from being handed back.
            self._log.warning("last_logs_not_stored", error=str(error).strip())

    def _waiting(self) -> list[tuple[RunningAttempt, AttemptLog]]:
        """Return the attempts with output that may not be stored, those that wait longest first."""
        young = time.monotonic() - ROUND_SECONDS
        found = [
            (attempt, attempt.extras.log)
            for attempt in self._running()
            if attempt.extras is not None and attempt.extras.log is not None and attempt.taken_at <= young
        ]
        waiting = [(attempt, log) for attempt, log in found if not log.closed and log.has_unsaved]
        return sorted(waiting, key=lambda one: one[1].saved_at or one[0].taken_at)

    def _save(self, connection: psycopg.Connection, batch: _Batch) -> int:
        worker, epoch = self._identity()
        result = save_logs(connection, worker, epoch, [live for _, _, live in batch])
        now = time.monotonic()
        lost = 0
        for attempt, log, live in batch:
            if attempt.run.id in result.busy:
                continue
            # Also if the run is not owned any more: nothing of it can be stored, so it is not tried again.
            log.saved, log.saved_at = live.ends, now
            lost += attempt.run.id not in result.saved and not log.closed
        if lost:
            FENCED_WRITES.labels("worker", "log").inc(lost)
        return len(result.saved)

    def _failed(self, error: psycopg.Error) -> None:
        self._log.warning("logs_not_stored_yet", error=str(error).strip())
        if classify(error) is DbFault.PERMANENT:
            # Postgres refuses this output: attempts continue, and only later output is tried again.
            for _, log, live in _first(self._waiting(), ROUND_BYTES):
                log.saved = live.ends
        if self._connection is not None and (must_reconnect(error) or self._connection.broken):
            self._connection.close()
            self._connection = None


def _first(
    waiting: Sequence[tuple[RunningAttempt, AttemptLog]], most_bytes: int
) -> Iterator[tuple[RunningAttempt, AttemptLog, LiveLog]]:
    """Clean and yield the output of the first attempts, of about this size together."""
    runs: set[UUID] = set()
    for attempt, log in waiting:
        log.move(attempt.current_redactor)
        if attempt.run.id in runs:
            continue  # one attempt of a run at a time: only the latest can still own it
        runs.add(attempt.run.id)
        live = LiveLog.of(attempt.run, attempt.fence, log)
        if live is not None:
            yield attempt, log, live
            most_bytes -= live.size
            if most_bytes <= 0:
                return
