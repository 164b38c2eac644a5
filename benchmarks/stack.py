"""The stack under test: its own Postgres, Kafka and one process of each service, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import psutil
import psycopg

from benchmarks.handlers import STAMPS_VARIABLE
from benchmarks.meter import Meter
from noonmark.core.states import Lane
from noonmark.devstack.kafka.server import KafkaServer, start_kafka
from noonmark.devstack.options import CLI, ServiceSpec, default_services
from noonmark.devstack.parts import ServicePart, await_ready
from noonmark.devstack.postgres.server import PostgresServer, start_postgres
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.patience import Patience
from noonmark.devstack.processes.ports import free_port
from noonmark.kafka.topics import Topics

ROOT: Final = Path(__file__).resolve().parent.parent
HANDLERS: Final = "benchmarks.handlers"
POOL: Final = "default"

_KEPT: Final = frozenset({"NOONMARK_PG_BIN", "NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS", "NOONMARK_NO_APT"})
_SECOND: Final = ".2"
_IMMEDIATE_SECONDS: Final = 15.0
_HTTP: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))

Say = Callable[[str], None]


class BenchmarkError(RuntimeError):
    """A part of the benchmark cannot be measured; the message says why."""


class Stack:
    """Everything that is started, and everything that is ended.

    Args:
        say: receives one line about each step.
        settings: settings of the services that differ from the shipped defaults, by their variables' names.
        folder: where the data goes; a new folder in the system's temporary one where None.
    """

    def __init__(self, say: Say, settings: Mapping[str, str], folder: Path | None = None) -> None:
        self._say = say
        self._settings = dict(settings)
        self._parent = folder
        self._cleanup = contextlib.ExitStack()
        self._services: dict[str, ServicePart] = {}
        self._postgres: PostgresServer | None = None
        self._kafka: KafkaServer | None = None
        self.folder = Path()
        self.topics = Topics()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process at once and remove the data."""
        self._cleanup.close()

    @property
    def url(self) -> str:
        """Of noonmark's database."""
        assert self._postgres is not None
        return self._postgres.url

    @property
    def bootstrap(self) -> str:
        """Of the broker."""
        assert self._kafka is not None
        return self._kafka.bootstrap

    @property
    def stamps(self) -> Path:
        """What the stamping handler writes."""
        return self.folder / "stamps"

    def connect(self) -> psycopg.Connection:
        """Open a session of the benchmark's own, in autocommit."""
        return psycopg.connect(
            self.url, autocommit=True, application_name="benchmark", options="-c TimeZone=UTC"
        )

    @contextlib.contextmanager
    def other_database(self, name: str) -> Iterator[str]:
        """Create a database next to noonmark's, and drop it afterwards."""
        assert self._postgres is not None
        with self.connect() as connection:
            connection.execute(f'create database "{name}"'.encode())
        try:
            yield self._postgres.url_of(name)
        finally:
            with self.connect() as connection:
                connection.execute(f'drop database "{name}" with (force)'.encode())

    def meter(self, connection: psycopg.Connection) -> Meter:
        """Make a meter of all that runs now."""
        topics = self.topics
        counted = [
            topics.submissions,
            topics.submissions_bulk,
            topics.lifecycle,
            topics.rejections,
            topics.dead,
        ]
        counted += [topics.runs(POOL, lane) for lane in Lane]
        return Meter(connection, self.bootstrap, self.pids(), counted)

    def pids(self) -> dict[str, int]:
        """Process ids by kind; of a second process of a service by `<service>.2`."""
        assert self._postgres is not None
        assert self._kafka is not None
        found = {"postgres": self._postgres.pid, "kafka": self._kafka.pid}
        for name, part in self._services.items():
            entry = part.entry()
            if entry is not None:
                found[name] = entry.pid
        return found

    # -- services ---------------------------------------------------------------------------------

    @property
    def services(self) -> Mapping[str, ServicePart]:
        """The services that were started, by name."""
        return self._services

    def start_services(self) -> None:
        """Start one process of each service, as `noonmark dev up` does, and wait until each is ready."""
        self._say("starting intake, trigger, dispatcher and worker")
        self._start_services(default_services(handlers=[HANDLERS], path=str(ROOT)))

    def start_second(self, services: Sequence[str]) -> None:
        """Start a second process of these services, and wait until each is ready."""
        self._say(f"starting a second {', '.join(services)}")
        specs = default_services(handlers=[HANDLERS], path=str(ROOT))
        self._start_services([replace(one, name=one.name + _SECOND) for one in specs if one.name in services])

    def stop_second(self) -> None:
        """End the second processes in order."""
        for name in [name for name in self._services if name.endswith(_SECOND)]:
            self._services.pop(name).stop()

    def _start_services(self, specs: Iterable[ServiceSpec]) -> None:
        env = {**self.environment(), STAMPS_VARIABLE: str(self.stamps)}
        for spec in specs:
            part = ServicePart(spec, env, free_port(), self.folder / f"{spec.name}.log")
            self._services[spec.name] = part
            self._cleanup.callback(part.kill)
            part.start()
        await_ready(list(self._services.values()), Patience(say=self._say))

    def stop_services(self) -> None:
        """End the services in order."""
        for part in reversed(self._services.values()):
            part.stop()
        self._services.clear()

    def require_services(self) -> None:
        """Check that every service still runs.

        Raises:
            DevStackError: one does not; the message holds the end of its log.
        """
        for part in self._services.values():
            if not part.is_running():
                raise part.error(f"{part.name} {part.end_reason()}.")

    def counter(self, service: str, name: str, **labels: str) -> float:
        """Add up a counter of a service over its processes and all its labels that are not named."""
        total = 0.0
        for part in self._services.values():
            if part.name.partition(".")[0] == service:
                # To write all metrics would cost the service a tenth of its CPU in a burst.
                with _HTTP.open(f"{part.address}?name[]={name}", timeout=5) as reply:
                    total += sum_of_counter(reply.read().decode(), name, **labels)
        return total

    @contextlib.contextmanager
    def stopped(self, service: str) -> Iterator[None]:
        """Hold a service by SIGSTOP meanwhile; only for as long as its sessions allow."""
        process = psutil.Process(self.pids()[service])
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    # -- start ------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="noonmark-bench-", dir=self._parent))
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        # Postgres runs as another user where this one is root.
        self.folder.chmod(0o711)
        self._say(f"starting Postgres and Kafka in {self.folder}")
        postgres = start_postgres(self.folder / "postgres")
        self._postgres = postgres
        self._cleanup.callback(_stop_now, postgres)
        self._kafka = start_kafka(self.folder / "kafka", say=self._say)
        self._cleanup.callback(self._kafka.kill)
        self._say("migrating, creating topics")
        log_file = self.folder / "migrate.log"
        code = processes.run(
            [*CLI, "db", "migrate"],
            log_file=log_file,
            name="database",
            patience=Patience(say=self._say),
            env=self.environment(),
        )
        if code != 0:
            raise BenchmarkError(f"`noonmark db migrate` ended with code {code}:\n{processes.tail(log_file)}")

    def environment(self) -> dict[str, str]:
        """Return the environment of services: of settings only addresses and what was asked for."""
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("NOONMARK_") or name in _KEPT
        }
        return {
            **env,
            **self._settings,
            "NOONMARK_DATABASE_URL": self.url,
            "NOONMARK_KAFKA_BOOTSTRAP": self.bootstrap,
            "NOONMARK_BOUND_TOPICS": f"{self.topics.submissions}=*,{self.topics.submissions_bulk}=*",
            "PYTHONUNBUFFERED": "1",
        }


