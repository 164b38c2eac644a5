"""What a state is recorded on: servers, an installation, and a recording with its processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from tests.chart.alert_rules import read_series
from tests.support.cluster import SERVICES, Cluster, cluster, fresh_prefix
from tests.support.node import Node
from tests.support.proxy import Network, Proxy
from tests.support.publish import Load
from tests.support.recordings import Recording
from tests.support.stack import QUICK_GROUPS

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, KafkaServer, start_kafka
from noonmark.devstack.postgres.server import PostgresServer, start_postgres
from noonmark.store.migrations.migrate import migrate


@dataclass(slots=True)
class Ground:
    """The session's servers, and servers and installations that end with the state.

    Attributes:
        dsn: of a database of this state alone.
        bootstrap: of the session's Kafka.
        folder: of this state alone.
        servers: folder for servers of this state; short, and readable for Postgres.
        stack: ends what the state has started.
    """

    dsn: str
    bootstrap: str
    folder: Path
    servers: Path
    stack: ExitStack = field(default_factory=ExitStack)

    def installation(self, *, dsn: str = "", bootstrap: str = "", **settings: str) -> Installation:
        """Make topics; return an installation without a process."""
        made = cluster(dsn or self.dsn, bootstrap or self.bootstrap, fresh_prefix(), self.folder, **settings)
        return Installation(self.stack.enter_context(made))

    def postgres(self) -> PostgresServer:
        """Start a migrated Postgres that the state may kill."""
        server = start_postgres(self.servers / "postgres")
        self.stack.callback(server.stop)
        migrate(server.url)
        return server

    def kafka(self) -> KafkaServer:
        """Start a Kafka that the state may kill or pause."""
        server = start_kafka(self.servers / "kafka", settings=QUICK_GROUPS, java_options=[COMPILED_LIGHTLY])
        self.stack.callback(server.stop)
        return server

    def proxy(self) -> tuple[Proxy, str]:
        """Put a proxy before this state's database; return it, and the URL that leads through it."""
        network = Network()
        self.stack.callback(network.close)
        port = psycopg.conninfo.conninfo_to_dict(self.dsn)["port"]
        proxy = network.proxy(int(port))
        return proxy, self.dsn.replace(f":{port}/", f":{proxy.port}/")


@dataclass(slots=True)
class Installation:
    """The processes of one installation, and what is recorded of them."""

    noonmark: Cluster
    recording: Recording = field(default_factory=Recording)
    removed: list[Node] = field(default_factory=list)

    def start(self, *more: str, **settings: str) -> None:
        """Start intake, trigger, dispatcher, worker and more, and wait until all are ready."""
        for node in [self.noonmark.launch(service, **settings) for service in (*SERVICES, *more)]:
            self.noonmark.await_ready(node, 120)

    def remove(self, service: str) -> None:
        """Stop the newest process of a service; Prometheus does not look for it any more."""
        node = self.noonmark.node(service)
        self.removed.append(node)
        node.stop()

    def kill(self, *services: str) -> None:
        """Kill the newest process of each service; Prometheus still looks for it."""
        for service in services:
            self.noonmark.node(service).kill()

    def scrape(self, times: int = 1) -> None:
        """Scrape all processes, dead ones too."""
        nodes = [node for node in self.noonmark.nodes if node not in self.removed]
        for _ in range(times):
            self.recording.scrape(nodes, read_series())

    def scrape_until(self, condition: Callable[[], Any], what: str, within: float = 120.0) -> None:
        """Wait for a condition; scrape before and after it."""
        self.scrape()
        self.noonmark.wait(condition, what, within)
        self.scrape()

    def metric(self, service: str, name: str, **labels: str) -> float:
        """Read a metric of the newest process of a service."""
        return self.noonmark.node(service).metric(f"noonmark_{name}", **labels)

    def run(self, load: Load) -> Load:
        """Publish a load and wait until all of it has ended."""
        self.noonmark.publish(load)
        self.noonmark.settle(load, 120)
        return load

    def command(self, *arguments: str, code: int = 0, **settings: str) -> str:
        """Run `noonmark` with the addresses of this installation; return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "noonmark.cli.main", *arguments],
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("NOONMARK_")},
                "NOONMARK_DATABASE_URL": self.noonmark.dsn,
                "NOONMARK_KAFKA_BOOTSTRAP": self.noonmark.bootstrap,
                "NOONMARK_TOPIC_PREFIX": self.noonmark.prefix,
                **settings,
            },
            cwd=self.noonmark.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout
