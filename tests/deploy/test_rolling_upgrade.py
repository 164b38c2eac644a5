"""The release before and this one side by side on one database and broker, under load, there and back again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from tests.acceptance.test_api_kills import free_port
from tests.support.cluster import ROOT, Cluster, cluster, fresh_prefix
from tests.support.keys import make_token
from tests.support.node import Node
from tests.support.publish import Load, soon, unsigned
from tests.support.releases import previous_release
from tests.support.stack import Kafka, Postgres

from noonmark.client import Client
from noonmark.store.migrations.migrate import status

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.timeout(420)]

ORDER = ("intake", "trigger", "dispatcher", "worker", "worker")
"""In which services are replaced, one process at a time."""

PER_SECOND = 100
INSTANTS = 60
AS_SHIPPED = {"lease_seconds": "15", "beat_seconds": "2", "owner_timeout_seconds": "3"}
"""Nothing is to be taken for lost here, however busy the machine is."""

RECURRING = 20


@dataclass
class Publisher:
    """Publishes jobs that are due on arrival, and some for the next instants, until it is stopped."""

    noonmark: Cluster
    load: Load = field(default_factory=Load)
    over: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.over.wait(0.5):
                begun = len(self.load.events)
                self.load.now(PER_SECOND // 4)
                self.load.once(PER_SECOND // 4, soon(1), spread_seconds=4)
                self.noonmark.publish(self.load, events=self.load.events[begun:])
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.failure = error

    @contextlib.contextmanager
    def publishing(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self.over.set()
            thread.join(60)


@dataclass
class Rehearsal:
    """Both releases on one cluster."""

    noonmark: Cluster
    old_code: Path
    token: str
    by_api: Load = field(default_factory=Load)
    apis: dict[str, tuple[Node, str]] = field(default_factory=dict)

    def code(self, release: str) -> Path | None:
        return self.old_code if release == "old" else None

    def start_api(self, release: str) -> None:
        port = free_port()
        (node,) = self.noonmark.start("api", code=self.code(release), api_port=port, api_rate_per_minute="0")
        self.apis[release] = (node, f"http://127.0.0.1:{port}")

    def create_by_api(self, release: str, count: int = 25) -> None:
        """Jobs that the plan knows of, made through the API of a release."""
        begun = len(self.by_api.events)
        self.by_api.now(count)
        with Client(self.apis[release][1], self.token) as client:
            for event in self.by_api.events[begun:]:
                client.jobs.create(event["data"], idempotency_key=event["id"])

    def replace(self, leaving: list[Node], release: str) -> list[Node]:
        """Start a process of a release, then end one of the other in good order; and so for each service."""
        arrived = []
        for service in ORDER:
            arrived.append(self.arrive(service, release))
            assert (release == "old") == runs_code_of(arrived[-1], self.old_code)
            old = next(node for node in leaving if node.service == service and node.expected_alive)
            old.expected_alive = False
            old.terminate()
            assert old.process.wait(30) == 0, old.log()
        other = "old" if release == "new" else "new"
        self.start_api(release)
        self.create_by_api(other)
        self.create_by_api(release)
        api, _ = self.apis.pop(other)
        api.expected_alive = False
        api.terminate()
        assert api.process.wait(60) == 0, api.log()
        self.noonmark.wait(self.works, f"the {release} release to work alone", 30)
        return arrived

    def arrive(self, service: str, release: str) -> Node:
        """Start a process. A worker beyond the partitions is there before it is given one."""
        if service != "worker":
            (node,) = self.noonmark.start(service, code=self.code(release))
            return node
        node = self.noonmark.launch(service, code=self.code(release))
        self.noonmark.wait(lambda: node.logged("lease_taken"), f"{node.name} to be there", 60)
        return node

    def works(self) -> bool:
        """Whether a run published from now on is through: asked again until it is."""
        return bool(
            self.noonmark.value(
                "select count(*) > 0 from runs where started_at > noonmark_now() - interval '1 second'"
            )
        )


def migrate(noonmark: Cluster, code: Path | None) -> None:
    """`noonmark db migrate` of a release, as its operator runs it."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")},
        "NOONMARK_DATABASE_URL": noonmark.dsn,
        "NOONMARK_KAFKA_BOOTSTRAP": noonmark.bootstrap,
        "NOONMARK_TOPIC_PREFIX": noonmark.prefix,
        "NOONMARK_BOUND_TOPICS": unsigned(noonmark.prefix),
        "PYTHONPATH": os.pathsep.join(map(str, filter(None, (code, ROOT)))),
    }
    done = subprocess.run(
        [sys.executable, "-m", "noonmark.cli.main", "db", "migrate"],
        env=environment,
        cwd=noonmark.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_releases_side_by_side_lose_nothing_there_and_back(
    postgres_server: Postgres, kafka_server: Kafka, tmp_path: Path, report: list[str]
) -> None:
    found = previous_release(tmp_path / "release")
    if found is None:
        no_release_before()
    version, old_code = found
    prefix = fresh_prefix()
    postgres_server.run(f"create database {prefix}")
    dsn = postgres_server.url_of(prefix)
    with cluster(dsn, kafka_server.bootstrap, prefix, tmp_path, **AS_SHIPPED) as noonmark:
        migrate(noonmark, old_code)
        before = schema(dsn)
        olds = noonmark.start(*ORDER, code=old_code)
        with psycopg.connect(dsn, autocommit=True) as connection:
            token = make_token(connection)
        rehearsal = Rehearsal(noonmark, old_code, token)
        rehearsal.start_api("old")
        rehearsal.create_by_api("old")
        recurring = Load()
        recurring.interval(RECURRING, noonmark.soon(3), INSTANTS)
        noonmark.take_in(recurring)
        publisher, began = Publisher(noonmark), time.monotonic()
        with publisher.publishing():
            migrate(noonmark, None)
            news = rehearsal.replace(olds, "new")
            again = rehearsal.replace(news, "old")
            rehearsal.replace(again, "new")
        assert publisher.failure is None, publisher.failure
        took = time.monotonic() - began
        noonmark.assert_clean(publisher.load, recurring, rehearsal.by_api, within=90)
        lines = [line for node in noonmark.nodes for line in node.log(10_000).splitlines()]
        assert not [line for line in lines if '"level":"critical"' in line or '"level":"error"' in line]
        runs, worst, losses = noonmark.rows(
            "select count(*), extract(epoch from max(started_at - scheduled_for))::float, sum(losses)"
            " from runs where state = 'succeeded'"
        )[0]
        assert losses == 0
        # A release without a migration of its own finds the schema as it needs it.
        assert schema(dsn) == status(dsn).wanted
        migrated = (
            f"schema {before} -> {schema(dsn)}" if schema(dsn) != before else f"schema {before} in both"
        )
        report.append(
            f"rolling upgrade of release {version} under {PER_SECOND} submissions/s: {migrated},"
            f" old -> new -> old -> new, one process at a time: {took:.0f} s,"
            f" {len(noonmark.nodes)} processes, {runs} runs succeeded, 0 lost, 0 doubled, 0 attempts burnt,"
            f" latest start {worst:.1f} s after its instant"
        )


def no_release_before() -> NoReturn:
    """Skip where a clone is shallow; in a build, where nobody reads what was skipped, fail."""
    missing = "the history of this checkout does not reach back to the release before this one"
    if os.environ.get("CI"):
        pytest.fail(
            f"{missing}; fetch the whole history (`git fetch --unshallow`, or `fetch-depth: 0` of the checkout)",
            pytrace=False,
        )
    pytest.skip(missing)


def runs_code_of(node: Node, folder: Path) -> bool:
    """Whether a process looks into a folder for its modules before it looks anywhere else."""
    environment = Path(f"/proc/{node.pid}/environ").read_bytes().split(b"\0")
    return any(entry.startswith(f"PYTHONPATH={folder}{os.pathsep}".encode()) for entry in environment)


def schema(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select version_num from alembic_version").fetchone()
    assert row is not None
    return str(row[0])