def _stop_now(server: PostgresServer) -> None:
    # An immediate shutdown: no checkpoint of data that is thrown away, and no shared memory left behind.
    processes.stop(server.process, number=signal.SIGQUIT, grace_seconds=_IMMEDIATE_SECONDS)


def sum_of_counter(exposition: str, name: str, **labels: str) -> float:
    """Add up the samples of a counter in the Prometheus text format that have these labels."""
    sample = re.compile(rf"^{re.escape(name)}(?:\{{([^}}]*)\}})? (\S+)", re.MULTILINE)
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(
        float(value) for given, value in sample.findall(exposition) if all(one in given for one in wanted)
    )


def wait_for(
    reached: Callable[[], float],
    target: float,
    *,
    timeout_seconds: float,
    stall_seconds: float = 20.0,
    interval_seconds: float = 0.25,
) -> bool:
    """Poll a rising count until it reaches the target; False when time is up or it has stood still."""
    now = time.monotonic()
    give_up_at, stalled_at, best = now + timeout_seconds, now + stall_seconds, -1.0
    while (count := reached()) < target:
        now = time.monotonic()
        if count > best:
            best, stalled_at = count, now + stall_seconds
        if now > min(give_up_at, stalled_at):
            return False
        time.sleep(interval_seconds)
    return True


def states_of(connection: psycopg.Connection, namespace: str) -> dict[str, int]:
    """Count the runs of a namespace by state."""
    rows: Sequence[tuple[str, int]] = connection.execute(
        "select state, count(*) from runs where namespace = %s group by state", [namespace]
    ).fetchall()
    return dict(rows)


def wait_for_empty_outbox(connection: psycopg.Connection, *, timeout_seconds: float = 15.0) -> bool:
    """Wait until everything was relayed."""

    def left() -> float:
        row = connection.execute("select exists (select from outbox)").fetchone()
        return 0.0 if row and row[0] else 1.0

    return wait_for(left, 1, timeout_seconds=timeout_seconds, interval_seconds=0.05)
