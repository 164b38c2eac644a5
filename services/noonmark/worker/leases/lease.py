"""The worker's lease: registered here, renewed by the heartbeat process, and lost here."""

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
    """Who this worker is at the moment, and whether it still is."""

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
        """Give the lease up in good order; the heartbeat ends last."""
        worker_lease.leave(connection, self.identity)
        self.close()

    def close(self) -> None:
        """End the heartbeat."""
        self._closing = True
        self._end_helper()

    def age_seconds(self) -> float:
        """Return how long ago the last beat was taken."""
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
        # The address holds a password: it goes through a pipe, never into argv.
        orders = {**self.identity._asdict(), "dsn": settings.dsn, "beat_seconds": settings.beat_seconds}
        helper.stdin.write(json.dumps(orders) + "\n")
        helper.stdin.flush()
        self._helper = helper
        threading.Thread(target=self._listen, args=(helper,), name="lease", daemon=True).start()

    def _listen(self, helper: subprocess.Popen[str]) -> None:
        assert helper.stdout is not None
        for line in helper.stdout:
            said = json.loads(line)
            if said["event"] == "beat":
                self._beaten_at = time.monotonic()
                HEARTBEAT_AGE.set(0)
            elif said["event"] == "away":
                self._log.warning("heartbeat_cannot_reach_database", reason=said["reason"])
                HEARTBEAT_AGE.set(self.age_seconds())
            elif said["event"] == "lapsed" and helper is self._helper:
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
