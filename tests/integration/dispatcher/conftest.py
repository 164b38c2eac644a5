"""A relay for each test, and what it has to send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest
from tests.integration.dispatcher.line import BATCH, MESSAGES_OF_RUNS, Line
from tests.integration.store.world import open_world
from tests.support.stack import Kafka

from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.store.cluster.pools import register_pool


@pytest.fixture
def line(emptied_database: str, kafka_server: Kafka) -> Iterator[Line]:
    with open_world(emptied_database) as world:
        line = Line(world, emptied_database, kafka_server.bootstrap)
        yield line
        line.runs.ending(world.db)
        line.events.ending(world.db)


@pytest.fixture
def other(line: Line) -> psycopg.Connection:
    """The session of somebody who locks rows of the outbox."""
    ensure_topics(KafkaConfig(line.bootstrap), line.topics.pool_specs("good"))
    register_pool(line.world.db, "good")
    line.world.db.execute("set lock_timeout = '300ms'")
    return line.world.another()


@pytest.fixture
def waiting(line: Line) -> list[UUID]:
    """Queued runs of pool `good`, whose topics have two partitions."""
    specs = [replace(spec, partitions=2) for spec in line.topics.pool_specs("good")]
    ensure_topics(KafkaConfig(line.bootstrap), specs)
    register_pool(line.world.db, "good")
    for _ in range(BATCH):
        line.world.put_run("queued", pool="good", shard=0)
    line.world.db.execute(MESSAGES_OF_RUNS, ["good"])
    return line.world.column("select id from runs order by id")
