"""The heartbeat: a separate process, so that no handler can delay it by blocking the GIL or an event loop.

The worker starts it as `python -m noonmark.worker.leases.heartbeat`, once for all its leases, and takes a
lease only when the process is ready: on a loaded machine a start takes longer than a lease lasts. It reads
JSON lines from standard input: first its configuration, then each lease that it is to renew. It writes its
reports to standard output, one JSON line each. It exits with its parent, and sends no heartbeat for a parent
that has been stopped since the last one: a worker that is paused for longer than its lease must lose it. One
that only gets little CPU, and so is found stopped nearly always, keeps it (`worker_time.py`).

It also ends a worker that cannot end itself, because a handler keeps the interpreter's lock: once an attempt
is past its timeout and grace, which is then recorded as timed out, once any thread has kept the lock for
about half a minute, or once a stop takes longer than it may, measured by the time that the worker could use.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import psycopg

from noonmark.store.database.connect import connect
from noonmark.store.runs import worker_lease
from noonmark.store.runs.worker_lease import Identity
from noonmark.worker.leases.shared_attempts import SharedAttempts
from noonmark.worker.leases.stuck_worker import StuckWorker
from noonmark.worker.leases.worker_time import WorkerTime, lease_clock

_RETRY_SECONDS = 0.5
_CHECK_SECONDS = 0.5
_INPUT = 0
_OUTPUT = 1
_CHUNK_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Config:
    """What the worker sends first.

    Attributes:
        dsn: of the database.
        beat_seconds: between two heartbeats.
        attempts_fd: of the shared table of attempts.
        attempts: number of its slots.
        signals_fd: receives the number of each signal that the worker gets, even while it cannot handle it.
        stop_seconds: the longest that a stop may take after SIGTERM or SIGINT, in time that the
            worker could use.
        lifecycle: topic of verdicts.
        dead: topic of dead runs.
        shards: number of shards of the installation.
        log_level: of the worker.
        log_format: of the worker.
    """

    dsn: str
    beat_seconds: float
    attempts_fd: int
    attempts: int
    signals_fd: int
    stop_seconds: float
    lifecycle: str
    dead: str
    shards: int
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["json", "console"]


class Commands:
    """The lines that the worker sends, and the signals that it gets, read without blocking."""

    def __init__(self) -> None:
        self._unread = b""
        self.parent = os.getppid()
        self.signals_fd: int | None = None
        self.is_signalled = False
        """Whether the worker got a signal to stop."""

        self.is_closed = False
        """Whether the worker closed our input or is gone."""

    def next(self, seconds: float) -> dict[str, Any] | None:
        """Wait for a line; None if none came in this time, or if none will come any more."""
        until = time.monotonic() + seconds
        while b"\n" not in self._unread and not self.is_closed:
            left = until - time.monotonic()
            if left <= 0:
                break
            fds = [_INPUT] if self.signals_fd is None else [_INPUT, self.signals_fd]
            ready, _, _ = select.select(fds, [], [], left)
            if self.signals_fd in ready:
                self._read_signals()
            if _INPUT in ready:
                read = os.read(_INPUT, _CHUNK_BYTES)
                self._unread += read
                self.is_closed = not read
        self.is_closed |= os.getppid() != self.parent
        if b"\n" not in self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        command: dict[str, Any] = json.loads(line)
        return command

    def _read_signals(self) -> None:
        assert self.signals_fd is not None
        numbers = os.read(self.signals_fd, _CHUNK_BYTES)
        if not numbers:
            self.signals_fd = None
        else:
            self.is_signalled |= signal.SIGTERM in numbers or signal.SIGINT in numbers


class Heartbeat:
    """Renews the worker's current lease, and ends a worker that cannot end itself."""

    def __init__(self, commands: Commands, config: Config) -> None:
        self._commands = commands
        self._config = config
        self._lease: Identity | None = None
        attempts = SharedAttempts(config.attempts, fd=config.attempts_fd)
        self._stuck = StuckWorker(commands.parent, attempts)
        self._time = WorkerTime(commands.parent, attempts)
        self._stopping_seconds = 0.0

    def run(self) -> None:
        """Send heartbeats until the worker closes our input or is gone."""
        while not self._commands.is_closed:
            try:
                with connect(
                    self._config.dsn, application="beat", autocommit=True, statement_timeout_seconds=5
                ) as connection:
                    self._beat(connection)
            except psycopg.Error as error:
                _report("away", reason=worker_lease.why_not_renewed(error))
                self._wait(_RETRY_SECONDS, None)

    def _beat(self, connection: psycopg.Connection) -> None:
        while not self._commands.is_closed:
            lease = self._lease
            if lease is not None and not self._time.stood_still():
                # Read before the statement: the worker may receive the report much later than this moment.
                at = lease_clock()
                if worker_lease.beat(connection, lease):
                    _report("beat", worker=lease.worker, at=at)
                else:
                    _report("lapsed", worker=lease.worker)
                    self._lease = None
            self._wait(self._config.beat_seconds, connection)

    def _wait(self, seconds: float, connection: psycopg.Connection | None) -> None:
        """Wait until the next heartbeat is due or there is another lease, whose first one follows at once."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._commands.is_closed:
            command = self._commands.next(min(left, _CHECK_SECONDS))
            self._check_worker(connection)
            if command is not None:
                self._lease = Identity(command["worker"], command["epoch"])
                return

    def _check_worker(self, connection: psycopg.Connection | None) -> None:
        """End the worker if it cannot end itself."""
        now = time.monotonic()
        passed = self._time.passed(now)
        if self._commands.is_signalled:
            # The time that the worker could use: one that gets no CPU stops slowly, but is not stuck.
            self._stopping_seconds += passed
        if stuck := self._stuck.find(now):
            self._end_worker(connection, [attempt.run_id for attempt in stuck], "a handler keeps the GIL")
        elif self._stuck.is_seized():
            self._end_worker(connection, [], "a thread keeps the GIL")
        elif self._stopping_seconds > self._config.stop_seconds:
            self._end_worker(connection, [], "it did not stop in time")

    def _end_worker(self, connection: psycopg.Connection | None, stuck: Sequence[UUID], why: str) -> None:
        """Kill the worker: its stuck runs have timed out, the others are requeued at once."""
        # Imported only now: the heartbeat must start fast, and a worker is killed about never.
        from noonmark.store.outcomes.events import EventTopics  # noqa: PLC0415
        from noonmark.store.runs import stuck_runs  # noqa: PLC0415
        from noonmark.telemetry.logs import configure_logs, get_logger  # noqa: PLC0415

        config, lease = self._config, self._lease
        timed_out: Sequence[UUID] = []
        try:
            if connection is not None and lease is not None:
                topics = EventTopics(lifecycle=config.lifecycle, dead=config.dead)
                timed_out = stuck_runs.time_out(connection, lease, topics, stuck, shards=config.shards)
                worker_lease.lapse(connection, lease)
        finally:
            os.kill(self._commands.parent, signal.SIGKILL)
            # Logged here: the worker cannot read reports any more.
            configure_logs("worker", config.log_level, config.log_format)
            get_logger().error(
                "worker_killed",
                worker=lease.worker if lease is not None else 0,
                why=why,
                timed_out=[str(run_id) for run_id in timed_out],
            )


def main() -> int:
    """Renew the leases that the worker names until it closes our input or dies."""
    # The worker handles the signals of the terminal, and stops this process last.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    commands = Commands()
    first = None
    while first is None and not commands.is_closed:
        first = commands.next(1.0)
    if first is None:
        return 0
    try:
        _report("ready")
        config = Config(**first)
        commands.signals_fd = config.signals_fd
        Heartbeat(commands, config).run()
    except BrokenPipeError:
        # The worker does not read any more: a second signal ended it while we sent a heartbeat.
        return 0
    return 0


def _report(event: str, **more: str | float) -> None:
    # Without a buffer, which Python would try to empty again at the exit.
    os.write(_OUTPUT, json.dumps({"event": event, **more}).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
