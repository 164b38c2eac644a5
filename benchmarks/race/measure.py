"""One rival, measured on the servers of a stack: the burst, and the open loops."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import psycopg

from benchmarks.bare.database import connect
from benchmarks.figures import OtherBurst, OtherWindow, Spread, total
from benchmarks.handlers import STAMP
from benchmarks.load import at_once, database_now, evenly, sleep_until
from benchmarks.meter import Meter
from benchmarks.open_loop import stamped_lateness
from benchmarks.race.rivals import Rival, environment_of
from benchmarks.stack import BenchmarkError, wait_for
from noonmark.devstack.processes import processes

DATABASE: Final = "rival"
_LEAST_ROWS_PER_S: Final = 10_000
_LEAD_SECONDS: Final = 3.0
_TRIES: Final = 3
_PROGRAM_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 10.0
_READING_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.2
_FLUSHED_SECONDS: Final = 5.0
_DRAIN_SECONDS: Final = 60.0
_SLOWEST_RUNS_PER_S: Final = 500


class Servers(Protocol):
    """What a rival needs of a stack: databases, and what its CPU is read from.

    Attributes:
        bootstrap: the broker, which a rival does not use.
        folder: for logs and for the instants of handlers.
    """

    @property
    def bootstrap(self) -> str: ...  # noqa: D102

    @property
    def folder(self) -> Path: ...  # noqa: D102

    def pids(self) -> dict[str, int]:
        """Process ids by kind; the one of `postgres` is used."""

    def other_database(self, name: str) -> contextlib.AbstractContextManager[str]:
        """Create a database, and drop it afterwards."""


@dataclass(slots=True)
class _Loaded:
    """A rival with its jobs in a database of their own.

    Attributes:
        due: the first due instant.
        workers: processes that run the jobs.
    """

    rival: Rival
    command: Sequence[str]
    environment: dict[str, str]
    connection: psycopg.Connection
    folder: Path
    size: int
    due: datetime
    workers: list[processes.Process] = field(default_factory=list)

    @property
    def stamps(self) -> Path:
        return self.folder / "rival-stamps"

    @property
    def log(self) -> Path:
        return self.folder / "rival.log"

    def finished(self) -> int:
        """Count the outcomes in the rival's own tables.

        Raises:
            BenchmarkError: a worker has ended.
        """
        if any(processes.has_ended(worker) for worker in self.workers):
            raise BenchmarkError(f"a worker of {self.rival.name} ended:\n{processes.tail(self.log)}")
        row = self.connection.execute(self.rival.finished, {"size": self.size}).fetchone()
        assert row is not None
        return int(row[0])

    def last_finished_seconds(self) -> float | None:
        """Return the time from the due instant to the last outcome, if the rival keeps it."""
        if self.rival.last_finished is None:
            return None
        row = self.connection.execute(self.rival.last_finished).fetchone()
        return row[0] - self.due.timestamp() if row and row[0] is not None else None

    def start_workers(self, *, stamped: bool) -> None:
        environment = {**self.environment, **({"RACE_STAMPS": str(self.stamps)} if stamped else {})}
        for _ in range(self.rival.workers):
            command = [*self.command, "work"]
            worker = processes.spawn(command, log_file=self.log, env=environment, cwd=self.folder)
            self.workers.append(worker)

    def stop_workers(self) -> None:
        for worker in self.workers:
            processes.stop(worker, grace_seconds=_STOP_SECONDS)

    def merged_stamps(self) -> Path:
        """Put what the worker processes wrote into one file, and return it."""
        parts = sorted(self.folder.glob(f"{self.stamps.name}.*"))
        self.stamps.write_bytes(b"".join(part.read_bytes() for part in parts))
        return self.stamps

    def stamp_count(self) -> int:
        parts = self.folder.glob(f"{self.stamps.name}.*")
        return sum(part.stat().st_size for part in parts) // STAMP.size


def measure_rival_burst(servers: Servers, rival: Rival, installed: Path, size: int) -> OtherBurst:
    """Load jobs that are due at one instant, and wait until the rival's tables show the last outcome.

    Args:
        servers: their Postgres is used; no service should run meanwhile.
        rival: what is measured.
        installed: the folder in which it is installed.
        size: number of jobs.

    Raises:
        BenchmarkError: loading took too long, or one of its processes failed.
    """
    with _loaded(servers, rival, installed, at_once(size), stamped=False) as loaded:
        meter = _meter(servers, loaded)
        sleep_until(loaded.connection, loaded.due, early_seconds=_READING_SECONDS)
        before = meter.read()
        sleep_until(loaded.connection, loaded.due)
        began = time.monotonic()
        wait_for(
            loaded.finished,
            size,
            timeout_seconds=60 + size / _SLOWEST_RUNS_PER_S,
            interval_seconds=_POLL_SECONDS,
        )
        waited_seconds = time.monotonic() - began
        spent = meter.spent(before)
        finished = loaded.finished()
        seconds = loaded.last_finished_seconds() or waited_seconds
        cpu = spent.cpu_us(size)
        return OtherBurst(
            runs=size,
            seconds=round(seconds, 3),
            runs_per_s=round(finished / seconds, 1),
            cpu_us_per_run=round(total(cpu, _kinds(loaded)), 2),
            cpu_us_by_process=cpu,
            wal_bytes_per_run=round(spent.wal / size, 1),
            other_cpu_percent=spent.other_percent(),
            lost=size - finished,
            checkpoint=spent.checkpoint,
        )


def measure_rival_open_loop(
    servers: Servers, rival: Rival, installed: Path, *, rate: float, seconds: float
) -> OtherWindow:
    """Load jobs that are due at evenly spaced instants, and measure how late each handler begins.

    Raises:
        BenchmarkError: loading took too long, or one of its processes failed.
    """
    offsets = evenly(rate, seconds)
    with _loaded(servers, rival, installed, offsets, stamped=True) as loaded:
        meter = _meter(servers, loaded)
        sleep_until(loaded.connection, loaded.due, early_seconds=_READING_SECONDS)
        before = meter.read()
        time.sleep(seconds + _READING_SECONDS)
        spent = meter.spent(before)
        wait_for(loaded.finished, len(offsets), timeout_seconds=_DRAIN_SECONDS)
        wait_for(
            loaded.stamp_count, len(offsets), timeout_seconds=_FLUSHED_SECONDS, stall_seconds=_FLUSHED_SECONDS
        )
        late = stamped_lateness(loaded.merged_stamps(), loaded.due, seconds)
        return OtherWindow(
            rate=rate,
            seconds=seconds,
            runs=len(offsets),
            lateness_ms=None,
            handler_lateness_ms=Spread.of_seconds(late),
            cpu_percent_all=round(100 * total(spent.cpu, _kinds(loaded)) / spent.seconds, 2),
            other_cpu_percent=spent.other_percent(),
            not_started=max(0, len(offsets) - len(late)),
        )


@contextlib.contextmanager
def _loaded(
    servers: Servers, rival: Rival, installed: Path, offsets: Sequence[float], *, stamped: bool
) -> Iterator[_Loaded]:
    """Load jobs and start the workers in time; a try that was too late is repeated with a longer lead."""
    lead_seconds = _LEAD_SECONDS + rival.warm_seconds + len(offsets) / _LEAST_ROWS_PER_S
    for _ in range(_TRIES):
        with servers.other_database(DATABASE) as url, connect(url, "benchmark") as connection:
            loaded = _load(servers, rival, installed, connection, url, offsets, lead_seconds)
            left = (loaded.due - database_now(connection)).total_seconds()
            if left >= rival.warm_seconds:
                try:
                    loaded.start_workers(stamped=stamped)
                    yield loaded
                finally:
                    loaded.stop_workers()
                    for part in loaded.folder.glob(f"{loaded.stamps.name}*"):
                        part.unlink()
                return
        lead_seconds *= 2
    raise BenchmarkError(f"{rival.name} did not load {len(offsets)} jobs within {lead_seconds / 2:.0f} s")


def _load(
    servers: Servers,
    rival: Rival,
    installed: Path,
    connection: psycopg.Connection,
    url: str,
    offsets: Sequence[float],
    lead_seconds: float,
) -> _Loaded:
    environment = {**os.environ, **environment_of(url)}
    command = rival.command(installed.absolute())
    log = servers.folder / "rival.log"
    _run([*command, "prepare"], environment, log)
    due = database_now(connection) + timedelta(seconds=lead_seconds)
    first = due.timestamp()
    lines = "".join(f"{first + offset:.6f}\n" for offset in offsets)
    _run([*command, "load"], environment, log, lines)
    connection.execute("analyze")
    return _Loaded(rival, command, environment, connection, servers.folder, len(offsets), due)


def _run(command: Sequence[str], environment: dict[str, str], log: Path, lines: str = "") -> None:
    with log.open("ab") as written:
        done = subprocess.run(
            command,
            env=environment,
            cwd=log.parent,
            input=lines.encode(),
            stdout=written,
            stderr=written,
            timeout=_PROGRAM_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        raise BenchmarkError(f"`{command[-1]}` exited with {done.returncode}:\n{processes.tail(log)}")


def _meter(servers: Servers, loaded: _Loaded) -> Meter:
    workers = {f"worker-{number}": worker.pid for number, worker in enumerate(loaded.workers, start=1)}
    return Meter(
        loaded.connection, servers.bootstrap, {"postgres": servers.pids()["postgres"], **workers}, topics=[]
    )


def _kinds(loaded: _Loaded) -> list[str]:
    return ["postgres", *(f"worker-{number}" for number in range(1, len(loaded.workers) + 1))]
