"""The bare design takes every job through Postgres and Kafka to its outcome, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from benchmarks.bare.measure import RunningBareDesign
from confluent_kafka.admin import AdminClient
from tests.support.stack import Kafka, Postgres

BURST = 1500
RATE = 200.0
SECONDS = 1.0


@pytest.fixture
def empty_database(postgres_server: Postgres) -> Iterator[str]:
    postgres_server.run("create database bare_design")
    yield postgres_server.url_of("bare_design")
    postgres_server.drop("bare_design")


def postmaster(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    return int(row[0].split()[0])


def test_a_burst_and_an_open_loop_are_measured(empty_database: str, kafka_server: Kafka, tmp_path):
    servers = {"postgres": postmaster(empty_database)}
    with RunningBareDesign(empty_database, kafka_server.bootstrap, servers, tmp_path) as bare:
        burst = bare.measure_burst(BURST)
        window = bare.measure_open_loop(rate=RATE, seconds=SECONDS)

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

    with psycopg.connect(empty_database) as connection:
        states = connection.execute("select state, count(*) from runs group by state").fetchall()
        left = connection.execute(
            "select (select count(*) from timers), (select count(*) from outbox)"
        ).fetchone()
        sessions = connection.execute(
            "select application_name from pg_stat_activity where application_name like 'bare-%'"
        ).fetchall()
    assert (dict(states), left, sessions) == ({"succeeded": BURST + 200}, (0, 0), [])
    topics = AdminClient({"bootstrap.servers": kafka_server.bootstrap}).list_topics(timeout=10).topics
    assert [name for name in topics if name.startswith("bare-")] == []
