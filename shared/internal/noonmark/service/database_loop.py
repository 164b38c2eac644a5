"""The base of all loops that work on Postgres: one pass, then a wait that a hint can end early."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

import psycopg

from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify, log_fault, missing_because
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect

_LONGEST_WAIT_SECONDS = 1.0


class DatabaseLoop(ABC):
    """Calls `run_once` on its own connection until stopped, and keeps trying while the database is down.

    Between passes, a loop keeps nothing in memory that is not in Postgres, so a failed pass is repeated on a
    new connection.
    """

    def __init__(
        self,
        service: Service,
        name: str,
        *,
        max_age_seconds: float = 15.0,
        lock_timeout_seconds: float | None = None,
    ) -> None:
        """Register the loop.

        Args:
            service: the process.
            name: name of the loop in logs, health and metrics.
            max_age_seconds: `/livez` fails if no pass has finished for this time.
            lock_timeout_seconds: how long a statement waits for one lock, see `connect`.
        """
        self.name = name
        self._lock_timeout_seconds = lock_timeout_seconds
        self.wake = threading.Event()
        self._service = service
        self._log = service.log.bind(loop=name)
        self._progress = service.health.progress(name, max_age_seconds)
        service.health.require(f"{name}_database", "the database has not answered yet")

    @abstractmethod
    def run_once(self, connection: psycopg.Connection) -> float:
        """Do one pass; return the seconds to wait before the next, at most one."""

    def ending(self, connection: psycopg.Connection) -> None:  # noqa: B027 - most loops own nothing
        """Release what the loop owns, on a working connection; called once when the loop stops."""

    def run(self, stop: threading.Event) -> None:
        """Run passes until `stop` is set."""
        backoff = Backoff(first_seconds=0.1, cap_seconds=1.0)
        while not stop.is_set():
            try:
                with connect(
                    self._service.settings.dsn,
                    application=self.name,
                    autocommit=True,
                    lock_timeout_seconds=self._lock_timeout_seconds,
                ) as connection:
                    self._passes(connection, stop, backoff)
            except (psycopg.Error, OSError) as error:
                if classify(error) is DbFault.PERMANENT:
                    raise
                self._service.health.set_ready(
                    f"{self.name}_database", ready=False, missing=missing_because(error)
                )
                log_fault(self._log, error)
                # A process that keeps trying is alive: an outage of the database is not its failure.
                self._progress.failed(str(error).strip())
                backoff.wait(stop)

    def _passes(self, connection: psycopg.Connection, stop: threading.Event, backoff: Backoff) -> None:
        while not stop.is_set():
            pause = self.run_once(connection)
            self._progress.passed()
            if backoff.failures:
                backoff.reset()
            self._service.health.set_ready(f"{self.name}_database", ready=True)
            self._pause(stop, pause)
        self.ending(connection)

    def _pause(self, stop: threading.Event, seconds: float) -> None:
        if seconds <= 0 or stop.is_set():
            self.wake.clear()
            return
        self.wake.wait(min(seconds, _LONGEST_WAIT_SECONDS))
        self.wake.clear()


class Pace:
    """Spaces out the starts of passes, so that load causes a few large passes instead of many small ones."""

    def __init__(self, seconds: float) -> None:
        """Set the shortest time between two starts."""
        self._seconds = seconds
        self._started_at = 0.0

    def hold(self, stop: threading.Event, *, stretch: float = 1.0) -> None:
        """Wait until the next start is due; returns at once after a quiet time.

        Args:
            stop: ends the wait.
            stretch: multiplies this wait.
        """
        left = self._started_at + self._seconds * stretch - time.monotonic()
        if left > 0:
            stop.wait(left)
        self._started_at = time.monotonic()
