"""A real Apache Kafka in a data folder: one KRaft node from the jars that Maven copies."""

from __future__ import annotations

import base64
import os
import signal
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from noonmark.devstack.kafka.class_data import ClassData
from noonmark.devstack.kafka.config import LOG4J, server_properties
from noonmark.devstack.kafka.jars import kafka_jars
from noonmark.devstack.kafka.java import find_java
from noonmark.devstack.kafka.probe import wait_ready
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError, explain_log, explain_os_error
from noonmark.devstack.processes.patience import CpuTime, Growth, Patience, Say, quiet
from noonmark.devstack.processes.ports import LOOPBACK, answers, free_port, require_free
from noonmark.devstack.processes.processes import Process

COMPILED_LIGHTLY = "-XX:TieredStopAtLevel=1"
"""For a Java virtual machine that does little or ends soon: to compile for speed takes more than it saves."""

_STOP_SECONDS = 20.0


@dataclass(slots=True)
class KafkaServer:
    """A running broker, started by this process.

    Attributes:
        bootstrap: `127.0.0.1:port`.
        port: For clients.
        data_dir: Holds the configuration and `data/`.
        log_file: The broker's log.
    """

    bootstrap: str
    port: int
    data_dir: Path
    log_file: Path
    process: Process = field(repr=False)
    class_data: ClassData = field(repr=False)

    @property
    def pid(self) -> int:
        """Process id of the Java virtual machine."""
        return self.process.pid

    def is_running(self) -> bool:
        """Whether the broker's process lives."""
        return not processes.has_ended(self.process)

    def stop(self) -> bool:
        """Orderly shutdown; False if it had to be killed after 20 s."""
        ended = processes.stop(self.process, grace_seconds=_STOP_SECONDS)
        self.class_data.settle(self.process.returncode)
        return ended

    def kill(self) -> None:
        """SIGKILL, as a crash; start again with the same folder and port."""
        processes.kill(self.process)
        self.class_data.settle(self.process.returncode)


def start_kafka(
    data_dir: Path,
    *,
    port: int | None = None,
    heap_mb: int = 512,
    settings: Mapping[str, str] | None = None,
    java_options: Sequence[str] = (),
    advertised_port: int | None = None,
    log_file: Path | None = None,
    say: Say = quiet,
    patience: Patience | None = None,
    tie_to_parent: bool = True,
) -> KafkaServer:
    """Starts a broker on a folder, formatted on the first start, and waits until records pass.

    Args:
        data_dir: Where the broker keeps everything.
        port: A fixed port; a free one if None.
        heap_mb: Heap of the Java virtual machine, MB.
        settings: Broker settings above `kafka_config.DEFAULT_SETTINGS`.
        java_options: Options for the Java virtual machine above its own, such as `COMPILED_LIGHTLY`.
        advertised_port: The port that clients connect to, such as a proxy's; its own port if None.
        log_file: Default is `kafka.log` in the folder.
        say: Receives one line about each long step (fetching jars, installing Java).
        patience: How long it may take, from when jars and Java are there.
        tie_to_parent: Shut down when the calling thread's process dies; call from the main thread.

    Raises:
        DevStackError: It could not be started; the message says why and what to do.
    """
    data_dir = data_dir.resolve()
    log_file = log_file or data_dir / "kafka.log"
    try:
        java = find_java(say)
        libs = kafka_jars(java, say)
        patience = patience or Patience(say=say)
        patience.renew()
        data_dir.mkdir(parents=True, exist_ok=True)
        chosen = free_port() if port is None else require_free(port, name="Kafka", option="--kafka-port")
        _write_configuration(data_dir, chosen, settings, advertised_port)
        options = _java_options(data_dir, libs)
        class_data = ClassData.for_broker(java, libs)
        _format(
            [java.program, *class_data.flags_to_read(), COMPILED_LIGHTLY, *options],
            data_dir,
            log_file,
            patience,
        )
        before = processes.log_size(log_file)
        flags = [*_tuned(heap_mb), *java_options, *class_data.flags(), *options]
        process = processes.spawn(
            [java.program, *flags, "kafka.Kafka", data_dir / "server.properties"],
            log_file=log_file,
            env=_environment(),
            cwd=data_dir,
            death_signal=signal.SIGTERM if tie_to_parent else None,
        )
    except OSError as error:
        raise explain_os_error(error, "starting Kafka") from error
    server = KafkaServer(f"{LOOPBACK}:{chosen}", chosen, data_dir, log_file, process, class_data)
    try:
        ready = _wait_ready(server, patience)
    except BaseException:
        server.stop()
        raise
    if not ready:
        process.wait()
        raise _start_error(server, before)
    return server


def _tuned(heap_mb: int) -> tuple[str, ...]:
    return (f"-Xmx{heap_mb}m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExitOnOutOfMemoryError")


def _wait_ready(server: KafkaServer, patience: Patience) -> bool:
    wait = patience.wait_for("kafka", CpuTime(server.pid), Growth(server.log_file))
    # The port first: a client that is refused backs off, and would notice late.
    wait.until(
        lambda: answers(server.port) or not server.is_running(), f"nothing answers on port {server.port}"
    )
    return wait_ready(server.bootstrap, alive=server.is_running, wait=wait)


def _start_error(server: KafkaServer, log_offset: int) -> DevStackError:
    detail = processes.tail_since(server.log_file, log_offset)
    if "Failed to acquire lock on file .lock" in detail:
        return DevStackError(
            f"Another Kafka already runs on {server.data_dir}.",
            remedy="Stop it with `noonmark dev down`, or choose another folder with --state-dir.",
        )
    return explain_log(detail, name="Kafka", port_option="--kafka-port") or DevStackError(
        f"Kafka did not start (it exited with code {server.process.returncode}); "
        f"the end of its log {server.log_file}:",
        detail=detail,
    )


def _write_configuration(
    data_dir: Path, port: int, settings: Mapping[str, str] | None, advertised_port: int | None
) -> None:
    text = server_properties(
        log_dir=data_dir / "data",
        port=port,
        controller_port=free_port(other_than=port),
        settings=settings,
        advertised_port=advertised_port,
    )
    (data_dir / "server.properties").write_text(text, encoding="utf-8")
    (data_dir / "log4j2.xml").write_text(LOG4J, encoding="utf-8")


def _java_options(data_dir: Path, libs: Path) -> list[str]:
    return [
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={data_dir / 'log4j2.xml'}",
        *("-cp", f"{libs}/*"),
    ]


def _environment() -> dict[str, str]:
    # Options meant for other Java programs (agents, heap sizes) would break the broker.
    unwanted = {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _format(java: list[str | Path], data_dir: Path, log_file: Path, patience: Patience) -> None:
    """Formats the folder once, as KRaft requires."""
    if (data_dir / "data" / "meta.properties").exists():
        return
    code = processes.run(
        [
            *(*java, "kafka.tools.StorageTool", "format", "--ignore-formatted"),
            *("-t", new_cluster_id(), "-c", str(data_dir / "server.properties")),
        ],
        log_file=log_file,
        name="kafka (format)",
        patience=patience,
        env=_environment(),
    )
    if code != 0:
        detail = processes.tail(log_file)
        raise explain_log(detail, name="Kafka", port_option="--kafka-port") or DevStackError(
            f"Kafka's folder {data_dir} could not be formatted (code {code}).", detail=detail
        )


def new_cluster_id() -> str:
    """A cluster id as Kafka makes them: 22 characters of base64, never with a leading dash."""
    while True:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not cluster_id.startswith("-"):
            return cluster_id
