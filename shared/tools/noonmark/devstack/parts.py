"""The parts a supervisor keeps alive: Postgres, Kafka and each service, behind one small interface."""

from __future__ import annotations

import http.client
import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from noonmark.devstack.kafka.server import KafkaServer, start_kafka
from noonmark.devstack.options import ServiceSpec
from noonmark.devstack.postgres.server import PostgresServer, start_postgres
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError, explain_os_error
from noonmark.devstack.processes.patience import CpuTime, Patience, Wait
from noonmark.devstack.processes.ports import LOOPBACK
from noonmark.devstack.processes.processes import Process, ProcessId
from noonmark.devstack.state import ProcessEntry

# Requests to this machine ignore the environment's proxies.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_HTTP_SECONDS = 2.0


class Part(Protocol):
    """Something that can be started, watched, restarted and stopped."""

    @property
    def name(self) -> str:
        """Its name in listings and logs."""

    @property
    def address(self) -> str:
        """Its address, once started."""

    def start(self) -> None:
        """Starts it (again); servers return when they are ready."""

    def is_running(self) -> bool:
        """Whether its process is running."""

    def entry(self) -> ProcessEntry | None:
        """How to find its process; None if it is not a process of this machine."""

    def end_reason(self) -> str:
        """How its process stopped."""

    def stop(self) -> bool:
        """Stops it in order; False if it had to be killed because its grace period was over."""

    def kill(self) -> None:
        """Kills it."""


def _entry(process: Process, number: signal.Signals, grace_seconds: float) -> ProcessEntry | None:
    if processes.has_ended(process):
        return None  # its id may be that of another process by now
    try:
        found = ProcessId.of(process.pid)
    except ProcessLookupError:
        return None
    return ProcessEntry(found.pid, found.started, number.name, grace_seconds)


def _end_reason(process: Process | None) -> str:
    if process is None:
        return "is not running"
    # The group first, while the unreaped leader still keeps its process id from being reused.
    processes.kill(process)
    code = process.returncode
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


_S = TypeVar("_S", PostgresServer, KafkaServer)


class _ServerPart(Generic[_S]):
    """What both embedded servers have in common. They keep their ports across restarts."""

    _stop_signal: signal.Signals
    _grace_seconds: float

    def __init__(self, port: int | None) -> None:
        self._port = port
        self._server: _S | None = None

    def _launch(self) -> _S:
        raise NotImplementedError

    def start(self) -> None:
        """Starts the server and stores its port."""
        if self._server is not None:
            self._server.kill()
        self._server = self._launch()
        self._port = self._server.port

    def is_running(self) -> bool:
        """Whether the server's process is running."""
        return self._server is not None and self._server.is_running()

    def entry(self) -> ProcessEntry | None:
        """The server's process, and how to stop it."""
        if self._server is None:
            return None
        return _entry(self._server.process, self._stop_signal, self._grace_seconds)

    def end_reason(self) -> str:
        """How the server's process stopped."""
        return _end_reason(self._server.process if self._server else None)

    def stop(self) -> bool:
        """Orderly shutdown."""
        return self._server is None or self._server.stop()

    def kill(self) -> None:
        """SIGKILL; the next start recovers."""
        if self._server is not None:
            self._server.kill()


class PostgresPart(_ServerPart[PostgresServer]):
    """The embedded Postgres."""

    name = "postgres"
    # Postgres calls this the fast shutdown.
    _stop_signal = signal.SIGINT
    _grace_seconds = 30.0

    def __init__(self, data_dir: Path, log_file: Path, port: int | None, patience: Patience) -> None:
        """Takes the data folder, the log, the wanted port, and how long a start may take."""
        super().__init__(port)
        self._data_dir, self._log_file, self._patience = data_dir, log_file, patience

    @property
    def address(self) -> str:
        """URL of the database, once started."""
        assert self._server is not None
        return self._server.url

    def _launch(self) -> PostgresServer:
        return start_postgres(
            self._data_dir,
            port=self._port,
            log_file=self._log_file,
            say=self._patience.say,
            patience=self._patience,
        )


class KafkaPart(_ServerPart[KafkaServer]):
    """The embedded broker."""

    name = "kafka"
    _stop_signal = signal.SIGTERM
    _grace_seconds = 20.0

    def __init__(
        self, data_dir: Path, log_file: Path, port: int | None, heap_mb: int, patience: Patience
    ) -> None:
        """Takes the data folder, the log, the wanted port, the heap, and how long a start may take."""
        super().__init__(port)
        self._data_dir, self._log_file = data_dir, log_file
        self._heap_mb, self._patience = heap_mb, patience

    @property
    def address(self) -> str:
        """Bootstrap address, once started."""
        assert self._server is not None
        return self._server.bootstrap

    def _launch(self) -> KafkaServer:
        return start_kafka(
            self._data_dir,
            port=self._port,
            heap_mb=self._heap_mb,
            log_file=self._log_file,
            say=self._patience.say,
            patience=self._patience,
        )


