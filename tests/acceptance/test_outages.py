"""Postgres and Kafka go away under load and come back: nobody is declared lost, and nothing is."""

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.cluster import SERVICES, Cluster, cluster, fresh_prefix
from tests.support.publish import Load, soon
from tests.support.stack import QUICK_GROUPS, Kafka

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, KafkaServer, start_kafka
from noonmark.devstack.postgres.server import PostgresServer, start_postgres
from noonmark.store.migrations.migrate import migrate

AWAY_SECONDS = 30.0
IN_FLIGHT = 1000


@pytest.fixture
def own_postgres(server_dir: Path) -> Iterator[PostgresServer]:
    """A server that a test may kill; what runs on its port in the end is stopped."""
    server = start_postgres(server_dir / "own-postgres")
    migrate(server.url)
    yield server
    server.stop()


@pytest.fixture
def own_kafka(server_dir: Path) -> Iterator[KafkaServer]:
    """A broker that a test may kill."""
    server = start_kafka(server_dir / "own-kafka", settings=QUICK_GROUPS, java_options=[COMPILED_LIGHTLY])
    yield server
    server.stop()


@pytest.mark.slow
def test_postgres_away_with_a_thousand_runs_in_flight_loses_none(
    own_postgres: PostgresServer, kafka_server: Kafka, topic_prefix: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with cluster(own_postgres.url, kafka_server.bootstrap, topic_prefix, tmp_path) as noonmark:
        noonmark.start("intake", "trigger", "dispatcher")
        noonmark.start("worker", worker_slots="1200")
        load = Load()
        load.now(IN_FLIGHT, "chaos.gate", payload={"gate": str(gate)})
        noonmark.publish(load)
        noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == IN_FLIGHT, "every handler to begin")

        own_postgres.kill()
        back_at = time.monotonic() + AWAY_SECONDS
        # All of them end while nobody can be told.
        gate.touch()
        noonmark.wait(lambda: len(noonmark.calls(load.namespace, "end")) == IN_FLIGHT, "every handler to end")
        # The length of the outage is what is tested: ten leases of silence.
        time.sleep(max(0.0, back_at - time.monotonic()))
        server = start_postgres(own_postgres.data_dir, port=own_postgres.port)
        own_postgres.process = server.process

        report = noonmark.assert_clean(load)
        assert report["calls"] == IN_FLIGHT
        assert noonmark.rows(
            "select state, attempt, losses, fence, count(*) from runs group by 1, 2, 3, 4"
        ) == [("succeeded", 1, 0, 1, IN_FLIGHT)]
        assert noonmark.value("select count(*) from attempts") == 0
        assert noonmark.value("select count(*) from workers where lapsed_at is not null") == 0
        # All goes on as before.
        more = Load()
        more.once(30, soon(1))
        noonmark.publish(more)
        noonmark.assert_clean(more)


@pytest.mark.slow
def test_a_broker_that_was_away_gets_everything_in_the_end(
    own_kafka: KafkaServer, database_url: str, tmp_path: Path
) -> None:
    with cluster(database_url, own_kafka.bootstrap, fresh_prefix(), tmp_path) as noonmark:
        noonmark.start(*SERVICES)
        with noonmark.standing_clock():
            load = Load()
            load.now(150, "chaos.slow", payload={"seconds": 0.5})
            load.once(150, noonmark.soon(1), spread_seconds=2)
            load.interval(5, noonmark.soon(1), instants=4)
            noonmark.take_in(load)
            noonmark.wait(lambda: len(noonmark.calls(load.namespace)) >= 50, "runs to be under way")
            own_kafka.kill()
        # What comes due meanwhile is claimed, and waits in the outbox.
        noonmark.wait(lambda: backlog(noonmark) >= 150, "work to come due without a broker")
        assert all(node.alive for node in noonmark.nodes)
        server = start_kafka(
            own_kafka.data_dir, port=own_kafka.port, settings=QUICK_GROUPS, java_options=[COMPILED_LIGHTLY]
        )
        own_kafka.process = server.process

        noonmark.assert_clean(load)
        assert noonmark.rows("select distinct losses from runs") == [(0,)]


def backlog(noonmark: Cluster) -> int:
    """Queued runs in the outbox."""
    return noonmark.value(
        "select coalesce(sum(coalesce(cardinality(run_ids), 1)), 0)::int from outbox where value is null"
    )


@pytest.mark.slow
def test_a_postgres_that_stands_still_loses_nobody_when_it_goes_on(
    own_postgres: PostgresServer, kafka_server: Kafka, topic_prefix: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with cluster(own_postgres.url, kafka_server.bootstrap, topic_prefix, tmp_path) as noonmark:
        noonmark.start(*SERVICES)
        load = Load()
        load.now(200, "chaos.gate", payload={"gate": str(gate)})
        noonmark.publish(load)
        noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 200, "every handler to begin")
        stand_still(own_postgres, 12.0)
        noonmark.wait(
            lambda: noonmark.value("select max(beat_at) > noonmark_now() - interval '1 second' from workers"),
            "a beat",
        )
        gate.touch()
        noonmark.assert_clean(load)
        assert noonmark.rows("select distinct losses, fence from runs") == [(0, 1)]


def stand_still(server: PostgresServer, seconds: float) -> None:
    """Stop every process of a server for a while."""

    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    for process in family:
        process.suspend()
    time.sleep(seconds)
    for process in family:
        process.resume()
