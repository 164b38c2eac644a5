"""The worker's lease: taken and released here, renewed by the heartbeat process."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import psycopg

from noonmark.service.inability import Inability
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import worker_lease
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import HEARTBEAT_AGE
from noonmark.worker.leases.heartbeat import Config
from noonmark.worker.leases.shared_attempts import SharedAttempts
from noonmark.worker.leases.worker_time import lease_clock

_RESTART_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 10.0
"""For what follows drain and grace; then the heartbeat process ends a worker that was asked to stop."""

_RENEW_SHARE: Final = 1 / 2
"""The worker renews the lease itself when the last heartbeat is older than this share of the lease."""

_SILENT_SECONDS: Final = 10.0
"""Least silence after which a heartbeat process is replaced: twice the limit of its statements."""

_LATE_SHARE: Final = 2 / 3
"""Nothing is started when the last heartbeat is older than this share of the lease."""

_LAPSES: Final = 2
_LAPSE_WINDOW_LEASES: Final = 10
"""After this many lapses within this many leases, nothing is started until the next one was kept in full."""


class Lease:
    """The identity (worker id and epoch) of this worker, and whether its lease is still live.

    One heartbeat process renews all leases of this process. A lease is taken only when the process is ready,
    and nothing may be started before its first heartbeat (`problem`): on a loaded machine the process takes
    longer to start than a lease lasts. If it ends, a thread renews the lease until the next one is ready.
    """

    def __init__(
        self,
        service: Service,
        pool: str,
        attempts: SharedAttempts,
        topics: EventTopics,
        *,
        shards: int,
        signals_fd: int,
    ) -> None:
        """Prepare the lease: `start_heartbeat` starts the process, `take` registers the worker.

        Args:
            service: the process.
            pool: that it works for.
            attempts: what the worker runs; the heartbeat process watches it.
            topics: where verdicts are announced.
            shards: number of shards of the installation.
            signals_fd: the heartbeat process reads from it which signals the worker gets.
        """
        settings = service.settings
        self._attempts = attempts
        self._signals_fd = signals_fd
        self._config = Config(
            dsn=settings.dsn,
            beat_seconds=settings.beat_seconds,
            attempts_fd=attempts.fd,
            attempts=attempts.slots,
            signals_fd=signals_fd,
            stop_seconds=settings.drain_seconds + settings.kill_grace_seconds + _STOP_SECONDS,
            lifecycle=topics.lifecycle,
            dead=topics.dead,
            shards=shards,
            log_level=settings.log_level,
            log_format=settings.log_format,
        )
        self._service = service
        self._lease_seconds = settings.lease_seconds
        self._log = service.log.bind(loop="lease")
        self._pool = pool
        self._lock = threading.Lock()
        self._helper: subprocess.Popen[str] | None = None
        self._is_ready = False
        self._closing = False
        self._beaten_at = lease_clock()
        self._is_renewed = False
        self._silence = Inability(max(_SILENT_SECONDS, settings.lease_seconds))
        self._lapses: deque[float] = deque(maxlen=_LAPSES)
        self._keep_until = 0.0
        self.identity = Identity(0, 0)
        self.lost = threading.Event()
        """Set when the lease has lapsed: all runs in flight must be dropped, and a new lease taken."""
        service.health.require("lease", "no lease yet")
        service.health.before_scrape(self._show_age)

    def start_heartbeat(self) -> None:
        """Start the heartbeat process; it gets ready while the other parts of the worker are created.

        Raises:
            OSError: the system cannot start a process or thread now.
        """
        with _blocked_signals():
            helper = subprocess.Popen(
                [sys.executable, "-m", "noonmark.worker.leases.heartbeat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=(self._attempts.fd, self._signals_fd),
            )
        with self._lock:
            self._helper = helper
            # The database URL can contain a password: it goes through a pipe, never into argv.
            self._send(asdict(self._config))
        try:
            threading.Thread(target=self._listen, args=(helper,), name="lease", daemon=True).start()
        except RuntimeError as error:
            helper.kill()
            helper.communicate()
            raise OSError(errno.EAGAIN, str(error)) from error

    def take(self, connection: psycopg.Connection, catalogue: str) -> bool:
        """Register as a new worker; False if the heartbeat process is not ready yet.

        Args:
            connection: autocommit.
            catalogue: what the worker can run (`noonmark.store.cluster.catalogues`).
        """
        if not self._is_ready:
            return False
        settings = self._service.settings
        began_at = lease_clock()
        identity = worker_lease.register(
            connection,
            pool=self._pool,
            host=socket.gethostname(),
            pid=os.getpid(),
            lease_seconds=settings.lease_seconds,
            catalogue=catalogue,
            slots=settings.worker_slots,
        )
        with self._lock:
            self.identity = identity
            self._beaten_at = began_at
            self._is_renewed = False
            self._keep_until = time.monotonic() + self._probation_seconds()
            self.lost.clear()
            self._send(identity._asdict())
        self._log.info("lease_taken", worker=identity.worker, epoch=identity.epoch)
        return True

    def problem(self) -> str:
        """Return why nothing may be started under this lease, as a fixed phrase; "" if it may."""
        if not self.identity.worker:
            return "no lease yet" if self._is_ready else "the heartbeat process has not started yet"
        if not self._is_renewed:
            return "the lease has no heartbeat yet"
        if self.age_seconds() > self._lease_seconds * _LATE_SHARE:
            return "the heartbeats of the lease are late"
        if time.monotonic() < self._keep_until:
            return "the lease was lost repeatedly; a new one must be kept for its whole length first"
        return ""

    def is_live(self) -> bool:
        """Return whether the lease cannot be over: only then may a run that was started under it begin.

        After a pause the age of the last heartbeat shows at once what a report says only later. Callable
        from any thread.
        """
        return (
            self.identity.worker != 0
            and not self.lost.is_set()
            and lease_clock() - self._beaten_at < self._lease_seconds
        )

    def tend(self, connection: psycopg.Connection) -> None:
        """Renew the lease here while its heartbeats are late, and replace a heartbeat process that is silent.

        Args:
            connection: autocommit; that of the heartbeat process may be broken while this one works.
        """
        if not self.identity.worker or self.lost.is_set():
            return
        if self._is_renewed and self.age_seconds() > self._lease_seconds * _RENEW_SHARE:
            identity, at = self.identity, lease_clock()
            if worker_lease.beat(connection, identity):
                self._renewed(identity.worker, at)
            else:
                self.lapse(identity.worker)
        with self._lock:
            helper, is_silent = self._helper, self._is_ready and self._silence.is_long()
        if helper is not None and is_silent:
            self._log.error("heartbeat_silent", seconds=self._silence.most_seconds)
            self._silence.mark_able()
            helper.kill()

    def forget(self) -> None:
        """Drop a lease that has lapsed, with all of its runs, before another one is taken."""
        with self._lock:
            self.identity = Identity(0, 0)

    def lapse(self, worker: int) -> None:
        """Record that the lease of this worker id has lapsed; callable repeatedly and from any thread."""
        with self._lock:
            if not worker or worker != self.identity.worker or self.lost.is_set():
                return
            self.lost.set()
            self._lapses.append(time.monotonic())
        self._log.error("lease_lapsed", worker=worker)

    def leave(self, connection: psycopg.Connection) -> None:
        """Release the lease, then stop the heartbeat."""
        worker_lease.leave(connection, self.identity)
        self.close()

    def close(self) -> None:
        """Stop the heartbeat."""
        with self._lock:
            self._closing = True
            helper, self._helper = self._helper, None
        if helper is None:
            return
        assert helper.stdin is not None
        helper.stdin.close()
        try:
            helper.wait(2)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.wait()

    def age_seconds(self) -> float:
        """Return the seconds since the last successful heartbeat."""
        return lease_clock() - self._beaten_at

    def _probation_seconds(self) -> float:
        """Return how long the new lease must be kept before it counts: its length, after repeated lapses."""
        lease = self._lease_seconds
        is_unsteady = (
            len(self._lapses) == _LAPSES and time.monotonic() - self._lapses[0] < _LAPSE_WINDOW_LEASES * lease
        )
        return lease if is_unsteady else 0.0

    def _send(self, command: Mapping[str, str | int | float]) -> None:
        """Send a line to the heartbeat process; one that has just ended is replaced by `_listen`."""
        assert self._helper is not None
        assert self._helper.stdin is not None
        try:
            self._helper.stdin.write(json.dumps(command) + "\n")
            self._helper.stdin.flush()
        except (OSError, ValueError):  # ended, or closed because it has ended
            self._is_ready = False

    def _listen(self, helper: subprocess.Popen[str]) -> None:
        """Receive the reports of one heartbeat process, and replace it when it ends."""
        assert helper.stdout is not None
        with helper.stdout as reports:
            for line in reports:
                self._take_report(json.loads(line))
        with self._lock:
            was_ready, self._is_ready = self._is_ready, False
        if not self._closing:
            self._log.error("heartbeat_ended", exit_code=helper.wait())
            assert helper.stdin is not None
            with contextlib.suppress(OSError):
                helper.stdin.close()
            restarting = threading.Thread(target=self._restart, args=(was_ready,), name="lease", daemon=True)
            while not self._closing:
                try:
                    restarting.start()
                except RuntimeError as error:
                    self._log.warning("heartbeat_not_started", error=str(error))
                    time.sleep(_RESTART_SECONDS)
                else:
                    break
            self._renew_meanwhile()

    def _take_report(self, report: dict[str, Any]) -> None:
        self._silence.mark_able()
        if report["event"] == "ready":
            with self._lock:
                self._is_ready = True
                if self.identity.worker and not self.lost.is_set():
                    self._send(self.identity._asdict())
        elif report["event"] == "beat":
            self._renewed(report["worker"], report["at"])
        elif report["event"] == "lapsed":
            self.lapse(report["worker"])
        else:
            self._log.warning("heartbeat_cannot_reach_database", reason=report["reason"])

    def _show_age(self) -> None:
        """Show the age of the last heartbeat, also while everything that waits for Postgres hangs."""
        if self.identity.worker:
            HEARTBEAT_AGE.set(self.age_seconds())

    def _restart(self, at_once: bool) -> None:
        """Start the next heartbeat process; wait first if the last one did not get ready."""
        if not at_once:
            time.sleep(_RESTART_SECONDS)
        while not self._closing:
            try:
                self.start_heartbeat()
            except OSError as error:
                self._log.warning("heartbeat_not_started", error=str(error))
                time.sleep(_RESTART_SECONDS)
            else:
                return

    def _renew_meanwhile(self) -> None:
        """Renew the lease in this thread until the new heartbeat process is ready."""
        beat_seconds = self._service.settings.beat_seconds
        while not (self._is_ready or self._closing or self.lost.is_set()):
            try:
                with connect(
                    self._service.settings.dsn,
                    application="beat",
                    autocommit=True,
                    statement_timeout_seconds=5,
                ) as connection:
                    while not (self._is_ready or self._closing or self.lost.is_set()):
                        identity, at = self.identity, lease_clock()
                        if identity.worker:
                            if not worker_lease.beat(connection, identity):
                                self.lapse(identity.worker)
                                return
                            self._renewed(identity.worker, at)
                        time.sleep(min(beat_seconds, 0.5))
            except psycopg.Error as error:
                reason = worker_lease.why_not_renewed(error)
                self._log.warning("heartbeat_cannot_reach_database", reason=reason)
                time.sleep(0.5)

    def _renewed(self, worker: int, at: float) -> None:
        """Record a heartbeat; `at` is read before its statement, on the clock of leases."""
        with self._lock:
            if worker != self.identity.worker:
                return
            self._is_renewed = True
            self._beaten_at = max(self._beaten_at, at)


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block the signals of the terminal: a process that is started inside the block inherits that.

    The heartbeat process ignores them, but only once it has loaded its modules.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
