"""The heartbeat: a separate process, so that no handler can delay it by blocking the GIL or an event loop.

The worker starts it as `python -m noonmark.worker.leases.heartbeat`, once for all its leases, and takes a
lease only when the process is ready: on a loaded machine a start takes longer than a lease lasts. It reads
JSON lines from standard input: first its configuration, then each lease that it is to renew. It writes its
reports to standard output, one JSON line each. It exits with its parent, and sends no heartbeat for a parent
that is stopped: a worker that is paused for longer than its lease must lose it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

from noonmark.store.database.connect import connect
from noonmark.store.runs import worker_lease
from noonmark.store.runs.worker_lease import Identity

_RETRY_SECONDS = 0.5
_INPUT = 0
_CHUNK_BYTES = 65536


class Commands:
    """The lines that the worker sends, read without blocking."""

    def __init__(self) -> None:
        self._unread = b""
        self._parent = os.getppid()
        self.is_closed = False
        """Whether the worker closed our input or is gone."""

    def next(self, seconds: float) -> dict[str, Any] | None:
        """Wait for a line; None if none came in this time, or if none will come any more."""
        until = time.monotonic() + seconds
        while b"\n" not in self._unread and not self.is_closed:
            left = until - time.monotonic()
            if left <= 0:
                break
            ready, _, _ = select.select([_INPUT], [], [], left)
            if ready:
                read = os.read(_INPUT, _CHUNK_BYTES)
                self._unread += read
                self.is_closed = not read
        self.is_closed |= os.getppid() != self._parent
        if b"\n" not in self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        command: dict[str, Any] = json.loads(line)
        return command

    def is_parent_stopped(self) -> bool:
        """Return whether the worker is stopped (SIGSTOP, a debugger); False if that is unknown."""
        try:
            stat = Path(f"/proc/{self._parent}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in {"T", "t", "Z", "X"}


class Heartbeat:
    """Renews the worker's current lease."""

    def __init__(self, commands: Commands, dsn: str, beat_seconds: float) -> None:
        self._commands = commands
        self._dsn = dsn
        self._beat_seconds = beat_seconds
        self._lease: Identity | None = None

    def run(self) -> None:
        """Send heartbeats until the worker closes our input or is gone."""
        while not self._commands.is_closed:
            try:
                with connect(
                    self._dsn, application="beat", autocommit=True, statement_timeout_seconds=5
                ) as connection:
                    self._beat(connection)
            except psycopg.Error as error:
                reason = str(error).strip().splitlines()[0] if str(error) else type(error).__name__
                _report("away", reason=reason)
                self._obey(_RETRY_SECONDS)

    def _beat(self, connection: psycopg.Connection) -> None:
        while not self._commands.is_closed:
            lease = self._lease
            if lease is not None and not self._commands.is_parent_stopped():
                if worker_lease.beat(connection, lease):
                    _report("beat", worker=lease.worker)
                else:
                    _report("lapsed", worker=lease.worker)
                    self._lease = None
            self._obey(self._beat_seconds)

    def _obey(self, seconds: float) -> None:
        """Wait for the next lease, so that its first heartbeat follows at once."""
        command = self._commands.next(seconds)
        if command is not None:
            self._lease = Identity(command["worker"], command["epoch"])


def main() -> int:
    """Renew the leases that the worker names until it closes our input or dies."""
    # The worker handles the signals of the terminal, and stops this process last.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    commands = Commands()
    config = None
    while config is None and not commands.is_closed:
        config = commands.next(1.0)
    if config is not None:
        _report("ready")
        Heartbeat(commands, config["dsn"], config["beat_seconds"]).run()
    return 0


def _report(event: str, **more: str | int) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
