"""Submissions as real events, and the plan that says what must become of each."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

HEADERS = [("content-type", b"application/cloudevents+json")]
LANES = ("high", "normal", "low")


@dataclass(slots=True)
class PlannedJob:
    """One accepted submission. `instants` None: due on arrival, exactly one run."""

    name: str
    instants: list[str] | None = None
    ends: list[str] = field(default_factory=lambda: ["succeeded"])


@dataclass(slots=True)
class Load:
    """Events of one namespace to publish, and the plan for the checker. Names are unique in it."""

    namespace: str = field(default_factory=lambda: f"ns-{uuid.uuid4().hex[:10]}")
    jobs: list[PlannedJob] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The `source` of every event of this load."""
        return f"/tests/{self.namespace}"

    @property
    def instants(self) -> int:
        """How many runs there will be."""
        return sum(1 if job.instants is None else len(job.instants) for job in self.jobs)

    def write_plan(self, file: Path) -> Path:
        """Write what the checker compares with."""
        plan = {
            "namespace": self.namespace,
            "source": self.source,
            "jobs": [asdict(job) for job in self.jobs],
            "rejected": self.rejected,
        }
        file.write_text(json.dumps(plan), encoding="utf-8")
        return file

    # -- submissions -----------------------------------------------------------------------------------

    def now(
        self, count: int, handler: str = "chaos.record", ends: Sequence[str] = ("succeeded",), **document: Any
    ) -> list[PlannedJob]:
        """Python jobs that are due on arrival, over the lanes unless a `priority` is given."""
        made = [
            self._job({"type": "python", "handler": handler, **document}, index) for index in range(count)
        ]
        for job in made:
            job.ends = list(ends)
        return made

    def once(
        self,
        count: int,
        first: datetime,
        spread_seconds: float = 0.0,
        handler: str = "chaos.record",
        **doc: Any,
    ) -> list[PlannedJob]:
        """Python jobs at one instant each, evenly spread from `first` on."""
        made = []
        for index in range(count):
            at = (first + timedelta(seconds=spread_seconds * index / count)).astimezone(UTC)
            job = self._job({"type": "python", "handler": handler, "run_at": at.isoformat(), **doc}, index)
            job.instants = [at.isoformat()]
            made.append(job)
        return made

    def interval(
        self, count: int, start: datetime, instants: int, every_seconds: float = 1.0, **document: Any
    ) -> list[PlannedJob]:
        """Recurring jobs that end after so many instants. Each instant runs unless the document says else."""
        made = []
        for index in range(count):
            at = [start + timedelta(seconds=every_seconds * n) for n in range(instants)]
            schedule = {"every": every_seconds, "start": at[0].isoformat(), "end": at[-1].isoformat()}
            rules = {"misfire": "fire_all", "overlap": "allow", **document}
            job = self._job(
                {"type": "python", "handler": "chaos.record", "schedule": schedule, **rules}, index
            )
            job.instants = [instant.isoformat() for instant in at]
            if rules["overlap"] == "skip":
                job.ends.append("skipped")
            made.append(job)
        return made

    def http(
        self, count: int, url: str, ends: Sequence[str] = ("succeeded",), **document: Any
    ) -> list[PlannedJob]:
        """HTTP calls that are due on arrival."""
        payload = {"url": url, "method": "POST", "headers": {"X-Namespace": self.namespace}, "body": {"n": 1}}
        made = [self._job({"type": "http", "payload": payload, **document}, n) for n in range(count)]
        for job in made:
            job.ends = list(ends)
        return made

    def duplicates(self, count: int) -> None:
        """The same events once more: they must change nothing."""
        self.events += self.events[:count]

    def invalid(self, count: int) -> None:
        """Submissions that must be refused."""
        for _ in range(count):
            document = {
                "name": f"bad-{len(self.events)}",
                "type": "python",
                "handler": "x",
                "max_retries": "3",
            }
            self.rejected.append(self.event(document)["id"])

    def _job(self, document: dict[str, Any], index: int) -> PlannedJob:
        planned = PlannedJob(f"job-{len(self.jobs)}")
        self.jobs.append(planned)
        self.event({"priority": LANES[index % 3], **document, "name": planned.name})
        return planned

    def event(self, document: dict[str, Any]) -> dict[str, Any]:
        event = {
            "specversion": "1.0",
            "id": f"{len(self.events)}-{uuid.uuid4().hex[:8]}",
            "source": self.source,
            "type": "noonmark.job.create.v1",
            "data": {"namespace": self.namespace, **document},
        }
        self.events.append(event)
        return event


def unsigned(prefix: str, namespace: str = "*") -> str:
    """NOONMARK_BOUND_TOPICS under which events of both submission topics need no signature."""
    return f"{prefix}.submissions={namespace},{prefix}.submissions.bulk={namespace}"


def soon(seconds: float) -> datetime:
    """An instant from now, in UTC and whole milliseconds."""
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def publish(bootstrap: str | dict[str, Any], topic: str, events: Sequence[dict[str, Any]]) -> None:
    """Publish events with a plain Kafka client and wait until the broker has all of them.

    Args:
        bootstrap: address of the broker, or properties of a client that connects as a user.
        topic: where to.
        events: what.
    """
    producer = Producer(
        {
            **({"bootstrap.servers": bootstrap} if isinstance(bootstrap, str) else bootstrap),
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": max(100_000, len(events)),
        }
    )
    failed: list[str] = []
    for event in events:
        key = f"{event['data'].get('namespace', 'default')}/{event['data'].get('name', event['id'])}"
        producer.produce(
            topic,
            json.dumps(event).encode(),
            key.encode(),
            headers=HEADERS,
            on_delivery=lambda error, _message: failed.append(error.str()) if error else None,
        )
    left = producer.flush(20 + len(events) / 2_000)
    assert not failed, failed[0]
    assert not left, f"{left} events got no answer"