class ServicePart:
    """One service of the product, started by its command line."""

    def __init__(self, spec: ServiceSpec, env: Mapping[str, str], port: int, log_file: Path) -> None:
        """Takes the command, its environment, the port for its metrics and the log."""
        self.spec, self.log_file = spec, log_file
        self._env = {**env, "NOONMARK_METRICS_PORT": str(port)}
        self._base = f"http://{LOOPBACK}:{port}"
        self._process: Process | None = None
        self._log_offset = 0

    @property
    def name(self) -> str:
        """The service's name."""
        return self.spec.name

    @property
    def address(self) -> str:
        """Where its metrics are served."""
        return f"{self._base}/metrics"

    def start(self) -> None:
        """Starts the process, without waiting for it."""
        if self._process is not None:
            processes.kill(self._process)
        processes.rotate(self.log_file)
        self._log_offset = processes.log_size(self.log_file)
        try:
            # SIGKILL, not SIGTERM: the database and the broker die with the supervisor, so a service
            # # cannot drain, and one that waited for them would keep running.
            self._process = processes.spawn(
                self.spec.command, log_file=self.log_file, env=self._env, death_signal=signal.SIGKILL
            )
        except OSError as error:
            raise explain_os_error(error, f"starting {self.name}") from error

    def is_running(self) -> bool:
        """Whether its process is running."""
        return self._process is not None and not processes.has_ended(self._process)

    def readiness(self) -> str:
        """Empty if it is ready, else its own description of what is missing."""
        return http_readiness(self._base + self.spec.ready_path)

    def entry(self) -> ProcessEntry | None:
        """Its process."""
        return (
            None if self._process is None else _entry(self._process, signal.SIGTERM, self.spec.grace_seconds)
        )

    def end_reason(self) -> str:
        """How it stopped."""
        return _end_reason(self._process)

    def stop(self) -> bool:
        """SIGTERM, its grace period, then SIGKILL for it and everything it started."""
        return self._process is None or processes.stop(self._process, grace_seconds=self.spec.grace_seconds)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            processes.kill(self._process)

    def wait(self, patience: Patience) -> Wait:
        """Begins to wait until it is ready. What it logs is no progress: it may repeat what is missing."""
        assert self._process is not None
        return patience.wait_for(self.name, CpuTime(self._process.pid))

    def error(self, what: str) -> DevStackError:
        """An error about this service, with the end of its log."""
        return DevStackError(
            f"{what} The end of its log {self.log_file}:",
            detail=processes.tail_since(self.log_file, self._log_offset) or "(it wrote nothing)",
        )


def await_ready(services: Sequence[ServicePart], patience: Patience) -> None:
    """Waits until all of these are ready.

    Raises:
        DevStackError: One has ended, or is not ready in time; the message has the end of its log.
    """
    waiting = {service: service.wait(patience) for service in services}
    while waiting:
        for service, wait in list(waiting.items()):
            if not service.is_running():
                raise service.error(f"{service.name} {service.end_reason()} while it started.")
            missing = service.readiness()
            if not missing:
                del waiting[service]
                continue
            try:
                wait.check(missing)
            except DevStackError as error:
                raise service.error(str(error)) from None
        time.sleep(0.1)


def _missing(body: bytes) -> str:
    """Return what a process that is not ready says that it waits for, or the beginning of its answer."""
    try:
        missing = json.loads(body)["missing"]
    except (ValueError, KeyError, TypeError):
        shown = body[:200].decode("utf-8", errors="replace").strip()
        return f" {shown}" if shown else ""
    if isinstance(missing, dict):
        missing = [f"{name}: {why}" for name, why in missing.items()]
    return f", it waits for {'; '.join(map(str, missing))}" if missing else ""


def _body_of(answer: urllib.error.HTTPError) -> bytes:
    """Return the beginning of an answer; nothing if its process ended meanwhile."""
    try:
        with answer:
            return answer.read(20_000)
    except (OSError, http.client.HTTPException):
        return b""


def http_readiness(url: str) -> str:
    """Checks a readiness URL: empty for 200, else the reason it is not ready."""
    try:
        with _HTTP.open(url, timeout=_HTTP_SECONDS) as reply:
            return "" if reply.status == 200 else f"it answers {reply.status}"
    except urllib.error.HTTPError as error:
        return f"it answers {error.code}{_missing(_body_of(error))}"
    except (OSError, urllib.error.URLError, http.client.HTTPException) as error:
        # The last one: the process ended in the middle of its answer.
        return f"{url} does not answer ({getattr(error, 'reason', None) or error})"
