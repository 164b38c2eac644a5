"""What really happened, gathered from where it was written down: Postgres, Kafka and the target's log.

Nothing here imports noonmark: a checker that shared code with what it checks would share its errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.commits import Commits

LANES = ("high", "normal", "low")


class Job(NamedTuple):
    """A row of `jobs`."""

    id: str
    name: str
    state: str
    created_at: datetime


class Run(NamedTuple):
    """A row of the ledger."""

    id: str
    job: str
    scheduled_for: datetime
    last_scheduled_for: datetime | None
    origin: str
    request: str
    state: str
    reason: str | None
    attempt: int
    fence: int
    started_at: datetime | None


class Call(NamedTuple):
    """A call that the target saw, in the order of its log."""

    run: str
    fence: int
    attempt: int
    key: str
    scheduled_for: datetime
    at: datetime


class Verdict(NamedTuple):
    """An outcome on the lifecycle topic; `event` is the id of the event that carried it."""

    event: str
    run: str
    state: str
    fence: int


class Unpassed(NamedTuple):
    """A partition whose group has not committed up to its end."""

    topic: str
    partition: int
    committed: int
    end: int


@dataclass(slots=True)
class Evidence:
    """Everything the checker judges by, of one namespace."""

    jobs: list[Job] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    attempts: dict[tuple[str, int], str] = field(default_factory=dict)
    """How attempts that did not succeed ended, by (run, fence)."""
    calls: list[Call] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Ids of events with a row in `rejections`."""
    left_over: dict[str, int] = field(default_factory=dict)
    """Rows of tables that are empty when all is done."""
    passed: list[tuple[str, int, str, int]] = field(default_factory=list)
    """(topic, offset, run, fence) of run messages below their group's committed offset."""
    passed_events: list[tuple[str, int, str]] = field(default_factory=list)
    """(topic, offset, event id) of submissions below intake's committed offset."""
    known_events: set[str] = field(default_factory=set)
    """Ids of events in the inbox."""
    unpassed: list[Unpassed] = field(default_factory=list)


