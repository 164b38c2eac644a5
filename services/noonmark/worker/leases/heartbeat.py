"""The heartbeat: a separate process, so that no handler can delay it by blocking the GIL or an event loop.

The worker starts it as `python -m noonmark.worker.leases.heartbeat`. It reads one JSON line from standard
input and writes its reports to standard output, one JSON line each. It exits with its parent, and sends no
heartbeat for a parent that is stopped: a worker that is paused for longer than its lease must lose it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path

import psycopg

from noonmark.store.database.connect import connect
from noonmark.store.database.statements import statement

_RETRY_SECONDS = 0.5


def main() -> int:
    """Renew the lease until the parent closes our input, dies, or loses the lease."""
    parent = os.getppid()
    # The worker handles the signals of the terminal, and stops this process last.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    config = json.loads(sys.stdin.readline())
    identity = {"worker": config["worker"], "epoch": config["epoch"]}
    pause = float(config["beat_seconds"])
    while True:
        try:
            with connect(
                config["dsn"], application="beat", autocommit=True, statement_timeout_seconds=5
            ) as connection:
                while True:
                    if not _stopped(parent):
                        if connection.execute(statement("renew_worker_lease"), identity).fetchone() is None:
                            _report("lapsed")
                            return 0
                        _report("beat")
                    if _parent_gone(parent, pause):
                        return 0
        except psycopg.Error as error:
            _report("away", reason=str(error).strip().splitlines()[0] if str(error) else type(error).__name__)
            if _parent_gone(parent, _RETRY_SECONDS):
                return 0


def _parent_gone(parent: int, seconds: float) -> bool:
    """Wait; return whether the parent closed our input or is gone."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], left)
        if ready and not sys.stdin.readline():
            return True
    return os.getppid() != parent


def _stopped(pid: int) -> bool:
    """Return whether a process is stopped (SIGSTOP, a debugger); False if that is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in {"T", "t", "Z", "X"}


def _report(event: str, **more: str) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
