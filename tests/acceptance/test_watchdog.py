"""The dead-man's switch: beats stop when any part is killed or stands still, and come again when it is back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.support.cluster import Cluster, cluster, fresh_prefix, wait_until
from tests.support.node import Node
from tests.support.receiver import Receiver
from tests.support.stack import QUICK_GROUPS

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, KafkaServer, start_kafka
from noonmark.devstack.postgres.server import PostgresServer, start_postgres
from noonmark.store.migrations.migrate import migrate

PARTS = ("postgres", "kafka", "trigger", "dispatcher", "observer")
WATCHED = ("trigger", "dispatcher", "observer")
STALE = 6
BOUND = 60.0
"""Far above what it takes: the time without progress, a round, and the machine's own slowness."""

pytestmark = pytest.mark.slow


class Installation:
    """All that a watchdog watches, on servers of its own."""

    def __init__(self, noonmark: Cluster, postgres: PostgresServer, kafka: KafkaServer) -> None:
        self.noonmark = noonmark
        self.postgres = postgres
        self.kafka = kafka
        self.outside = Receiver()
        self.nodes = {service: noonmark.start(service)[0] for service in WATCHED}
        (self.watchdog,) = noonmark.start(
            "watchdog",
            watchdog_url=f"{self.outside.url}/s3cret",
            watchdog_seconds="1",
            watchdog_stale_seconds=str(STALE),
        )

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, BOUND, lambda: self.watchdog.log(40))

    def count(self, result: str) -> float:
        return self.watchdog.metric("noonmark_watchdog_beats_total", result=result)

    def ok(self, part: str) -> bool:
        return self.watchdog.metric("noonmark_watchdog_part_ok", part=part) == 1.0

    def beats(self) -> None:
        """Wait until beats come, whatever came before."""
        self.wait(lambda: all(map(self.ok, PARTS)), "every part to be well")
        before = len(self.outside.got)
        self.wait(lambda: len(self.outside.got) >= before + 2, "beats")

    def is_silent_about(self, part: str) -> None:
        """Wait until the part is known to stand still; then no beat comes for several rounds."""
        self.wait(lambda: not self.ok(part), f"{part} to be missed")
        withheld, before = self.count("withheld"), len(self.outside.got)
        self.wait(lambda: self.count("withheld") >= withheld + 3, "three rounds more")
        assert len(self.outside.got) == before
        assert self.watchdog._get("/livez")[0] == 200


@pytest.fixture(scope="module")
def installation(server_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    postgres = start_postgres(server_dir / "watched-postgres")
    kafka = start_kafka(server_dir / "watched-kafka", settings=QUICK_GROUPS, java_options=[COMPILED_LIGHTLY])
    migrate(postgres.url)
    folder = tmp_path_factory.mktemp("watchdog")
    with cluster(postgres.url, kafka.bootstrap, fresh_prefix(), folder) as noonmark:
        made = Installation(noonmark, postgres, kafka)
        yield made
        made.outside.close()
    kafka.stop()
    postgres.stop()


def whole(pid: int) -> list[psutil.Process]:
    """A server with all its processes."""
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def send(pid: int, number: signal.Signals) -> None:
    for process in whole(pid):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@pytest.mark.parametrize("service", WATCHED)
def test_a_service_that_is_killed_is_missed_and_its_successor_believed(
    installation: Installation, service: str
) -> None:
    installation.beats()

    installation.nodes[service].kill()
    installation.is_silent_about(service)
    others = [part for part in PARTS if part != service]
    assert all(map(installation.ok, others))

    (installation.nodes[service],) = installation.noonmark.start(service)
    installation.beats()


@pytest.mark.parametrize("service", WATCHED)
def test_a_service_that_stands_still_is_missed_until_it_goes_on(
    installation: Installation, service: str
) -> None:
    installation.beats()
    node: Node = installation.nodes[service]

    node.pause()
    try:
        installation.is_silent_about(service)
    finally:
        node.resume()

    installation.beats()


def test_a_postgres_that_is_killed_is_missed_until_it_is_back(installation: Installation) -> None:
    installation.beats()

    installation.postgres.kill()
    installation.is_silent_about("postgres")
    assert installation.ok("kafka")
    back = start_postgres(installation.postgres.data_dir, port=installation.postgres.port)
    installation.postgres.process = back.process

    installation.beats()


def test_a_postgres_that_stands_still_does_not_hang_the_watchdog(installation: Installation) -> None:
    installation.beats()

    send(installation.postgres.pid, signal.SIGSTOP)
    try:
        installation.is_silent_about("postgres")
        assert installation.ok("kafka")
    finally:
        send(installation.postgres.pid, signal.SIGCONT)

    installation.beats()


def test_a_kafka_that_is_killed_is_missed_until_it_is_back(installation: Installation) -> None:
    installation.beats()

    installation.kafka.kill()
    installation.is_silent_about("kafka")
    assert installation.ok("postgres")
    back = start_kafka(
        installation.kafka.data_dir,
        port=installation.kafka.port,
        settings=QUICK_GROUPS,
        java_options=[COMPILED_LIGHTLY],
    )
    installation.kafka.process = back.process

    installation.beats()


def test_a_kafka_that_stands_still_is_missed_until_it_goes_on(installation: Installation) -> None:
    installation.beats()

    send(installation.kafka.pid, signal.SIGSTOP)
    try:
        installation.is_silent_about("kafka")
        assert installation.ok("postgres")
    finally:
        send(installation.kafka.pid, signal.SIGCONT)

    installation.beats()


def test_the_address_outside_stands_in_no_log(installation: Installation) -> None:
    installation.beats()

    assert "s3cret" not in installation.watchdog.log_file.read_text()
