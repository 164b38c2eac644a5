"""The heartbeat, in a process of its own, so that no handler's GIL or event loop can hold it up.

Started by the worker as `python -m noonmark.worker.leases.heartbeat`; reads requests from standard input
and reports on standard output, a JSON line each. It ends with its parent, and does not beat for a parent
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

import psycopg

from noonmark.store.database.connect import connect
from noonmark.store.database.statements import statement

_RETRY_SECONDS = 0.5


def main() -> int:
    """Beat until the parent closes our input, dies, or loses its lease."""
    parent = os.getppid()
    # Signals of the terminal are the worker's business: it ends us last.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    orders = json.loads(sys.stdin.readline())
    identity = {"worker": orders["worker"], "epoch": orders["epoch"]}
    pause = float(orders["beat_seconds"])
    while True:
        try:
            with connect(
                orders["dsn"], application="beat", autocommit=True, statement_timeout_seconds=5
            ) as connection:
                while True:
                    if not _stopped(parent):
                        if connection.execute(statement("renew_worker_lease"), identity).fetchone() is None:
                            _say("lapsed")
                            return 0
                        _say("beat")
                    if _parent_gone(parent, pause):
                        return 0
        except psycopg.Error as error:
            _say("away", reason=str(error).strip().splitlines()[0] if str(error) else type(error).__name__)
            if _parent_gone(parent, _RETRY_SECONDS):
                return 0


def _parent_gone(parent: int, seconds: float) -> bool:
    """Wait, and tell whether the parent closed our input or is not our parent any more."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin], [], [], left)
        if ready and not sys.stdin.readline():
            return True
    return os.getppid() != parent


def _stopped(pid: int) -> bool:
    """Tell whether a process is stopped (SIGSTOP, a debugger); False where that cannot be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in {"T", "t", "Z", "X"}


def _say(event: str, **more: str) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
