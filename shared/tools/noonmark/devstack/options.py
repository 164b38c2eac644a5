"""What a stack consists of, and where its data is."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from noonmark.devstack.processes.patience import LIMIT_SECONDS, STALLED_SECONDS

StackKind = Literal["embedded", "containers"]

DEFAULT_STATE_DIR: Final = Path(".noonmark")
# -P: as with the installed command, the current folder is not on the module path unless --path says so.
CLI: Final = (sys.executable, "-P", "-m", "noonmark.cli")
# Above the 30 s a worker gives its runs to finish, and the API its requests: NOONMARK_DRAIN_SECONDS.
_DRAIN_SECONDS: Final = 40.0
EXAMPLE_HANDLERS: Final = "examples.handlers"


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One service as a command.

    Attributes:
        name: Names the log file and the entry in every listing.
        command: Program and arguments. NOONMARK_METRICS_PORT gives it its port.
        ready_path: Polled there over HTTP until it answers 200.
        grace_seconds: How long it may take to stop after SIGTERM before it is killed.
        serves_api: It also serves the API, at the port in NOONMARK_API_PORT.
    """

    name: str
    command: tuple[str, ...]
    ready_path: str = "/readyz"
    grace_seconds: float = 15.0
    serves_api: bool = False


def default_services(
    *, handlers: Sequence[str] = (), path: str | None = None, cwd: Path | None = None
) -> tuple[ServiceSpec, ...]:
    """Intake, trigger, dispatcher, observer, API and one worker of the pool `default`, in that order.

    Args:
        handlers: Modules with handlers for the worker. If none is given and the current folder
                has `examples/handlers.py`, that module is used.
        path: Folder from which the worker imports them.
        cwd: The current folder.
    """
    folder = cwd or Path.cwd()
    if not handlers and path is None and (folder / "examples" / "handlers.py").exists():
        handlers, path = (EXAMPLE_HANDLERS,), str(folder)
    worker = [*CLI, "worker", "--pool", "default"]
    for module in handlers:
        worker += ["--handlers", module]
    if path is not None:
        worker += ["--path", path]
    plain = tuple(ServiceSpec(name, (*CLI, name)) for name in ("intake", "trigger", "dispatcher", "observer"))
    api = ServiceSpec("api", (*CLI, "api"), grace_seconds=_DRAIN_SECONDS, serves_api=True)
    return (*plain, api, ServiceSpec("worker", tuple(worker), grace_seconds=_DRAIN_SECONDS))


@dataclass(frozen=True, slots=True)
class StackOptions:
    """The options of `up`.

    Attributes:
        state_dir: Data, logs and `stack.json`.
        stack: Where Postgres and Kafka come from: embedded, or containers.
        detach: Return when everything is up, and leave the stack running.
        as_json: Print only one JSON object on stdout.
        postgres_port: A fixed port; by default the last one used, or a free one.
        kafka_port: The same for Kafka.
        api_port: The same for the API.
        heap_mb: Heap of the broker, MB.
        migrate: The command that prepares the database and the topics.
        services: What to start, in order.
        namespace: The namespace of unsigned events on the submission topics, unless
            NOONMARK_BOUND_TOPICS sets it.
        timeout_seconds: How long the start may take as long as there is progress.
        stalled_seconds: How long a part may take without progress.
    """

    state_dir: Path = DEFAULT_STATE_DIR
    stack: StackKind = "embedded"
    detach: bool = False
    as_json: bool = False
    postgres_port: int | None = None
    kafka_port: int | None = None
    api_port: int | None = None
    heap_mb: int = 512
    migrate: tuple[str, ...] = (*CLI, "db", "migrate")
    services: tuple[ServiceSpec, ...] = field(default_factory=default_services)
    namespace: str = "default"
    timeout_seconds: float = LIMIT_SECONDS
    stalled_seconds: float = STALLED_SECONDS

    def to_json(self) -> str:
        """For the command line of a detached supervisor."""
        return json.dumps({**asdict(self), "state_dir": str(self.state_dir)})

    @classmethod
    def from_json(cls, text: str) -> StackOptions:
        """Reads what `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        services = tuple(
            ServiceSpec(**{**service, "command": tuple(service["command"])}) for service in data["services"]
        )
        fixed = {
            "state_dir": Path(data["state_dir"]),
            "migrate": tuple(data["migrate"]),
            "services": services,
        }
        return cls(**{**data, **fixed})
