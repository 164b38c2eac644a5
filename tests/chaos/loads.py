"""The work of one round: every kind that is built, lanes, schedules, overlap rules, failures, orders."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from tests.chaos.world import EMITTED
from tests.support.cluster import ROOT, Cluster
from tests.support.publish import HEADERS, Load, PlannedJob

from noonmark.schemas.jobs.payloads import PAYLOADS

RETRY = {"max_retries": 3, "delay_seconds": 0.2, "jitter": "none"}
LIMIT = "narrow"
NOTE_RUN = ROOT / "tests" / "support" / "note_run.sh"
ORDER = "noonmark.job.{}.v1"
MISSED = ("skip", "latest", "all")


@dataclass(slots=True)
class ChaosLoad(Load):
    """The load of a round, with what is ordered about its jobs."""

    by_schedule: set[str] = field(default_factory=set)
    """Jobs whose instants depend on what is ordered: their schedule is the plan."""
    acknowledged: set[str] = field(default_factory=set)
    refusable: set[str] = field(default_factory=set)
    """Orders that may come when their job is over."""

    # -- before the faults -----------------------------------------------------------------------------

    def prepare(self, at: datetime, instants: int) -> None:
        """Add what recurs, and what is due at a time."""
        self.interval(4, at, instants)
        self.interval(3, at, instants, overlap="skip")
        slow = {"handler": "chaos.slow", "payload": {"seconds": 1.2}}
        for overlap in ("queue_one", "cancel_running"):
            for job in self.interval(1, at, instants, overlap=overlap, **slow):
                job.ends += ["skipped", "cancelled"]
        self.once(40, at, spread_seconds=float(instants))
        for job in self.interval(2, at, instants):
            job.ends += ["skipped", "cancelled"]
            self.by_schedule.add(job.name)

    def orders(self, dice: Random, seconds: float) -> list[tuple[float, dict[str, Any]]]:
        """Pause and resume one job, cancel another, trigger both: each at its moment."""
        paused, cancelled = sorted(self.by_schedule)[:2]
        begin = dice.uniform(0.1, 0.3) * seconds
        return [
            (begin, self._order("pause", paused)),
            (dice.uniform(0.5, 0.9) * seconds, self._order("resume", paused, missed=dice.choice(MISSED))),
            (dice.uniform(0.1, 0.9) * seconds, self._order("trigger", paused)),
            (dice.uniform(0.0, 0.4) * seconds, self._order("trigger", cancelled)),
            (dice.uniform(0.4, 0.9) * seconds, self._order("cancel", cancelled)),
        ]

    def _order(self, kind: str, name: str, **more: Any) -> dict[str, Any]:
        event = self.event({"name": name, **more})
        event["type"] = ORDER.format(kind)
        self.refusable.add(event["id"])
        return event

    # -- while things break ----------------------------------------------------------------------------

    def beat(self, noonmark: Cluster, dice: Random) -> list[dict[str, Any]]:
        """Add some jobs of every kind, due on arrival; return their events."""
        begin, url = len(self.events), noonmark.target_url
        self.now(5)
        self.now(1, "chaos.slow", payload={"seconds": dice.uniform(0.1, 0.8)})
        self.now(1, "chaos.flaky", payload={"fails": 1}, retry=RETRY)
        self.now(1, delivery="at_most_once", ends=("succeeded", "unknown"))
        self.now(1, "chaos.insert", delivery="exactly_once", payload={}, retry=RETRY)
        self.now(1, limits=[LIMIT])
        self.http(1, f"{url}/ok", retry=RETRY)
        rare = dice.randrange(6)
        if rare == 0:
            self.http(1, f"{url}/flaky/1", retry=RETRY)
            self.now(1, "chaos.flaky", payload={"fails": 9}, retry=RETRY | {"max_retries": 1}, ends=["dead"])
        elif rare == 1 and "script" in PAYLOADS:
            payload = {"argv": [str(NOTE_RUN), str(noonmark.target_log)]}
            self._job({"type": "script", "payload": payload, "retry": RETRY}, dice.randrange(3))
        elif rare == 2 and "kafka" in PAYLOADS:
            payload = {"topic": EMITTED, "value": {"n": dice.random()}}
            self._job({"type": "kafka", "payload": payload}, dice.randrange(3))
        elif rare == 3:
            self.now(1, "chaos.alone")
        elif rare == 4:
            self.invalid(1)
        elif rare == 5:
            self.events.append(dice.choice(self.events[begin:]))  # the same event again changes nothing
        return self.events[begin:]

    def as_expected(self, job: PlannedJob) -> list[datetime] | None:
        """Instants as the checker wants them."""
        if job.instants is None:
            return None
        return [] if job.name in self.by_schedule else [datetime.fromisoformat(at) for at in job.instants]


class Publisher:
    """Publishes events while the broker comes and goes, and notes which were acknowledged."""

    def __init__(self, noonmark: Cluster) -> None:
        self._topic = noonmark.topics.submissions
        self._producer = Producer(
            {
                "bootstrap.servers": noonmark.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self.failed: list[str] = []

    def publish(self, load: ChaosLoad, events: list[dict[str, Any]]) -> None:
        """Send without waiting."""
        for event in events:

            def told(error: KafkaError | None, _message: Message, name: str = event["id"]) -> None:
                self.failed.append(error.str()) if error else load.acknowledged.add(name)

            key = f"{load.namespace}/{event['data'].get('name', event['id'])}"
            self._producer.produce(
                self._topic, json.dumps(event).encode(), key.encode(), headers=HEADERS, on_delivery=told
            )
        self._producer.poll(0)

    def poison(self, topic: str, value: bytes | None, key: bytes) -> None:
        """Send bytes."""
        self._producer.produce(topic, value, key)

    def flush(self) -> None:
        """Wait until the broker has everything."""
        left = self._producer.flush(60)
        assert not left, f"{left} events got no answer"
        assert not self.failed, self.failed[0]


def in_whole_seconds(at: datetime) -> datetime:
    """The next whole second."""
    return at.replace(microsecond=0) + timedelta(seconds=1)
