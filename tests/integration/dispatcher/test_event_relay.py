"""The relay of events on a real Kafka: what cannot be sent holds up nothing else, and nothing is lost."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from tests.integration.dispatcher.line import BATCH, MESSAGES_OF_RUNS, SLICES, Line, outcome

from noonmark.core.states import Lane
from noonmark.dispatcher import refused_events
from noonmark.dispatcher.job_events import JobEventSender
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.producers.delivery import (
    OutboundMessage,
    unacknowledged_topic,
)
from noonmark.kafka.producers.producer import BatchResult
from noonmark.kafka.topics import TopicSpec
from noonmark.store.cluster.pools import register_pool
from noonmark.store.outcomes.events import EventTopics, announce

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def test_an_event_travels_with_its_headers_and_its_key(line: Line) -> None:
    topic = line.topic("events")
    line.emit(topic, "one", headers=[["ce_id", "r/0"], ["name", "\u00e9"]])
    line.pass_until(lambda: line.world.count("outbox") == 0)

    (message,) = line.received(topic, 1)
    assert (message.key(), message.value()) == (b"k", b"one")
    assert message.headers() == [("ce_id", b"r/0"), ("name", "\u00e9".encode())]


def test_outcomes_of_namespaces_are_spread_over_all_partitions_each_in_one_in_its_order(line: Line) -> None:
    partitions, names = 6, [f"team-{n}" for n in range(120)]
    lifecycle = line.topics.lifecycle
    ensure_topics(KafkaConfig(line.bootstrap), [TopicSpec(lifecycle, partitions, 1)])
    topics = EventTopics(lifecycle=lifecycle, dead=line.topics.dead)
    for fence in (1, 2):
        announce(line.world.db, topics, [outcome(name, fence) for name in names], shards=len(SLICES))
    line.pass_until(lambda: line.world.count("outbox") == 0)

    messages = line.received(lifecycle, 2 * len(names))
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for message in messages:
        (told,) = orjson.loads(message.value())["data"]["outcomes"]
        assert message.key().decode() == told["namespace"]
        found[told["namespace"]].append((message.partition(), told["fence"]))
    assert found.keys() == set(names)
    sizes: Counter[int] = Counter()
    for events in found.values():
        assert len({partition for partition, _ in events}) == 1
        assert [fence for _, fence in events] == [1, 2]
        sizes[events[0][0]] += 1
    # 20 on average: none is empty, and none has twice its share.
    assert len(sizes) == partitions
    assert max(sizes.values()) < 40


def test_a_bad_topics_events_at_the_head_of_a_slice_hold_up_nothing(line: Line) -> None:
    good = line.topic("good")
    # Three times what is read at once of one slice, before anything that can be sent.
    line.emit(f"{line.prefix}x.absent", *[f"bad-{n}" for n in range(BATCH * 3)])
    line.emit(good, *[f"good-{n:03}" for n in range(BATCH * 2)])
    line.emit(good, "other", slice_=1)
    line.pass_until(lambda: line.world.count("outbox", "lane = 3") == 0)

    values = [message.value().decode() for message in line.received(good, BATCH * 2 + 1)]
    assert [v for v in values if v != "other"] == [f"good-{n:03}" for n in range(BATCH * 2)]
    assert line.world.count("outbox", "lane = 4") == BATCH * 3
    (reason,) = set(line.world.column("select refusal from outbox"))
    assert f"{line.prefix}x.absent" in reason


def test_refused_events_go_out_in_their_order_once_the_topic_is_there(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_events, "ROUND_SECONDS", 0.3)
    line.emit(f"{line.prefix}x.late", *[f"{n:03}" for n in range(250)])
    line.pass_until(lambda: line.world.count("outbox", "lane = 4") == 250)

    topic = line.topic("late")
    line.pass_until(lambda: line.world.count("outbox") == 0)

    assert [m.value().decode() for m in line.received(topic, 250)] == [f"{n:03}" for n in range(250)]


def test_an_event_too_large_for_its_topic_is_refused_alone(line: Line) -> None:
    topic = line.topic("small", **{"max.message.bytes": "2000"})
    noise = uuid.uuid4().hex + "".join(uuid.uuid4().hex for _ in range(300))
    line.emit(topic, "before", noise, "after")
    line.pass_until(lambda: line.world.count("outbox", "lane = 3") == 0)

    assert [m.value() for m in line.received(topic, 2)] == [b"before", b"after"]
    assert line.world.column("select value from outbox where lane = 4") == [noise.encode()]


def test_a_bad_pools_messages_at_the_head_of_a_slice_hold_up_nothing(line: Line) -> None:
    ensure_topics(KafkaConfig(line.bootstrap), line.topics.pool_specs("good"))
    for pool in ("good", "bad"):
        register_pool(line.world.db, pool)
    for pool in ("bad", "keyless", "good"):
        for _ in range(BATCH):
            line.world.put_run("queued", pool=pool, shard=0)
        line.world.db.execute(MESSAGES_OF_RUNS, [pool])

    line.pass_until(lambda: line.world.count("outbox") == 0)

    assert len(line.received(line.topics.runs("good", Lane.NORMAL), BATCH)) == BATCH
    states = line.world.rows(
        "select pool, state, reason, count(*) as runs from runs group by 1, 2, 3 order by 1"
    )
    assert [(row["pool"], row["state"], row["reason"], row["runs"]) for row in states] == [
        ("bad", "waiting", "undeliverable", BATCH),
        ("good", "queued", None, BATCH),
        ("keyless", "waiting", "undeliverable", BATCH),
    ]


def test_a_backlog_of_events_goes_out_at_once_and_not_a_batch_every_moment(line: Line) -> None:
    topic = line.topic("many")
    line.emit(topic, *[f"{n:04}" for n in range(400)])
    pauses = []
    while line.world.count("outbox"):
        pauses.append(line.events.run_once(line.world.db))
        assert len(pauses) <= 45
    # Ten of one slice are read at once: forty passes without a wait between them.
    assert pauses[:40] == [0.0] * 40
    assert [m.value().decode() for m in line.received(topic, 400)] == [f"{n:04}" for n in range(400)]


class Deaf:
    """A producer whose messages for one topic are never acknowledged, as if no broker led its partition."""

    def __init__(self, producer: Any, topic: str) -> None:
        self.producer, self.topic = producer, topic
        self.tries = 0

    def send_batch(self, messages: Sequence[OutboundMessage]) -> BatchResult:
        sent = [n for n, message in enumerate(messages) if message.topic != self.topic]
        result = self.producer.send_batch([messages[n] for n in sent])
        failed = {sent[n]: failure for n, failure in result.failed.items()}
        deaf = set(range(len(messages))) - set(sent)
        self.tries += bool(deaf)
        failed |= {n: unacknowledged_topic(self.topic, "message timed out") for n in deaf}
        return BatchResult(len(messages), failed)

    def close(self) -> None:
        self.producer.close()


def test_a_topic_that_acknowledges_nothing_holds_up_neither_runs_nor_other_events(line: Line) -> None:
    topic, good = line.topic("deaf"), line.topic("good")
    deaf = Deaf(line.events._job_events._producer, topic)
    now = [1000.0]
    line.events._job_events = JobEventSender(deaf, lambda: now[0])
    line.emit(topic, *[f"deaf-{n}" for n in range(BATCH * 2)])
    line.emit(good, *[f"good-{n:03}" for n in range(BATCH)])
    line.pass_until(lambda: line.world.count("outbox", "lane = 3") == 0)

    # It was waited for once: all its other events were set aside without being sent.
    assert deaf.tries == 1
    assert line.world.count("outbox", "lane = 4") == BATCH * 2
    (reason,) = {text.split("(")[0] for text in line.world.column("select refusal from outbox")}
    assert reason == f"{topic}: not acknowledged in time "
    assert [m.value().decode() for m in line.received(good, BATCH)] == [f"good-{n:03}" for n in range(BATCH)]
    assert line.service.health.ready()[1]["conditions"]["kafka_events"] == "ok"

    # A minute later it is tried again, with what has waited first.
    deaf.topic = ""
    now[0] += 61
    line.events._refused.soon()
    line.events._refused._next_at = 0.0
    line.pass_until(lambda: line.world.count("outbox") == 0)
    assert [m.value().decode() for m in line.received(topic, BATCH * 2)] == [
        f"deaf-{n}" for n in range(BATCH * 2)
    ]


def test_a_topic_that_refuses_the_time_of_events_holds_up_no_others(line: Line) -> None:
    # Whatever arrives is older than it accepts.
    strict = {"message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": "0"}
    topic, good = line.topic("strict", **strict), line.topic("good")
    line.emit(topic, "refused")
    line.emit(good, "sent")
    line.pass_until(lambda: line.world.count("outbox", "lane = 3") == 0)

    assert [message.value() for message in line.received(good, 1)] == [b"sent"]
    ((reason,),) = line.world.db.execute("select refusal from outbox where lane = 4").fetchall()
    assert reason.startswith(f"{topic}: the message's time is too far from the broker's clock")
    assert line.service.health.ready()[1]["conditions"]["kafka_events"] == "ok"


def test_run_messages_go_over_a_producer_of_their_own(line: Line) -> None:
    ensure_topics(KafkaConfig(line.bootstrap), line.topics.pool_specs("good"))
    register_pool(line.world.db, "good")
    line.world.put_run("queued", pool="good", shard=0)
    line.world.db.execute(MESSAGES_OF_RUNS, ["good"])
    line.emit(line.topic("events"), "one")
    batches: list[set[str]] = []
    for sender in (line.runs._producer, line.events._job_events):
        send = sender.send_batch
        sender.send_batch = lambda messages, send=send: (  # type: ignore[method-assign]
            batches.append({message.topic for message in messages}) or send(messages)
        )
    line.pass_until(lambda: line.world.count("outbox") == 0)
    assert {line.topics.runs("good", Lane.NORMAL)} in batches
    assert {f"{line.prefix}x.events"} in batches
