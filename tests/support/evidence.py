"""What really happened, gathered from where it was written down: Postgres, Kafka and the targets' log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.commits import Commits
from tests.support.ledger import read_ledger
from tests.support.run_messages import runs_of

from noonmark.verify import History
from noonmark.verify.events import instant, read_death, read_outcomes
from noonmark.verify.history import Call, LifecycleRecord, Message, Passed, Unpassed

LANES = ("high", "normal", "low")


class Place(NamedTuple):
    """Where to look, and for what.

    Attributes:
        dsn: of the database.
        bootstrap: of the broker.
        prefix: of the topics.
        log: the targets' log.
        namespaces: whose jobs.
        sources: of the events that made them.
        emitted: a topic that jobs write events to: it is a target like any other.
        digests: whether every process sends digests with outcomes: releases before 0.3.0 do not.
    """

    dsn: str
    bootstrap: str
    prefix: str
    log: Path
    namespaces: Sequence[str]
    sources: Sequence[str]
    emitted: str | None = None
    digests: bool = True


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


def gather(place: Place) -> History:
    """Gather all there is about some namespaces, in an order that holds while everything moves.

    Committed offsets, lifecycle events and calls come before the ledger: a run only moves on, so what is
    found unfinished in the end was unfinished when its offset was committed. Run messages come after it:
    what had left the outbox by then is in Kafka.
    """
    found = History(judged_at=datetime.now(UTC))
    kafka = KafkaSide(place.bootstrap, place.prefix)
    try:
        topics = kafka.topics()
        committed = kafka.committed(topics)
        _note_lags(kafka, found, topics, committed)
        lifecycle = {topic: count for topic, count in topics.items() if topic.endswith(".lifecycle")}
        for message in kafka.read(lifecycle):
            found.lifecycle += read_told(message.value(), place.namespaces, digests=place.digests)
        dead = {topic: count for topic, count in topics.items() if topic.endswith(".dead")}
        deaths = (read_death(message.value()) for message in kafka.read(dead))
        found.deaths = [death for death in deaths if death.namespace in place.namespaces]
        emitted = {} if place.emitted is None else read_emitted(kafka, place.emitted, place.namespaces)
        found.calls = [*read_calls(place.log, place.namespaces), *emitted.values()]
        with psycopg.connect(place.dsn) as connection:
            # One picture, although everything may be in motion.
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            read_ledger(connection, found, list(place.namespaces), list(place.sources))
        consumed = {topic: count for topic, count in topics.items() if kafka.group_of(topic) is not None}
        for message in kafka.read(consumed):
            passed = message.offset() < committed.get((message.topic(), message.partition()), 0)
            _note(found, message, place, passed=passed)
    finally:
        kafka.close()
    return found


def _note_lags(
    kafka: KafkaSide, found: History, topics: dict[str, int], committed: dict[tuple[str, int], int]
) -> None:
    for topic, count in topics.items():
        if kafka.group_of(topic) is None:
            continue
        found.unpassed += [
            Unpassed(topic, p, committed.get((topic, p), 0), end)
            for p, (begin, end) in kafka.ends(topic, count).items()
            if end > max(begin, committed.get((topic, p), 0))
        ]


def _note(found: History, message: Any, place: Place, *, passed: bool) -> None:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    try:
        event = json.loads(message.value())
        if ".submissions" in topic:
            if event["source"] in place.sources and passed:
                found.passed.append(Passed(topic, partition, offset, event=event["id"]))
            return
        for data in runs_of(event):
            if data["namespace"] not in place.namespaces:
                continue
            run, fence = data["run_id"], data["fence"]
            version, due = data["job_version"], instant(data["scheduled_for"])
            found.messages.append(Message(topic, offset, run, fence, data["namespace"], version, due))
            if passed:
                found.passed.append(Passed(topic, partition, offset, run, fence))
    except (ValueError, KeyError, TypeError):
        if passed and ".submissions" in topic:
            # No event of ours: it must be among the rejections by its place.
            found.passed.append(Passed(topic, partition, offset))


def read_told(value: bytes, namespaces: Sequence[str], *, digests: bool = True) -> list[LifecycleRecord]:
    """The outcomes of a lifecycle event that belong to some namespaces; `digests` as in `read_outcomes`."""
    return [told for told in read_outcomes(value, digests=digests) if told.namespace in namespaces]


def read_calls(log: Path, namespaces: Sequence[str]) -> list[Call]:
    """The calls of some namespaces in the targets' log."""
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
            line["namespace"],
            datetime.fromtimestamp(line["at"], UTC) + RESOLUTION,
            line["pid"],
            line.get("accepted"),
            json.dumps(line["returns"]) if "returns" in line else None,
        )
        for line in lines
        if line["event"] == "start" and line["namespace"] in namespaces
    ]


def read_emitted(kafka: KafkaSide, topic: str, namespaces: Sequence[str]) -> dict[str, Call]:
    """Events of jobs as calls, by their id: the relay may send one twice, and receivers tell it by that."""
    found = {}
    for message in kafka.read({topic: 1}):
        told = {name: value.decode() for name, value in message.headers() or ()}
        key = told["noonmark-idempotency-key"]
        namespace = told["ce_source"].split("/")[2]
        if namespace in namespaces:
            run, fence = told["noonmark-run-id"], int(told["noonmark-fence"])
            at, scheduled_for = instant(told["ce_time"]), instant(key.split("/")[1])
            found[told["ce_id"]] = Call(run, fence, None, key, scheduled_for, namespace, at)
    return found


RESOLUTION = timedelta(microseconds=1)
"""What a float of seconds loses of an instant."""
