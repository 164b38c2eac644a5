"""A complete installation for tests: Postgres, Kafka, the API and every service as processes, in a folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from noonmark.client import Client, Publisher
    from noonmark.client.types.runs import Run
    from noonmark.devstack.processes.processes import Process
    from noonmark.devstack.state import StackState

_START_SECONDS: Final = 300.0
"""The first start may have to download Kafka."""

_STOP_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.1


class StackUnavailableError(RuntimeError):
    """No stack can run here; the message contains what is missing."""


@dataclass
class Stack:
    """A running stack.

    Attributes:
        database_url: libpq URL of noonmark's database.
        kafka_bootstrap: address of the broker.
        api_url: URL of the API.
        api_key: key of a platform admin.
        log_dir: folder of the logs.
    """

    database_url: str
    kafka_bootstrap: str
    api_url: str
    api_key: str
    log_dir: Path

    @cached_property
    def client(self) -> Client:
        """A client of the API with all permissions."""
        from noonmark.client import Client  # noqa: PLC0415 - loaded only if it is used

        return Client(self.api_url, self.api_key)

    @cached_property
    def publisher(self) -> Publisher:
        """A publisher of unsigned submissions, for the namespace `default`."""
        from noonmark.client import Publisher  # noqa: PLC0415

        return Publisher(self.kafka_bootstrap)

    def wait_for(self, run_id: object, timeout: float = 30.0) -> Run:
        """Wait until a run has ended, and return it.

        Args:
            run_id: id of the run.
            timeout: time limit in seconds.

        Raises:
            WaitTimeoutError: the run has not ended in this time.
        """
        return self.client.runs.wait(str(run_id), timeout)

    def wait_for_job(self, job_id: object, timeout: float = 30.0) -> Run:
        """Wait until a job has a run that has ended, and return that run.

        Raises:
            WaitTimeoutError: no run has ended in this time.
        """
        from noonmark.client import WaitTimeoutError  # noqa: PLC0415

        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for run in self.client.jobs.runs(str(job_id)):
                return self.client.runs.wait(run["id"], max(0.0, end - time.monotonic()))
            time.sleep(_POLL_SECONDS)
        raise WaitTimeoutError(f"job {job_id} has no run after {timeout:g} s")


@contextmanager
def start_stack(
    folder: Path,
    *,
    handlers: Sequence[str] = (),
    path: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """Run a stack while the block runs; it also stops if this process ends in any way.

    Args:
        folder: empty folder for data and logs.
        handlers: modules with handlers for the worker.
        path: folder from which the worker imports them.
        settings: settings of the services, by environment variable; those of this process are not used.

    Raises:
        StackUnavailableError: Postgres or Kafka cannot be started here.
        RuntimeError: noonmark does not start; the message contains the end of its log.
    """
    try:
        from noonmark.devstack.options import CLI  # noqa: PLC0415
        from noonmark.devstack.processes import processes  # noqa: PLC0415 - optional extra
    except ImportError as error:
        raise StackUnavailableError(
            f"the package {error.name} is not installed: run `pip install 'noonmark[dev-stack]'`"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    log_file = folder / "stack.log"
    command = [*CLI, "dev", "up", "--json", "--state-dir", str(folder)]
    command += [part for module in handlers for part in ("--handlers", module)]
    command += ["--path", path] if path is not None else []
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
    env |= {name: os.environ[name] for name in _TOOLS if name in os.environ} | dict(settings or {})
    process = processes.spawn(command, log_file=log_file, env=env, cwd=folder, death_signal=signal.SIGTERM)
    try:
        found = _await_ready(process, folder, log_file)
        key = Path(found.api_key_file).read_text(encoding="ascii").strip()
        stack = Stack(found.database_url, found.kafka_bootstrap, found.api_url, key, Path(found.log_dir))
        try:
            yield stack
        finally:
            for part in ("client", "publisher"):
                if part in vars(stack):
                    vars(stack)[part].close()
    finally:
        processes.stop(process, grace_seconds=_STOP_SECONDS)


_TOOLS: Final = ("NOONMARK_PG_BIN", "NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS", "NOONMARK_NO_APT")
"""Variables that define where the servers of a stack come from; they are not settings of noonmark."""


def _await_ready(process: Process, folder: Path, log_file: Path) -> StackState:
    """Wait until everything is up.

    Raises:
        StackUnavailableError: Postgres or Kafka did not start.
        RuntimeError: another part did not start.
    """
    from noonmark.devstack import state  # noqa: PLC0415
    from noonmark.devstack.processes import processes  # noqa: PLC0415

    end = time.monotonic() + _START_SECONDS
    has_servers = False
    while time.monotonic() < end and process.poll() is None:
        found = state.load(folder)
        if found is not None:
            has_servers = has_servers or bool(found.kafka_bootstrap)
            if found.phase == "ready":
                return found
        time.sleep(_POLL_SECONDS)
    log_end = processes.tail(log_file)
    if has_servers:
        raise RuntimeError(f"noonmark did not start; the end of {log_file}:\n{log_end}")
    raise StackUnavailableError(f"Postgres or Kafka could not be started; the end of {log_file}:\n{log_end}")
