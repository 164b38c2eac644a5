"""Starts everything in order, keeps it running, and stops it in reverse order."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psycopg

from noonmark.devstack import state
from noonmark.devstack.access import KEY_FILE, ensure_key
from noonmark.devstack.kafka.probe import require_reachable
from noonmark.devstack.leftovers import end_leftovers
from noonmark.devstack.options import StackOptions
from noonmark.devstack.parts import KafkaPart, Part, PostgresPart, ServicePart, await_ready
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError, disk_full, explain_os_error
from noonmark.devstack.processes.interrupts import Interrupts, StopRequested
from noonmark.devstack.processes.patience import Patience
from noonmark.devstack.processes.ports import LOOPBACK, free_port, require_free
from noonmark.devstack.processes.processes import ProcessId
from noonmark.devstack.report import Reporter
from noonmark.devstack.state import ProcessEntry, StackState

DATABASE_VARIABLE: Final = "NOONMARK_DATABASE_URL"
KAFKA_VARIABLE: Final = "NOONMARK_KAFKA_BOOTSTRAP"
_METRICS_VARIABLE = "NOONMARK_METRICS_PORT"
_API_PORT_VARIABLE = "NOONMARK_API_PORT"
_API_HOST_VARIABLE = "NOONMARK_API_HOST"
_HTTP_VARIABLE = "NOONMARK_HTTP_ALLOW_NETWORKS"
_LOOPBACK_NETWORKS = "127.0.0.0/8,::1/128"
_PREFIX_VARIABLE = "NOONMARK_TOPIC_PREFIX"
_PREFIX = "noonmark"
_BOUND_VARIABLE = "NOONMARK_BOUND_TOPICS"
_NEEDED_BYTES = 500_000_000
_POLL_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_HEALTHY_SECONDS = 30.0


@dataclass(slots=True)
class _Watched:
    """A watched part: when it was last started, and its restarts."""

    part: Part
    started_at: float
    failures: int = 0
    restarts: int = 0
    restart_at: float | None = None


class Supervisor:
    """One stack: its parts, its state file and its loop. Runs in the main thread."""

    def __init__(self, options: StackOptions, reporter: Reporter) -> None:
        """Takes what to run and the reporter."""
        self._options = options
        self._reporter = reporter
        self._dir = options.state_dir.resolve()
        self._logs = self._dir / "logs"
        self._watched: list[_Watched] = []
        self._interrupts = Interrupts()
        self._patience = Patience(
            options.timeout_seconds, stalled_seconds=options.stalled_seconds, say=reporter.line
        )
        own = ProcessId.of(os.getpid())
        self._state = StackState(ProcessEntry(own.pid, own.started), log_dir=str(self._logs))

    def run(self, when_up: Callable[[StackState], None]) -> int:
        """Runs the stack until it is asked to stop; `when_up` is called once when everything is ready.

        The caller holds the lock on the folder (`state.hold`).

        Returns:
            0 after an orderly stop, 1 if the stack could not be started, 130 if the start was interrupted.
        """
        code = 130
        with self._interrupts.installed():
            try:
                with self._interrupts.welcome():
                    self._start_all()
                    when_up(self._state)
                    code = 0
                    self._watch()
            except StopRequested:
                self._interrupts.forget()
            except DevStackError as error:
                self._reporter.fail(error)
                code = 1
            except OSError as error:
                self._reporter.fail(explain_os_error(error, "starting the stack"))
                code = 1
            finally:
                self._stop_all()
        return code

    # -- start ------------------------------------------------------------------------------------

    def _start_all(self) -> None:
        self._prepare_folder()
        self._save()
        database_url, bootstrap = self._start_servers()
        self._state.database_url, self._state.kafka_bootstrap = database_url, bootstrap
        env = self._environment(database_url, bootstrap)
        self._migrate(env)
        self._open_api(env)
        services = self._start_services(env)
        self._wait_ready(services)
        self._state.phase = "ready"
        self._save()

    def _prepare_folder(self) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(self._dir).free < _NEEDED_BYTES:
            raise disk_full(f"or nearly so where {self._dir} is")
        left = state.load(self._dir)
        if left is not None:
            ended = end_leftovers(left)
            if ended:
                self._reporter.warn(
                    f"stopped what an earlier supervisor had left running: {', '.join(ended)}"
                )

    def _start_servers(self) -> tuple[str, str]:
        """Starts Postgres and Kafka in containers or embedded, unless the environment names servers."""
        database_url, bootstrap = os.environ.get(DATABASE_VARIABLE), os.environ.get(KAFKA_VARIABLE)
        if database_url:
            _require_database(database_url)
            self._reporter.line(f"postgres: using the one given by {DATABASE_VARIABLE}")
        if bootstrap:
            require_reachable(bootstrap)
            self._reporter.line(f"kafka: using the one given by {KAFKA_VARIABLE}")
        return database_url or self._start_postgres(), bootstrap or self._start_kafka()

    def _start_postgres(self) -> str:
        wanted = self._options.postgres_port
        if self._options.stack == "containers":
            from noonmark.devstack.containers import PostgresContainerPart  # noqa: PLC0415 - optional extra

            return self._start_server(PostgresContainerPart(wanted, self._patience))
        port, log_file = wanted or self._port("postgres"), self._log("postgres")
        return self._start_server(PostgresPart(self._dir / "postgres", log_file, port, self._patience))

    def _start_kafka(self) -> str:
        wanted = self._options.kafka_port
        if self._options.stack == "containers":
            from noonmark.devstack.containers import KafkaContainerPart  # noqa: PLC0415 - optional extra

            return self._start_server(KafkaContainerPart(wanted, self._patience))
        port, log_file = wanted or self._port("kafka"), self._log("kafka")
        heap_mb = self._options.heap_mb
        return self._start_server(KafkaPart(self._dir / "kafka", log_file, port, heap_mb, self._patience))

    def _start_server(self, part: Part) -> str:
        with self._reporter.step(part.name, "starting") as result:
            self._watched.append(_Watched(part, time.monotonic()))
            part.start()
            self._save()
            result.append("ready")
        return part.address

    def _migrate(self, env: dict[str, str]) -> None:
        with self._reporter.step("database", "migrating, creating topics") as result:
            log_file = self._log("migrate")
            code = processes.run(
                self._options.migrate, log_file=log_file, name="database", patience=self._patience, env=env
            )
            if code != 0:
                command = " ".join(self._options.migrate)
                raise DevStackError(
                    f"The database could not be prepared: `{command}` exited with code {code}; "
                    f"the end of its log {log_file}:",
                    detail=processes.tail(log_file),
                )
            result.append("migrated")

    def _open_api(self, env: dict[str, str]) -> None:
        """Chooses a port for the API and creates a key for its caller."""
        if not any(spec.serves_api for spec in self._options.services):
            return
        wanted = self._options.api_port
        port = require_free(wanted, name="the API", option="--api-port") if wanted else self._port("api-http")
        env |= {_API_PORT_VARIABLE: str(port), _API_HOST_VARIABLE: LOOPBACK}
        key_file = self._dir / KEY_FILE
        ensure_key(self._state.database_url, key_file)
        self._state.api_url, self._state.api_key_file = f"http://{LOOPBACK}:{port}", str(key_file)
        self._save()

    def _start_services(self, env: dict[str, str]) -> list[ServicePart]:
        services: list[ServicePart] = []
        for spec in self._options.services:
            service = ServicePart(spec, env, self._port(spec.name), self._log(spec.name))
            self._watched.append(_Watched(service, time.monotonic()))
            service.start()
            services.append(service)
            self._state.metrics[spec.name] = service.address
            self._save()
        return services

    def _wait_ready(self, services: list[ServicePart]) -> None:
        if not services:
            return
        names = ", ".join(part.name for part in services)
        with self._reporter.step("services", f"starting {names}") as result:
            await_ready(services, self._patience)
            result.append("ready")

    def _environment(self, database_url: str, bootstrap: str) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name != _METRICS_VARIABLE}
        # The examples call targets on this machine, which HTTP jobs may not call by default.
        env.setdefault(_HTTP_VARIABLE, _LOOPBACK_NETWORKS)
        # Only in this stack, events need no signature, so that a plain Kafka client is enough.
        prefix, place = env.get(_PREFIX_VARIABLE, _PREFIX), self._options.namespace
        env.setdefault(_BOUND_VARIABLE, f"{prefix}.submissions={place},{prefix}.submissions.bulk={place}")
        env |= {DATABASE_VARIABLE: database_url, KAFKA_VARIABLE: bootstrap, "PYTHONUNBUFFERED": "1"}
        env[state.STACK_ID_VARIABLE] = self._state.stack_id
        return env

    def _log(self, name: str) -> Path:
        log_file = self._logs / f"{name}.log"
        processes.rotate(log_file)
        return log_file

    def _port(self, name: str) -> int:
        """The port that this part had last time, if it is free, so that addresses stay the same."""
        memory = self._dir / "ports.json"
        try:
            known: dict[str, int] = json.loads(memory.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            known = {}
        known[name] = free_port(known.get(name))
        memory.write_text(json.dumps(known), encoding="utf-8")
        return known[name]

    # -- watch ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        for watched in self._watched:
            watched.started_at = time.monotonic()
        while True:
            for watched in self._watched:
                self._check_part(watched)
            time.sleep(_POLL_SECONDS)

    def _check_part(self, watched: _Watched) -> None:
        part, now = watched.part, time.monotonic()
        if watched.restart_at is None:
            if part.is_running():
                return
            if now - watched.started_at > _HEALTHY_SECONDS:
                watched.failures = 0
            wait_seconds = min(0.5 * 2**watched.failures, _LONGEST_WAIT_SECONDS)
            watched.failures += 1
            watched.restart_at = now + wait_seconds
            reason = part.end_reason()
            self._reporter.warn(f"{part.name} {reason}; restarting it in {wait_seconds:.1f} s")
            self._note_restart(part.name, reason)
        elif now >= watched.restart_at:
            watched.restart_at = None
            watched.started_at = now
            watched.restarts += 1
            self._patience.renew()
            try:
                part.start()
                self._reporter.line(f"{part.name} restarted")
                self._state.restarting.pop(part.name, None)
                self._save()
            except (DevStackError, OSError) as error:
                self._reporter.warn(f"{part.name} could not be restarted: {error}")

    def _note_restart(self, name: str, reason: str) -> None:
        """Records for `status` that a part is being restarted, which takes seconds for a server."""
        self._state.restarting[name] = reason
        # A full disk does not keep the part from being restarted.
        with contextlib.suppress(OSError):
            self._save()

    # -- stop -------------------------------------------------------------------------------------

    def _stop_all(self) -> None:
        """Stops the parts, last started first; a second signal kills what is left."""
        self._state.phase = "stopping"
        with contextlib.suppress(OSError):
            self._save()
        hurry = False
        for watched in reversed(self._watched):
            part = watched.part
            try:
                with self._interrupts.welcome():
                    if part.is_running() and not hurry:
                        with self._reporter.step(part.name, "stopping") as result:
                            ended = part.stop()
                            result.append("stopped" if ended else "did not stop when asked, so it was killed")
            except StopRequested:
                self._reporter.warn("second request to stop: killing what is still running")
                hurry = True
                self._interrupts.forget()
            # Also after an orderly stop: it reaps the child and kills its process group.
            part.kill()
        state.remove(self._dir)

    def _save(self) -> None:
        entries: dict[str, ProcessEntry] = {}
        for watched in self._watched:
            entry = watched.part.entry()
            if entry is not None:
                entries[watched.part.name] = replace(entry, restarts=watched.restarts)
        self._state.processes = entries
        self._state.containers = {
            watched.part.name: container_id
            for watched in self._watched
            if (container_id := getattr(watched.part, "container_id", None))
        }
        state.save(self._dir, self._state)


def _require_database(url: str) -> None:
    """Checks a Postgres server that the environment names."""
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            connection.execute("select 1")
    except psycopg.Error as error:
        raise DevStackError(
            f"No Postgres answers at the address given by {DATABASE_VARIABLE}: {str(error).strip()}.",
            remedy="Start it, correct the address, or unset the variable so that the stack starts its own.",
        ) from error
