"""Postgres and Kafka as containers, if a Docker engine answers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from noonmark.devstack.kafka.config import DEFAULT_SETTINGS as KAFKA_SETTINGS
from noonmark.devstack.kafka.jars import kafka_version
from noonmark.devstack.kafka.probe import wait_ready
from noonmark.devstack.postgres.server import DATABASE, USER, wait_for_query
from noonmark.devstack.postgres.server import DEFAULT_SETTINGS as POSTGRES_SETTINGS
from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.patience import Patience, Wait
from noonmark.devstack.processes.ports import LOOPBACK, free_port, require_free
from noonmark.devstack.state import ProcessEntry

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

POSTGRES_IMAGE: Final = "postgres:18"
_PASSWORD = "noonmark"  # noqa: S105 - published on the loopback only, removed with the container
_INSIDE_KAFKA = 9092
_INSIDE_POSTGRES = 5432


def require_engine() -> None:
    """Checks that containers can be started.

    Raises:
        DevStackError: The package is missing, or no engine answers.
    """
    try:
        import docker  # type: ignore[import-untyped] # noqa: PLC0415 - optional extra
        import testcontainers  # noqa: F401, PLC0415 - optional extra
    except ImportError as error:
        raise DevStackError(
            f"`--stack containers` needs the package `{error.name}`, which is not installed.",
            remedy="Run `pip install 'noonmark[dev-stack]'`, or leave the option out.",
        ) from error
    try:
        client = docker.from_env()
        client.ping()
        client.close()
    except docker.errors.DockerException as error:
        raise DevStackError(
            f"`--stack containers` needs a Docker engine, but none answers: {error}.",
            remedy="Start the engine (or set DOCKER_HOST), or leave the option out: "
            "the embedded stack needs no containers.",
        ) from error


class _ContainerPart:
    """What both containers have in common."""

    name: str
    _inside_port: int

    def __init__(self, port: int | None, patience: Patience) -> None:
        """Takes the wanted port on the loopback, and how long a start may take."""
        self._wanted, self._patience = port, patience
        self._port = 0
        self._container: DockerContainer | None = None
        self._is_removed = False

    @property
    def container_id(self) -> str | None:
        """Id of the container, so that another command can remove it."""
        wrapped = None if self._container is None else self._container.get_wrapped_container()
        return None if wrapped is None else str(wrapped.id)

    def start(self) -> None:
        """Starts the container, with its data if it ran before, and waits until it is ready."""
        if self._is_removed:
            raise DevStackError(
                f"Its container was removed by hand, and the data of {self.name} with it.",
                remedy="Run `noonmark dev down`, then `noonmark dev up`.",
            )
        require_engine()
        try:
            if self._container is None:
                self._create()
            else:
                self._container.get_wrapped_container().restart()
        except DevStackError:
            raise
        except Exception as error:
            # The Docker client raises many errors (image, network, permission): each becomes one sentence.
            raise DevStackError(f"The container for {self.name} could not be started: {error}.") from error
        assert self._container is not None
        if not self._wait_ready():
            raise DevStackError(
                f"The container for {self.name} stopped while it started.",
                detail=self._last_words(),
            )

    def _wait(self) -> Wait:
        written = 0

        def has_logged() -> bool:
            nonlocal written
            before, written = written, len(self._last_words())
            return written > before

        return self._patience.wait_for(self.name, has_logged)

    def _last_words(self) -> str:
        output = () if self._container is None else self._container.get_logs()
        return "\n".join(part.decode(errors="replace")[-2000:].strip() for part in output)

    def _create(self) -> None:
        option = f"--{self.name}-port"
        wanted = self._wanted
        self._port = free_port() if wanted is None else require_free(wanted, name=self.name, option=option)
        container = self._build()
        # A pair, which the Docker client accepts although its type hint does not: on the loopback only.
        container.ports[f"{self._inside_port}/tcp"] = (LOOPBACK, self._port)  # type: ignore[assignment]
        self._container = container
        container.start()

    def _build(self) -> DockerContainer:
        raise NotImplementedError

    def _wait_ready(self) -> bool:
        raise NotImplementedError

    def is_running(self) -> bool:
        """Whether the container runs, as far as the engine can be asked."""
        import docker  # noqa: PLC0415 - optional extra

        wrapped = None if self._container is None else self._container.get_wrapped_container()
        if wrapped is None or self._is_removed:
            return False
        try:
            wrapped.reload()
        except docker.errors.NotFound:
            self._is_removed = True
            return False
        except (docker.errors.DockerException, OSError):
            # The engine is away, perhaps for a restart. Without it nothing could be started either.
            return True
        return str(wrapped.status) in {"created", "running", "restarting"}

    def entry(self) -> ProcessEntry | None:
        """None: a container is not a process of this user."""
        return None

    def end_reason(self) -> str:
        """How it stopped."""
        return "container was removed" if self._is_removed else "container stopped"

    def stop(self) -> bool:
        """Removes the container."""
        self.kill()
        return True

    def kill(self) -> None:
        """Removes the container."""
        import docker  # noqa: PLC0415 - optional extra

        if self._container is not None:
            with contextlib.suppress(docker.errors.NotFound):
                self._container.stop(force=True, delete_volume=True)
            self._container = None


class PostgresContainerPart(_ContainerPart):
    """The official Postgres image with the settings of the embedded one."""

    name = "postgres"
    _inside_port = _INSIDE_POSTGRES

    @property
    def address(self) -> str:
        """URL of the database."""
        return f"postgresql://{USER}:{_PASSWORD}@{LOOPBACK}:{self._port}/{DATABASE}"

    def _build(self) -> DockerContainer:
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - optional extra

        flags = [f"-c {name}='{value}'" for name, value in POSTGRES_SETTINGS.items()]
        container = DockerContainer(POSTGRES_IMAGE).with_command(f"postgres {' '.join(flags)}")
        for name, value in {"USER": USER, "PASSWORD": _PASSWORD, "DB": DATABASE}.items():
            container.with_env(f"POSTGRES_{name}", value)
        return container

    def _wait_ready(self) -> bool:
        return wait_for_query(self.address, alive=self.is_running, wait=self._wait())


class KafkaContainerPart(_ContainerPart):
    """The Apache Kafka image with the settings of the embedded broker."""

    name = "kafka"
    _inside_port = _INSIDE_KAFKA

    @property
    def address(self) -> str:
        """Bootstrap address."""
        return f"{LOOPBACK}:{self._port}"

    def _build(self) -> DockerContainer:
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - optional extra

        container = DockerContainer(f"apache/kafka:{kafka_version()}")
        for name, value in container_settings(self._port).items():
            container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
        return container

    def _wait_ready(self) -> bool:
        return wait_ready(self.address, alive=self.is_running, wait=self._wait())


def container_settings(port: int) -> dict[str, str]:
    """Broker settings inside a container whose client port is published as `port`.

    The broker talks to itself over a separate listener: the published address does not work
        inside the container.
    """
    return {
        **KAFKA_SETTINGS,
        "node.id": "1",
        "process.roles": "broker,controller",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": f"CLIENTS://0.0.0.0:{_INSIDE_KAFKA},SELF://localhost:9094,CONTROLLER://localhost:9093",
        "advertised.listeners": f"CLIENTS://{LOOPBACK}:{port},SELF://localhost:9094",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,SELF:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SELF",
        "controller.listener.names": "CONTROLLER",
    }


def remove_containers(containers: dict[str, str]) -> list[str]:
    """Removes containers that a dead supervisor left behind; returns the names of those that it found."""
    if not containers:
        return []
    require_engine()
    import docker  # noqa: PLC0415 - optional extra

    client = docker.from_env()
    removed: list[str] = []
    for name, container_id in containers.items():
        try:
            client.containers.get(container_id).remove(force=True, v=True)
        except docker.errors.NotFound:
            continue
        removed.append(name)
    client.close()
    return removed


def describe_containers(containers: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Returns the rows of `status` for containers, by the name of their part, from their ids.

    A row has `container` (id), `running` and `reason`: empty, or why it does not run.
    """
    import docker  # noqa: PLC0415 - optional extra

    rows: dict[str, dict[str, Any]] = {}
    for name, container_id in containers.items():
        try:
            with contextlib.closing(docker.from_env()) as client:
                found = str(client.containers.get(container_id).status)
                reason = "" if found == "running" else f"the container is {found}"
        except docker.errors.NotFound:
            reason = "the container was removed"
        except (docker.errors.DockerException, OSError):
            reason = "the Docker engine does not answer"
        rows[name] = {"container": container_id[:12], "running": not reason, "reason": reason}
    return rows
