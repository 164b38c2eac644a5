"""An observer without Kafka: what the dispatcher would send is handed to its store, and it looks when it is told."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from tests.integration.store.world import SHARDS, TOPICS, World

from noonmark.kafka.topics import Topics
from noonmark.observer.outcome_store import OutcomeStore
from noonmark.observer.records import Record
from noonmark.observer.watch_loop import WatchLoop
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.alerts import statistics
from noonmark.store.alerts.statistics import Place
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender
from noonmark.telemetry.logs import get_logger

LIFECYCLE = TOPICS.lifecycle
ALERTS = Topics().alerts


class WatchDesk:
    """An observer that leads, on a database that tests have filled."""

    def __init__(self, world: World, url: str, **settings: Any) -> None:
        self.world = world
        settings = {"alert_hold_seconds": 0, **settings}
        self.settings = Settings(
            database_url=url, topic_prefix="t", alert_webhook_url="https://hooks.example.com/noonmark",
            alert_webhook_secret="whsec_" + "A" * 43 + "=", **settings,
        )  # fmt: skip
        self.service = Service("observer", self.settings, Health(), threading.Event(), get_logger())
        membership = Membership("observer", shards=1, timeout_seconds=10)
        membership.leads = True
        topics = Topics("t")
        self.topic = topics.alerts
        self._hints = HintSender(url)
        self.loop = WatchLoop(self.service, membership, topics, self._hints, shards=SHARDS)
        self.store = OutcomeStore(self.service, topics.lifecycle)
        self.values: list[bytes] = []
        self.told_to = 0
        statistics.begin(world.db)
        self.place()

    def close(self) -> None:
        self.store.close()
        self._hints.close()

    def place(self) -> dict[int, int]:
        return self.store.places([Place(0, 0, len(self.values))])

    def record(self, offset: int) -> Record:
        return Record(0, offset, self.world.now().timestamp(), self.values[offset], len(self.values))

    def collect(self) -> None:
        """Put into the topic what runs have told since the last time."""
        rows = self.world.db.execute(
            "select seq, value from outbox where topic = %s and seq > %s order by seq",
            [LIFECYCLE, self.told_to],
        ).fetchall()
        self.values += [bytes(value) for _, value in rows]
        self.told_to = max([self.told_to, *(seq for seq, _ in rows)])

    def hear(self, *, batch: int = 1000) -> None:
        """Read everything that was told."""
        self.collect()
        (row,) = self.world.rows("select next_offset from observer_offsets where topic = 't.lifecycle'")
        offsets = list(range(row["next_offset"], len(self.values)))
        for first in range(0, len(offsets), batch):
            assert self.take(offsets[first : first + batch]) == []

    def take(self, offsets: Sequence[int]) -> list[int]:
        return self.store.take([self.record(offset) for offset in offsets])

    def look(self) -> dict[str, list[dict[str, Any]]]:
        """Look once; return the open alerts by kind."""
        self.loop.check_all(self.world.db)
        rows = self.world.rows("select * from alerts where resolved_at is null order by fingerprint")
        found: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["kind"], []).append(row)
        return found

    def changes(self) -> list[tuple[str, str]]:
        """Kind and change of every event that was told of alerts, in order."""
        events = self.world.column(
            "select convert_from(value, 'UTF8')::json from outbox where topic = %s order by seq", self.topic
        )
        return [(event["data"]["kind"], event["type"].split(".")[2]) for event in events]

    def state(self) -> list[dict[str, Any]]:
        """All that was made of outcomes."""
        return self.world.rows("select * from job_stats order by job_id")

    def counted(self) -> int:
        """Number of outcomes of the last hour, of all jobs."""
        rates = statistics.rates(self.world.db, self.world.column("select job_id from job_stats")).values()
        return sum(one.succeeded + one.failed + one.skipped + one.other for one in rates)
