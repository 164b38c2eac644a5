"""The worker's lease: taken and released here, renewed by the heartbeat process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time

import psycopg

from noonmark.service.runner import Service
from noonmark.store.runs import worker_lease
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import HEARTBEAT_AGE


class Lease:
    """The identity (worker id and epoch) of this worker, and whether its lease is still live."""

    def __init__(self, service: Service, pool: str) -> None:
        """Prepare the lease; `take` registers the worker."""
        self._service = service
        self._log = service.log.bind(loop="lease")
        self._pool = pool
        self._helper: subprocess.Popen[str] | None = None
        self._closing = False
        self._beaten_at = time.monotonic()
        self.identity = Identity(0, 0)
        self.lost = threading.Event()
        """Set when the lease has lapsed: all runs in flight must be dropped, and a new lease taken."""
        service.health.require("lease", "no lease yet")

    def take(self, connection: psycopg.Connection, catalogue: str) -> Identity:
        """Register as a new worker and start the heartbeat.

        Args:
            connection: autocommit.
            catalogue: what the worker can run (`noonmark.store.cluster.catalogues`).
        """
        settings = self._service.settings
        self._end_helper()
        self.identity = worker_lease.register(
            connection,
            pool=self._pool,
            host=socket.gethostname(),
            pid=os.getpid(),
            lease_seconds=settings.lease_seconds,
            catalogue=catalogue,
            slots=settings.worker_slots,
        )
        self.lost.clear()
        self._beaten_at = time.monotonic()
        self._start_helper()
        self._log.info("lease_taken", worker=self.identity.worker, epoch=self.identity.epoch)
        return self.identity

    def leave(self, connection: psycopg.Connection) -> None:
        """Release the lease, then stop the heartbeat."""
        worker_lease.leave(connection, self.identity)
        self.close()

    def close(self) -> None:
        """Stop the heartbeat."""
        self._closing = True
        self._end_helper()

    def age_seconds(self) -> float:
        """Return the seconds since the last successful heartbeat."""
        return time.monotonic() - self._beaten_at

    def _start_helper(self) -> None:
        helper = subprocess.Popen(
            [sys.executable, "-m", "noonmark.worker.leases.heartbeat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert helper.stdin is not None
        settings = self._service.settings
        # The database URL can contain a password: it goes through a pipe, never into argv.
        config = {**self.identity._asdict(), "dsn": settings.dsn, "beat_seconds": settings.beat_seconds}
        helper.stdin.write(json.dumps(config) + "\n")
        helper.stdin.flush()
        self._helper = helper
        threading.Thread(target=self._listen, args=(helper,), name="lease", daemon=True).start()

    def _listen(self, helper: subprocess.Popen[str]) -> None:
        assert helper.stdout is not None
        for line in helper.stdout:
            report = json.loads(line)
            if report["event"] == "beat":
                self._beaten_at = time.monotonic()
                HEARTBEAT_AGE.set(0)
            elif report["event"] == "away":
                self._log.warning("heartbeat_cannot_reach_database", reason=report["reason"])
                HEARTBEAT_AGE.set(self.age_seconds())
            elif report["event"] == "lapsed" and helper is self._helper:
                self._log.error("lease_lapsed", worker=self.identity.worker)
                self.lost.set()
        if helper is self._helper and not self._closing and not self.lost.is_set():
            self._log.error("heartbeat_ended", exit_code=helper.wait())
            self._start_helper()

    def _end_helper(self) -> None:
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
