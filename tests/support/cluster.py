"""Real processes of every service against a test's own database and topics, and ways to hurt them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from tests.support.emptying import turn_clock
from tests.support.evidence import KafkaSide
from tests.support.node import Node
from tests.support.publish import Load, publish, unsigned

from noonmark.devstack.processes import processes
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import PartitionCounts, Topics

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("intake", "trigger", "dispatcher", "worker")
LOOK_SECONDS = 0.03

SHORT = {
    # A lost worker, owner or member is noticed in seconds; everything else is as shipped.
    "NOONMARK_LEASE_SECONDS": "3",
    "NOONMARK_BEAT_SECONDS": "0.5",
    "NOONMARK_OWNER_TIMEOUT_SECONDS": "2",
    "NOONMARK_DRAIN_SECONDS": "10",
    "NOONMARK_HANDLERS": "tests.support.chaos_handlers",
    "NOONMARK_HTTP_ALLOW_NETWORKS": "127.0.0.0/8",
}
COUNTS = PartitionCounts(submissions=2, submissions_bulk=1, runs=2, lifecycle=1)


@dataclass(slots=True)
class Cluster:
    """All processes of one test. `start` adds one; `close` ends whatever is left of them.

    `settings` are variables of every process, `of_service` those of single services, by their whole names.
    """

    dsn: str
    bootstrap: str
    prefix: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    of_service: dict[str, dict[str, str]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    target_url: str = ""
    _target: subprocess.Popen[str] | None = None
    _connection: psycopg.Connection | None = None
    _kafka: KafkaSide | None = None

    # -- life ------------------------------------------------------------------------------------------

    def prepare(self, pools: Sequence[str] = ("default",)) -> None:
        """Make the topics."""
        specs = self.topics.topic_specs(pools, counts=COUNTS)
        ensure_topics(KafkaConfig(self.bootstrap, topic_prefix=self.prefix), specs)

    def start(
        self, *services: str, fault: str | None = None, code: Path | None = None, **settings: str
    ) -> list[Node]:
        """Start one process of each service and wait until all are ready."""
        nodes = [self.launch(service, fault=fault, code=code, **settings) for service in services]
        for node in nodes:
            self.await_ready(node)
        return nodes

    def launch(
        self,
        service: str,
        *arguments: str,
        fault: str | None = None,
        code: Path | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: str,
    ) -> Node:
        """Start a process without waiting for it.

        Args:
            service: which.
            arguments: of its command.
            fault: `<point>=<n>`: it kills itself at its n-th pass of the point.
            code: folder with the packages of another release.
            environment: more variables, by their whole names.
            settings: above those of the cluster, by their names without the prefix, in lower case.
        """
        name = f"{service}-{len(self.nodes)}"
        env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("NOONMARK_")},
            **SHORT,
            "NOONMARK_DATABASE_URL": self.dsn.replace("noonmark:x@", f"rec_{service}:x@"),
            "NOONMARK_KAFKA_BOOTSTRAP": self.bootstrap,
            "NOONMARK_TOPIC_PREFIX": self.prefix,
            "NOONMARK_BOUND_TOPICS": unsigned(self.prefix),
            "NOONMARK_TEST_TARGET_LOG": str(self.target_log),
            "PYTHONPATH": os.pathsep.join(
                filter(None, (str(code or ""), str(ROOT), os.environ.get("PYTHONPATH")))
            ),
            **self.settings,
            **self.of_service.get(service, {}),
            **{f"NOONMARK_{key.upper()}": value for key, value in settings.items()},
            **(environment or {}),
        }
        if fault is not None:
            env["NOONMARK_FAULT"] = fault
        log_file = self.folder / f"{name}.log"
        process = processes.spawn(
            [sys.executable, "-m", "noonmark.cli.main", service, *arguments],
            log_file=log_file,
            env=env,
            cwd=self.folder,
            death_signal=signal.SIGKILL,
        )
        node = Node(name, service, process, log_file, expected_alive=fault is None)
        self.nodes.append(node)
        return node

    def await_ready(self, node: Node, within: float = 120.0) -> None:
        """Wait until a node is ready; a node with a fault may also have died of it."""
        wait_until(lambda: node.ready() or not node.alive, f"{node.name} to be ready", within, self.state)
        if node.expected_alive:
            assert node.alive, f"{node.name} {node.ending} at its start:\n{node.log()}"

    def start_target(self) -> str:
        """Start the HTTP target; return its URL."""
        self._target = subprocess.Popen(
            [sys.executable, "-m", "tests.support.target", "--log", str(self.target_log)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._target.stdout is not None
        self.target_url = f"http://127.0.0.1:{int(self._target.stdout.readline())}"
        return self.target_url

    def close(self) -> None:
        """Kill every process that is left, and release connections."""
        for node in self.nodes:
            processes.kill(node.process)
        if self._target is not None:
            self._target.communicate(timeout=30)
        if self._connection is not None:
            self._connection.close()
        if self._kafka is not None:
            self._kafka.close()

    def node(self, service: str) -> Node:
        """The newest living process of a service."""
        return next(n for n in reversed(self.nodes) if n.service == service and n.expected_alive)

    # -- looking ---------------------------------------------------------------------------------------

    @property
    def topics(self) -> Topics:
        """Names of this cluster's topics."""
        return Topics(self.prefix)

    @property
    def target_log(self) -> Path:
        """Where handlers and HTTP target note their calls."""
        return self.folder / "target.jsonl"

    @property
    def database(self) -> psycopg.Connection:
        """A connection that outlives restarts of the server."""
        if self._connection is None or self._connection.closed or self._connection.broken:
            self._connection = psycopg.connect(self.dsn, autocommit=True, connect_timeout=5)
        return self._connection

    @property
    def kafka(self) -> KafkaSide:
        """A look at topics and groups from outside."""
        if self._kafka is None:
            self._kafka = KafkaSide(self.bootstrap, self.prefix)
        return self._kafka

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a query."""
        return self.look(query, values or None)

    def look(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        """Run a query; once more where the server went away since the last one."""
        try:
            return self.database.execute(query, values).fetchall()
        except psycopg.OperationalError:
            if not self.database.closed and self._connection is not None:
                self._connection.close()
            return self.database.execute(query, values).fetchall()

    def value(self, query: str, *values: Any) -> Any:
        """First field of the first row."""
        return self.rows(query, *values)[0][0]

    def states(self, namespace: str) -> dict[str, int]:
        """Runs of a namespace by state."""
        return dict(self.rows("select state, count(*) from runs where namespace = %s group by 1", namespace))

    def calls(self, namespace: str, event: str = "start") -> list[dict[str, Any]]:
        """Lines of the target's log that belong to a namespace."""
        if not self.target_log.exists():
            return []
        lines = (json.loads(line) for line in self.target_log.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if line["namespace"] == namespace and line["event"] == event]

    def wait(self, condition: Callable[[], Any], what: str, within: float = 60.0) -> Any:
        """Wait for a condition while every node that should live does; return what it gave."""

        def look() -> Any:
            for node in self.nodes:
                assert not node.expected_alive or node.alive, (
                    f"{node.name} {node.ending}:\n{node.log(60)}\n{self.state()}"
                )
            return condition()

        return wait_until(look, what, within, self.state)

    def state(self) -> str:
        """A picture of everything for a failed wait."""
        parts = (
            [f"target calls: {len(self.target_log.read_bytes().splitlines())}"]
            if self.target_log.exists()
            else []
        )
        with contextlib.suppress(psycopg.Error):
            for query in (
                "select namespace, state, reason, count(*) from runs group by 1, 2, 3 order by 1, 2",
                "select 'outbox', slice, lane, count(*) from outbox group by 2, 3",
                "select 'timers', kind, min(fire_at) - noonmark_now(), count(*) from timers group by 2",
                "select 'batches', worker, count(*) from start_batches group by 2",
                "select 'workers', id, pid, epoch, lapsed_at, left_at from workers order by id",
                "select 'members', role, pid, noonmark_now() - beat_at from members",
            ):
                parts += [str(row) for row in self.rows(query)]
        with contextlib.suppress(Exception):
            parts.append(f"uncommitted: {self.lags()}")
        for node in self.nodes[-8:]:
            parts.append(
                f"--- {node.name} pid {node.pid} {'lives' if node.alive else node.ending}\n{node.log(6)}"
            )
        return "\n".join(parts)

    def turn_clock(self, seconds: float) -> None:
        """Let the database's clock, the only one that counts, go ahead by so much from now on."""
        turn_clock(self.database, timedelta(seconds=float(seconds)))

    @contextlib.contextmanager
    def standing_clock(self) -> Iterator[None]:
        """Let the database's clock stand in the block, and go on from there after it.

        What the block does and waits for is over before any instant that lies ahead of its begin, on a
        machine of any speed. Instants are then counted from `soon` of the cluster: its clock is behind.
        """
        self._define_clock(f"timestamptz '{self.value('select noonmark_now()').isoformat()}'")
        try:
            yield
        finally:
            self.turn_clock(self.value("select extract(epoch from noonmark_now() - clock_timestamp())"))

    def soon(self, seconds: float) -> datetime:
        """An instant from now by the database's clock, in whole milliseconds."""
        at: datetime = self.value("select date_trunc('milliseconds', noonmark_now())")
        return at + timedelta(seconds=seconds)

    def _define_clock(self, expression: str) -> None:
        self.database.execute(
            "create or replace function noonmark_now() returns timestamptz language sql stable parallel safe"
            f" as $$ select {expression} $$"
        )

    # -- load ------------------------------------------------------------------------------------------

    def publish(self, load: Load, *, events: Sequence[dict[str, Any]] | None = None) -> None:
        """Publish a load's events, or some of them."""
        publish(self.bootstrap, self.topics.submissions, load.events if events is None else events)

    def take_in(self, load: Load, *, events: Sequence[dict[str, Any]] | None = None) -> None:
        """Publish the same, and wait until every job of the load is made."""
        self.publish(load, events=events)
        made = "select count(*) from jobs where namespace = %s"
        within = 40 + len(load.jobs) / 500
        self.wait(
            lambda: self.value(made, load.namespace) == len(load.jobs), "every job to be taken in", within
        )

    def unsettled(self, load: Load) -> dict[str, int]:
        """What keeps a load from being settled; empty when nothing does."""
        (row,) = self.look(
            "select %(jobs)s - (select count(*) from jobs where namespace = %(ns)s),"
            " %(refused)s - (select count(*) from rejections where event_source = %(source)s),"
            " (select count(*) from timers where namespace = %(ns)s),"
            " (select count(*) from runs where namespace = %(ns)s and finished_at is null),"
            " (select count(*) from (select from outbox limit 1000) as unsent),"
            " (select count(*) from start_batches)",
            {
                "jobs": len(load.jobs),
                "refused": len(load.rejected),
                "ns": load.namespace,
                "source": load.source,
            },
        )
        names = ("jobs", "rejections", "timers", "unfinished", "outbox", "batches")
        return {name: count for name, count in zip(names, row, strict=True) if count}

    def settle(self, load: Load, within: float = 60.0) -> None:
        """Wait until a load is through: every run has its verdict, every table and topic is drained."""
        self.wait(lambda: not self.unsettled(load), "every run to be settled", within)
        self.wait(lambda: not self.lag(), "every offset to be committed", within)

    def lag(self, part: str = "") -> int:
        """Records that groups have not committed, of topics whose name holds `part`."""
        return sum(self.lags(part).values())

    def lags(self, part: str = "") -> dict[str, int]:
        """The same by partition, where there are any."""
        topics = {
            name: count
            for name, count in self.kafka.topics().items()
            if self.kafka.group_of(name) is not None and part in name
        }
        committed = self.kafka.committed(topics)
        lags = {
            f"{topic}[{partition}]": end - max(begin, committed.get((topic, partition), 0))
            for topic, count in topics.items()
            for partition, (begin, end) in self.kafka.ends(topic, count).items()
        }
        return {partition: lag for partition, lag in lags.items() if lag > 0}

    def check(self, load: Load, *, partway: bool = False) -> dict[str, Any]:
        """Run the checker in a process of its own; return its report."""
        plan = load.write_plan(self.folder / f"{load.namespace}.json")
        command = [
            *(sys.executable, "-m", "tests.support.checker", "--json", "--dsn", self.dsn),
            *("--bootstrap", self.bootstrap, "--prefix", self.prefix),
            *("--target-log", str(self.target_log), "--plan", str(plan)),
            *(["--partway"] if partway else []),
        ]
        most = 60 + load.instants / 100
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=most, check=False)
        assert done.returncode in {0, 1}, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def assert_clean(self, *loads: Load, within: float = 60.0) -> dict[str, Any]:
        """Settle every load, then check each, and insist that nothing was found; the report of the first.

        A check also judges what all loads share, such as the outbox: none may be in motion while another is checked.
        """
        for load in loads:
            self.settle(load, within)
        reports = [self.check(load) for load in loads]
        for load, report in zip(loads, reports, strict=True):
            assert report["clean"], json.dumps(report, indent=1)
            assert report["runs"] >= load.instants
        return reports[0]


def wait_until(
    condition: Callable[[], Any], what: str, within: float, state: Callable[[], str] | None = None
) -> Any:
    """Wait until a condition gives something true; return it."""
    give_up_at = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() >= give_up_at:
            raise AssertionError(f"waited {within:g} s for {what}\n{state() if state else ''}")
        time.sleep(LOOK_SECONDS)
    return found


@contextlib.contextmanager
def cluster(dsn: str, bootstrap: str, prefix: str, folder: Path, **settings: str) -> Iterator[Cluster]:
    """A cluster whose processes end with the block; `settings` by their names in lower case."""
    made = Cluster(
        dsn, bootstrap, prefix, folder, {f"NOONMARK_{key.upper()}": value for key, value in settings.items()}
    )
    try:
        made.prepare()
        yield made
    finally:
        made.close()


def fresh_prefix() -> str:
    """A topic prefix that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}"


__all__ = ["SERVICES", "Cluster", "Node", "cluster", "fresh_prefix", "wait_until"]
