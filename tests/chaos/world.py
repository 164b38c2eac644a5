"""The servers of a chaos run: two Postgres, one Kafka, proxies before all of them, a small disk."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from tests.chaos.clocks import Clocks
from tests.support.cluster import Cluster, cluster, fresh_prefix
from tests.support.proxy import Network, Proxy, Toxic
from tests.support.replicas import Replicas
from tests.support.stack import QUICK_GROUPS

from noonmark.devstack.kafka.server import KafkaServer, start_kafka
from noonmark.devstack.processes.ports import free_port
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import TopicSpec
from noonmark.store.migrations.migrate import migrate

DISK_BYTES = 4 * 1024 * 1024
EMITTED = "chaos-emitted"


@dataclass(slots=True)
class Disk:
    """A small disk for what services write beside Postgres and Kafka; `why` it is not there, if it is not."""

    folder: Path
    why: str = ""

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self) -> None:
        """Leave no byte."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(65536))

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)


@dataclass(slots=True)
class Broker:
    """The broker, which may be killed and started again on its folder and port."""

    server: KafkaServer
    proxy: Proxy
    away: bool = False

    def kill(self, *, gently: bool) -> None:
        """End it."""
        self.server.stop() if gently else self.server.kill()
        self.away = True

    def start(self) -> None:
        """Start it again, on a network that works: the start waits for a record that passes the proxy."""
        if self.away:
            self.proxy.heal()
            server = start_kafka(
                self.server.data_dir,
                port=self.server.port,
                settings=QUICK_GROUPS,
                advertised_port=self.proxy.port,
            )
            self.server.process = server.process
            self.away = False


@dataclass(slots=True)
class World:
    """Everything that can be hurt."""

    noonmark: Cluster
    postgres: Replicas
    broker: Broker
    disk: Disk
    network: Network
    clocks: Clocks
    notes: list[str] = field(default_factory=list)

    def proxies(self, server: str) -> list[Proxy]:
        """The proxies before a server."""
        return self.postgres.proxies if server == "postgres" else [self.broker.proxy]

    def heal(self) -> None:
        """End every fault of the network, the servers and the disk."""
        for proxy in (*self.postgres.proxies, self.broker.proxy):
            proxy.heal()
        self.disk.free()
        self.postgres.repair()
        self.broker.start()


@contextlib.contextmanager
def world(**settings: str) -> Iterator[World]:
    """Start all servers; end all processes with the block."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noonmark-chaos-")))
        folder.chmod(0o711)
        network = Network()
        stack.callback(network.close)
        clocks = Clocks.prepare(folder / "clocks")
        postgres = Replicas(folder, network, clocks.postgres)
        stack.callback(postgres.close)
        migrate(postgres.server.url)
        postgres.run("create table effects (run_id uuid not null, fence integer not null)")
        port = free_port()
        proxy = network.proxy(port)
        server = start_kafka(folder / "kafka", port=port, settings=QUICK_GROUPS, advertised_port=proxy.port)
        stack.callback(server.kill)
        disk = stack.enter_context(small_disk(folder / "disk"))
        (folder / "nodes").mkdir()
        given = {
            "database_url": postgres.url,
            "scripts": "*",
            "emit_topics": EMITTED,
            "kill_grace_seconds": "1",
            **settings,
        }
        prefix = fresh_prefix()
        noonmark = stack.enter_context(
            cluster(postgres.direct, f"127.0.0.1:{proxy.port}", prefix, folder / "nodes", **given)
        )
        if not disk.why:
            noonmark.settings["TMPDIR"] = str(disk.folder)
        ensure_topics(KafkaConfig(noonmark.bootstrap, topic_prefix=prefix), [TopicSpec(EMITTED, 1, 1, {})])
        noonmark.start_target()
        made = World(noonmark, postgres, Broker(server, proxy), disk, network, clocks)
        if disk.why:
            made.notes.append(f"no full disks: {disk.why}")
        if clocks.why:
            made.notes.append(f"no clock is turned: {clocks.why}")
        yield made
        for one in (*postgres.proxies, proxy):
            one.set(Toxic())


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """Mount a disk in memory, where the user may."""
    folder.mkdir()
    if os.geteuid() != 0:
        yield Disk(folder, "only root can mount a small disk")
        return
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=1777", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield Disk(folder, f"mount refused: {done.stderr.strip()}")
        return
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def effects(dsn: str) -> list[tuple[str, int]]:
    """Rows that exactly-once handlers wrote."""
    with psycopg.connect(dsn) as connection:
        return connection.execute("select run_id::text, fence from effects").fetchall()
