"""The state of a running stack on disk, so that other commands find it and stop exactly what it started."""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.processes import ProcessId

# Without the prefix of the settings, which report every variable that they do not know.
STACK_ID_VARIABLE: Final = "_NOONMARK_DEV_STACK"
Phase = Literal["starting", "ready", "stopping"]
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process of the stack.

    Attributes:
        pid: Process id.
        started: Its start time, see `ProcessId`.
        stop_signal: Name of the signal that stops it in order.
        grace_seconds: How long it may take to stop.
        restarts: How often the supervisor restarted it.
    """

    pid: int
    started: str
    stop_signal: str = "SIGTERM"
    grace_seconds: float = 20.0
    restarts: int = 0

    @property
    def id(self) -> ProcessId:
        """Its unique id."""
        return ProcessId(self.pid, self.started)


@dataclass(slots=True)
class StackState:
    """Contents of `stack.json`.

    Attributes:
        supervisor: The supervisor itself.
        phase: starting, ready or stopping.
        database_url: Postgres, password included (the file is readable by its owner only).
        kafka_bootstrap: Kafka.
        api_url: The API; empty if the stack has none.
        api_key_file: File with a key for it, readable by its owner only.
        metrics: URL of each service's metrics.
        processes: Everything started, in order of the start.
        containers: Docker container ids by name, if the stack uses containers.
        log_dir: Folder of the logs.
        restarting: Parts that have stopped and are being restarted, and how they stopped.
        stack_id: All processes of the services, also children of children, have it in their environment.
        started_at: Unix time.
    """

    supervisor: ProcessEntry
    phase: Phase = "starting"
    database_url: str = ""
    kafka_bootstrap: str = ""
    api_url: str = ""
    api_key_file: str = ""
    metrics: dict[str, str] = field(default_factory=dict)
    processes: dict[str, ProcessEntry] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)
    restarting: dict[str, str] = field(default_factory=dict)
    log_dir: str = ""
    stack_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started_at: float = field(default_factory=time.time)

    def addresses(self, state_dir: Path) -> dict[str, Any]:
        """The output of `--json`, for scripts."""
        pids = {"supervisor": self.supervisor.pid}
        return {
            "database_url": self.database_url,
            "kafka_bootstrap": self.kafka_bootstrap,
            "api_url": self.api_url,
            "api_key_file": self.api_key_file,
            "metrics": self.metrics,
            "state_dir": str(state_dir.resolve()),
            "log_dir": self.log_dir,
            "pids": pids | {name: entry.pid for name, entry in self.processes.items()},
        }


def state_file(state_dir: Path) -> Path:
    """Where the addresses of a stack are kept, readable by its owner only."""
    return state_dir / "stack.json"


def write_private(path: Path, text: str) -> None:
    """Replaces a file in one step; only its owner may read it."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as output:
        output.write(text)
    fresh.replace(path)


def save(state_dir: Path, state: StackState) -> None:
    """Writes `stack.json`."""
    write_private(state_file(state_dir), json.dumps(asdict(state), indent=2) + "\n")


def load(state_dir: Path) -> StackState | None:
    """Reads `stack.json`; None when there is none.

    Raises:
        DevStackError: Another version wrote it, or a person edited it.
    """
    path = state_file(state_dir)
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        data["supervisor"] = ProcessEntry(**data["supervisor"])
        data["processes"] = {name: ProcessEntry(**entry) for name, entry in data["processes"].items()}
        return StackState(**data)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise DevStackError(
            f"{path} cannot be read ({error}); perhaps another version of noonmark wrote it.",
            remedy="Stop it with the version that started it, or stop what the file lists and remove it.",
        ) from error


def remove(state_dir: Path) -> None:
    """Removes `stack.json`: nothing runs any more."""
    state_file(state_dir).unlink(missing_ok=True)


@contextmanager
def hold(state_dir: Path) -> Iterator[bool]:
    """Locks the folder for one supervisor; yields False if another one has it.

    The operating system releases the lock when its holder dies, however it dies.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "lock").open("a", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def is_held(state_dir: Path) -> bool:
    """Whether a supervisor runs on the folder."""
    if not (state_dir / "lock").exists():
        return False
    with hold(state_dir) as free:
        return not free


def running(state_dir: Path) -> StackState | None:
    """The state of a stack whose supervisor is running, else None.

    A supervisor that has just started gets a moment to write its file.
    """
    if not is_held(state_dir):
        return None
    processes.wait_until(lambda: _owner_lives(load(state_dir)), timeout_seconds=_POLL_SECONDS)
    state = load(state_dir)
    return state if _owner_lives(state) else None


def _owner_lives(state: StackState | None) -> bool:
    return state is not None and state.supervisor.id.is_running()
