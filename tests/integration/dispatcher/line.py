"""A dispatcher's relay with its database and its topics, for the tests of this folder."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from confluent_kafka import Consumer, TopicPartition
from tests.integration.store.world import World

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane
from noonmark.dispatcher.event_relay import EventRelay
from noonmark.dispatcher.run_relay import RunRelay
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import Topics, TopicSpec
from noonmark.schemas.events.settled import SettledRun
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.telemetry.logs import get_logger

BATCH = 40
SLICES = (0, 1, 2, 3)
MESSAGES_OF_RUNS = """
    insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
    select shard, lane, now(), id, job_id, scheduled_for, fence, job_version, namespace, pool
    from runs where pool = %s order by id
"""


class Line:
    """A dispatcher's relay, its database before it, and the topics behind it."""

    def __init__(self, world: World, url: str, bootstrap: str) -> None:
        self.world = world
        self.bootstrap = bootstrap
        self.prefix = f"t{uuid.uuid4().hex[:12]}"
        self.topics = Topics(self.prefix)
        settings = Settings(
            database_url=url, kafka_bootstrap=bootstrap, topic_prefix=self.prefix, relay_batch=BATCH
        )
        self.service = Service("dispatcher", settings, Health(), threading.Event(), get_logger())
        membership = Membership("dispatcher", shards=4, timeout_seconds=10)
        membership.owned = SLICES
        self.runs = RunRelay(self.service, membership, self.topics, HintSender(url), shards=4)
        self.events = EventRelay(self.service, membership)

    def topic(self, name: str, **config: str) -> str:
        full = f"{self.prefix}x.{name}"
        ensure_topics(KafkaConfig(self.bootstrap), [TopicSpec(full, 1, 1, config)])
        return full

    def emit(self, topic: str, *values: str, slice_: int = 0, headers: list[list[str]] | None = None) -> None:
        self.world.db.execute(
            """insert into outbox (slice, lane, created_at, topic, key, value, headers)
               select %s, 3, now(), %s, 'k', value::bytea, %s from unnest(%s::text[]) with ordinality as u (value, n)
               order by n""",
            [slice_, topic, orjson.dumps(headers or []), list(values)],
        )

    def pass_until(self, holds: Callable[[], Any], passes: int = 200) -> int:
        for n in range(passes):
            if holds():
                return n
            self.runs.run_once(self.world.db)
            pause = self.events.run_once(self.world.db)
            self.events.wake.wait(min(pause, 0.2))
        raise AssertionError(
            f"not within {passes} passes: {self.world.rows('select lane, topic, refusal, count(*) from outbox group by 1, 2, 3')}"
        )

    def received(self, topic: str, count: int, weigh: Callable[[Any], int] = lambda _: 1) -> list[Any]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": uuid.uuid4().hex,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        got: list[Any] = []
        try:
            for _ in range(300):
                got += [m for m in consumer.consume(count - len(got), 0.1) if m.error() is None]
                if sum(map(weigh, got)) >= count:
                    break
        finally:
            consumer.close()
        return got


def outcome(namespace: str, fence: int) -> SettledRun:
    return SettledRun(
        run_id=uuid7(),
        job_id=uuid7(),
        namespace=namespace,
        scheduled_for=datetime(2026, 6, 1, 9, tzinfo=UTC),
        origin="schedule",
        state="succeeded",
        reason=None,
        attempt=1,
        fence=fence,
        lane="normal",
        pool="default",
        started_at=None,
        finished_at=None,
        error=None,
    )


def queue_runs(line: Line, count: int, lane: Lane, pool: str = "good") -> None:
    for _ in range(count):
        line.world.put_run("queued", pool=pool, shard=0, lane=int(lane))
    line.world.db.execute(
        f"{MESSAGES_OF_RUNS.replace('where pool', 'where lane = %s and pool')}", [int(lane), pool]
    )


def counted(line: Line, topic: str) -> int:
    """Number of records of a topic."""
    consumer = Consumer({"bootstrap.servers": line.bootstrap, "group.id": uuid.uuid4().hex})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, n), 10)[1] for n in partitions]
    consumer.close()
    return sum(ends)


def relay_all(line: Line) -> None:
    line.pass_until(lambda: line.world.count("outbox") == 0)
