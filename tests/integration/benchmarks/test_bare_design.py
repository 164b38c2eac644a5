"""The bare design takes every job through Postgres and Kafka to its outcome, and leaves nothing behind."""

from __future__ import annotations

import psycopg
from benchmarks.bare.measure import RunningBareDesign
from confluent_kafka.admin import AdminClient
from tests.integration.benchmarks.servers import SessionServers
from tests.support.stack import Kafka, Postgres

BURST = 1500
RATE = 200.0
SECONDS = 1.0


def test_a_burst_and_an_open_loop_are_measured(postgres_server: Postgres, kafka_server: Kafka, tmp_path):
    servers = SessionServers(postgres_server, kafka_server.bootstrap, tmp_path)
    with servers.other_database("bare") as url:
        with RunningBareDesign(url, servers.bootstrap, servers.pids(), tmp_path) as bare:
            burst = bare.measure_burst(BURST)
            window = bare.measure_open_loop(rate=RATE, seconds=SECONDS)
        with psycopg.connect(url) as connection:
            states = connection.execute("select state, count(*) from runs group by state").fetchall()
            left = connection.execute(
                "select (select count(*) from timers), (select count(*) from outbox)"
            ).fetchone()
            sessions = connection.execute(
                "select application_name from pg_stat_activity where application_name like 'bare-%'"
            ).fetchall()

    assert (burst.runs, burst.lost) == (BURST, 0)
    assert burst.wal_bytes_per_run > 0
    assert {"postgres", "trigger", "dispatcher", "worker"} <= set(burst.cpu_us_by_process)
    # The largest batch has 1,000 runs, so there are two at least.
    assert burst.runs_per_start is not None
    assert 1 <= burst.runs_per_start <= BURST / 2
    assert (window.runs, window.not_started) == (200, 0)
    assert window.lateness_ms is not None
    assert window.handler_lateness_ms is not None
    assert window.lateness_ms.count == window.handler_lateness_ms.count == 200
    assert 0 <= window.lateness_ms.p50 <= window.handler_lateness_ms.max

    assert (dict(states), left, sessions) == ({"succeeded": BURST + 200}, (0, 0), [])
    topics = AdminClient({"bootstrap.servers": kafka_server.bootstrap}).list_topics(timeout=30).topics
    assert [name for name in topics if name.startswith("bare-")] == []
