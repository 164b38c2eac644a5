"""A ledger whose events were relayed to a real Kafka, and can be edited before."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from confluent_kafka import Producer
from tests.integration.store.world import TOPICS, World
from tests.integration.verify.ledgers import LATER, Ledger, write_ledger

from noonmark.cli.verify.event_store import EventStore
from noonmark.cli.verify.findings import Report
from noonmark.cli.verify.pacing import Pacer
from noonmark.cli.verify.walk import EventSource, LedgerCheck, Window
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers.ranges import RangeReader
from noonmark.kafka.topics import PartitionCounts, Topics
from noonmark.schemas.events.lifecycle import dead_event
from noonmark.schemas.events.settled import settled_event
from noonmark.store.database.connect import connect
from noonmark.store.verify.reader import LedgerReader

AGO = timedelta(hours=2)
"""The age of the oldest records: the topics are complete since then."""


@dataclass
class Announced:
    """A ledger, and the events about it that will be in Kafka.

    `lifecycle` and `dead` are parsed events in their order; `older`: whether there are records before them.
    """

    ledger: Ledger
    config: KafkaConfig
    topics: Topics
    folder: Path
    lifecycle: list[dict[str, Any]] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    older: bool = True

    def outcomes(self, run: UUID) -> list[dict[str, Any]]:
        return [
            one for event in self.lifecycle for one in event["data"]["outcomes"] if one["run_id"] == str(run)
        ]

    def without(self, run: UUID, keep: Callable[[dict[str, Any]], bool] = lambda _one: False) -> None:
        """Lose the outcomes of a run."""
        for event in self.lifecycle:
            told = event["data"]["outcomes"]
            event["data"]["outcomes"] = [one for one in told if one["run_id"] != str(run) or keep(one)]

    def publish(self) -> None:
        """Create the topics, and send the events."""
        specs = self.topics.base_specs(counts=PartitionCounts(lifecycle=6))
        # The older records are dated here, not by the broker.
        ensure_topics(
            self.config,
            [
                replace(spec, config=spec.config | {"message.timestamp.type": "CreateTime"})
                for spec in specs
                if spec.name in {self.topics.lifecycle, self.topics.dead}
            ],
        )
        producer = Producer(self.config.client())
        if self.older:
            ago = round((datetime.now(UTC) - AGO).timestamp() * 1000)
            producer.produce(self.topics.lifecycle, settled_event("tests", []), b"tests", timestamp=ago)
            producer.produce(self.topics.dead, _another_death(), timestamp=ago)
        for event in self.lifecycle:
            producer.produce(self.topics.lifecycle, json.dumps(event).encode(), event["subject"].encode())
        for event in self.dead:
            producer.produce(self.topics.dead, json.dumps(event).encode(), event["subject"].encode())
        assert producer.flush(30) == 0

    def check(self, *, pacer: Pacer | None = None, **window: Any) -> Report:
        with connect(self.ledger.world.url, application="test", autocommit=True) as connection:
            kafka = RangeReader(self.config, [self.topics.lifecycle, self.topics.dead])
            store = EventStore(self.folder / f"{uuid4()}.db")
            try:
                given = Window(**window)
                reader = LedgerReader(connection, namespaces=given.namespaces, digests=True)
                source = EventSource(kafka, store)
                return LedgerCheck(reader, given, pacer or Pacer(1), self.topics, events=source).run()
            finally:
                store.close()
                kafka.close()


def announced_ledger(world: World, bootstrap: str, folder: Path) -> Announced:
    """Write a good ledger, and take its events out of the outbox; then time passes."""
    prefix = f"verify-{uuid4().hex[:12]}"
    found = Announced(
        write_ledger(world), KafkaConfig(bootstrap, topic_prefix=prefix), Topics(prefix), folder
    )
    for topic, value in world.db.execute(
        "select topic, value from outbox where value is not null order by created_at, seq"
    ).fetchall():
        events = {TOPICS.lifecycle: found.lifecycle, TOPICS.dead: found.dead}[topic]
        events.append(json.loads(value))
    world.db.execute("delete from outbox")
    world.turn_clock(LATER)
    return found


def _another_death() -> bytes:
    """The dead letter event of a run that is not in the ledger any more."""
    ago = datetime.now(UTC) - AGO
    return dead_event(
        run_id=uuid4(),
        job_id=uuid4(),
        namespace="tests",
        scheduled_for=ago,
        origin="schedule",
        reason="retries_exhausted",
        attempts=1,
        fence=1,
        lane="normal",
        pool="default",
        finished_at=ago,
        error="no luck",
    )