class KafkaSide:
    """Reads topics from their beginning without joining a group, and what groups have committed."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._client = {"bootstrap.servers": bootstrap}
        self._prefix = prefix
        self._admin = AdminClient(self._client)
        self._commits = Commits(bootstrap)
        self._consumer = Consumer(
            {
                **self._client,
                "group.id": f"{prefix}.checker",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": False,
                "fetch.wait.max.ms": 20,
            }
        )

    def topics(self) -> dict[str, int]:
        """Partitions of every topic of the prefix."""
        found = self._admin.list_topics(timeout=10).topics
        return {n: len(t.partitions) for n, t in found.items() if n.startswith(f"{self._prefix}.")}

    def group_of(self, topic: str) -> str | None:
        """The group that consumes a topic; None where nobody of ours does."""
        name = topic.removeprefix(f"{self._prefix}.")
        if name.startswith("runs."):
            return f"{self._prefix}.worker.{name.removeprefix('runs.')}"
        return f"{self._prefix}.intake" if name.startswith("submissions") else None

    def committed(self, topics: dict[str, int]) -> dict[tuple[str, int], int]:
        """The committed offset per partition; 0 where there is none."""
        found: dict[tuple[str, int], int] = {}
        for topic, count in topics.items():
            group = self.group_of(topic)
            if group is None:
                continue
            places = [(topic, p) for p in range(count)]
            commits = self._commits.of(group, places)
            for place in places:
                found[place] = commits[place].offset if place in commits else 0
        return found

    def ends(self, topic: str, count: int) -> dict[int, tuple[int, int]]:
        """First and end offset per partition."""
        return {
            p: self._consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)
            for p in range(count)
        }

    def read(self, topics: dict[str, int]) -> Iterable[Any]:
        """Every record that these topics hold now."""
        left: dict[tuple[str, int], int] = {}
        begins = []
        for topic, count in topics.items():
            for partition, (begin, end) in self.ends(topic, count).items():
                if end > begin:
                    left[topic, partition] = end
                    begins.append(TopicPartition(topic, partition, begin))
        missing = sum(left.values()) - sum(held.offset for held in begins)
        self._consumer.assign(begins)
        while left:
            # Asked for no more than there is, the client need not wait for more.
            for message in self._consumer.consume(max(1, min(missing, 1000)), 0.2):
                if message.error():
                    raise RuntimeError(f"{message.topic()}: {message.error()}")
                missing -= 1
                yield message
                held = (message.topic(), message.partition())
                if message.offset() + 1 >= left.get(held, 0):
                    left.pop(held, None)
        self._consumer.unassign()

    def close(self) -> None:
        """Release the clients."""
        self._commits.close()
        self._consumer.close()


def gather(dsn: str, bootstrap: str, prefix: str, log: Path, *, namespace: str, source: str) -> Evidence:
    """Gather all there is about a namespace.

    Committed offsets first, the ledger last: a run only moves on, so what is found unfinished in the end
    was unfinished when its offset was committed.
    """
    found = Evidence()
    kafka = KafkaSide(bootstrap, prefix)
    try:
        _read_kafka(kafka, found, namespace, source)
    finally:
        kafka.close()
    found.calls = read_calls(log, namespace)
    with psycopg.connect(dsn) as connection:
        # One picture, although everything may be in motion.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        _read_ledger(connection, found, namespace, source)
    return found


def _read_kafka(kafka: KafkaSide, found: Evidence, namespace: str, source: str) -> None:
    topics = kafka.topics()
    committed = kafka.committed(topics)
    for topic, count in topics.items():
        group = kafka.group_of(topic)
        if group is not None:
            found.unpassed += [
                Unpassed(topic, p, committed.get((topic, p), 0), end)
                for p, (begin, end) in kafka.ends(topic, count).items()
                if end > max(begin, committed.get((topic, p), 0))
            ]
    wanted = {t: n for t, n in topics.items() if kafka.group_of(t) is not None or t.endswith(".lifecycle")}
    for message in kafka.read(wanted):
        if message.topic().endswith(".lifecycle"):
            found.verdicts += read_verdicts(message.value(), namespace)
        elif message.offset() < committed.get((message.topic(), message.partition()), 0):
            _note_passed(found, message.topic(), message, namespace, source)


def _note_passed(found: Evidence, topic: str, message: Any, namespace: str, source: str) -> None:
    try:
        event = json.loads(message.value())
        data = event["data"]
    except (ValueError, KeyError, TypeError):
        return
    if ".submissions" in topic:
        if event.get("source") == source:
            found.passed_events.append((topic, message.offset(), event["id"]))
    elif data["namespace"] == namespace:
        found.passed.append((topic, message.offset(), data["run_id"], data["fence"]))


def read_verdicts(value: bytes, namespace: str) -> list[Verdict]:
    """The outcomes of a lifecycle event that belong to a namespace."""
    event = json.loads(value)
    if event["type"] != "noonmark.runs.settled.v1":
        return []
    return [
        Verdict(event["id"], outcome["run_id"], outcome["state"], outcome["fence"])
        for outcome in event["data"]["outcomes"]
        if outcome["namespace"] == namespace
    ]


def read_calls(log: Path, namespace: str) -> list[Call]:
    """The calls of a namespace in the target's log."""
    if not log.exists():
        return []
    lines = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    return [
        Call(
            line["run"],
            line["fence"],
            line["attempt"],
            line["key"],
            instant(line["scheduled_for"]),
            datetime.fromtimestamp(line["at"], UTC),
        )
        for line in lines
        if line["event"] == "start" and line["namespace"] == namespace
    ]


def instant(text: str) -> datetime:
    """Read an instant as UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _read_ledger(connection: psycopg.Connection, found: Evidence, namespace: str, source: str) -> None:
    found.jobs = [
        Job(*row)
        for row in connection.execute(
            "select id::text, coalesce(name, ''), state, created_at from jobs where namespace = %s",
            [namespace],
        )
    ]
    found.runs = [
        Run(*row)
        for row in connection.execute(
            "select id::text, job_id::text, scheduled_for, last_scheduled_for, origin, request_id, state, reason,"
            " attempt, fence, started_at from runs where namespace = %s",
            [namespace],
        )
    ]
    found.attempts = {
        (row[0], row[1]): row[2]
        for row in connection.execute(
            "select run_id::text, fence, outcome from attempts where run_id in"
            " (select id from runs where namespace = %s)",
            [namespace],
        )
    }
    found.refused = {
        row[0]
        for row in connection.execute("select event_id from rejections where event_source = %s", [source])
    }
    found.known_events = {
        row[0] for row in connection.execute("select event_id from inbox where source = %s", [source])
    }
    for table, where in (
        ("outbox", "true"),
        ("start_batches", "true"),
        ("slots", "run_id in (select id from runs where namespace = %(namespace)s)"),
        ("waits", "run_id in (select id from runs where namespace = %(namespace)s)"),
        ("timers", "namespace = %(namespace)s"),
    ):
        row = connection.execute(
            f"select count(*) from {table} where {where}", {"namespace": namespace}
        ).fetchone()
        assert row is not None
        found.left_over[table] = row[0]
