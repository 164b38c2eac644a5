"""The relay on a real Kafka: what cannot be sent stands in nobody's way, and nothing is lost."""

from __future__ import annotations

import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.integration.store.world import World, open_world
from tests.support.stack import Kafka

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane
from noonmark.dispatcher import refused_events
from noonmark.dispatcher.event_relay import EventRelay
from noonmark.dispatcher.job_events import JobEventSender
from noonmark.dispatcher.pool_signers import PoolSigners
from noonmark.dispatcher.run_relay import RunRelay
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.messages import Signer, count_runs, open_runs
from noonmark.kafka.producers.delivery import (
    DeliveryFailure,
    FailureKind,
    OutboundMessage,
    unacknowledged_topic,
)
from noonmark.kafka.producers.producer import BatchResult
from noonmark.kafka.topics import Topics, TopicSpec
from noonmark.schemas.events.settled import SettledRun
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.store.cluster.pools import read_keys, register_pool
from noonmark.store.outbox import relay
from noonmark.store.outcomes.events import EventTopics, announce
from noonmark.store.runs import worker_lease
from noonmark.telemetry.logs import get_logger

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

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
        self.runs = RunRelay(self.service, membership, self.topics)
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


@pytest.fixture
def line(emptied_database: str, kafka_server: Kafka) -> Iterator[Line]:
    with open_world(emptied_database) as world:
        line = Line(world, emptied_database, kafka_server.bootstrap)
        yield line
        line.runs.ending(world.db)
        line.events.ending(world.db)


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


# -- rows that somebody has locked -------------------------------------------------------------------------


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


@pytest.fixture
def other(line: Line) -> psycopg.Connection:
    """The session of somebody who locks rows of the outbox."""
    ensure_topics(KafkaConfig(line.bootstrap), line.topics.pool_specs("good"))
    register_pool(line.world.db, "good")
    line.world.db.execute("set lock_timeout = '300ms'")
    return line.world.another()


def test_a_locked_row_is_sent_once_and_holds_up_no_other(line: Line, other: psycopg.Connection) -> None:
    topic = line.topic("events")
    queue_runs(line, BATCH, Lane.LOW)
    line.emit(topic, "one", "two")
    with other.transaction():
        held = {
            other.execute(
                "select seq from outbox where lane = %s order by seq limit 1 for update", [lane]
            ).fetchall()[0][0]
            for lane in (int(Lane.LOW), 3)
        }
        line.pass_until(lambda: set(line.world.column("select seq from outbox")) == held)
        # The claims of the slice continue: a locked row is no sign that the relay is behind.
        assert {p.age_seconds for p in relay.pressure(line.world.db, SLICES, cap=1000)} == {None}
        queue_runs(line, BATCH, Lane.HIGH)
        line.pass_until(lambda: set(line.world.column("select seq from outbox")) == held)
        for _ in range(5):
            line.runs.run_once(line.world.db)
            line.events.run_once(line.world.db)

    line.pass_until(lambda: line.world.count("outbox") == 0)
    for lane in (Lane.LOW, Lane.HIGH):
        assert counted(line, line.topics.runs("good", lane)) == BATCH
    assert counted(line, topic) == 2
    assert not line.runs.locked
    assert not line.events.locked


def test_locked_rows_of_slices_that_another_dispatcher_takes_over_are_forgotten(
    line: Line, other: psycopg.Connection
) -> None:
    queue_runs(line, 1, Lane.NORMAL)
    with other.transaction():
        other.execute("select from outbox for update")
        for _ in range(3):
            line.runs.run_once(line.world.db)
        assert len(line.runs.locked) == 1
        line.runs._membership.owned = (2, 3)
        line.pass_until(lambda: not line.runs.locked)
    assert line.world.count("outbox") == 1


@pytest.mark.parametrize("what", ["run", "event"])
def test_a_lock_on_what_kafka_refuses_holds_up_no_other(
    line: Line, other: psycopg.Connection, what: str
) -> None:
    if what == "event":
        line.emit(f"{line.prefix}x.missing", "refused")
    else:
        queue_runs(line, 1, Lane.NORMAL, "keyless")
    with other.transaction():
        other.execute("select from outbox for update")
        queue_runs(line, BATCH, Lane.NORMAL)
        line.emit(line.topic("events"), "one")
        line.pass_until(lambda: line.world.count("outbox") == 1)
    line.pass_until(lambda: line.world.count("outbox", "lane < 4") == 0)


# -- several runs in a message ---------------------------------------------------------------------------


def sent_runs(line: Line, runs: int, pool: str = "good") -> list[list[UUID]]:
    """The run ids of each message of a pool's normal lane, by partition and offset."""
    (key,) = read_keys(line.world.db, pool)
    signer = Signer({key.key_id: key.secret}, key.key_id)
    messages = line.received(line.topics.runs(pool, Lane.NORMAL), runs, lambda m: count_runs(m.value()))
    messages.sort(key=lambda m: (m.partition(), m.offset()))
    return [[run.run_id for run in open_runs(m.value(), signer).runs] for m in messages]


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


def relay_all(line: Line) -> None:
    line.pass_until(lambda: line.world.count("outbox") == 0)


def test_runs_of_a_partition_share_a_message_if_every_worker_reads_it(
    line: Line, waiting: list[UUID]
) -> None:
    line.world.worker(pool="good")
    relay_all(line)
    messages = sent_runs(line, BATCH)
    # A quarter of what is read at once comes from one slice, for two partitions.
    assert len(messages) <= 8
    assert sorted(run for runs in messages for run in runs) == waiting


def test_with_no_live_worker_or_one_of_release_0_2_every_run_has_its_message(
    line: Line, waiting: list[UUID]
) -> None:
    db = line.world.db
    relay_all(line)
    assert all(len(runs) == 1 for runs in sent_runs(line, BATCH))

    line.world.worker(pool="good")
    old = line.world.worker(pool="good")
    db.execute("update workers set release = null, capabilities = default where id = %s", [old.worker])
    db.execute(MESSAGES_OF_RUNS, ["good"])
    line.runs._pools = PoolSigners()
    relay_all(line)
    assert all(len(runs) == 1 for runs in sent_runs(line, 2 * BATCH))

    worker_lease.leave(db, old)
    db.execute(MESSAGES_OF_RUNS, ["good"])
    line.runs._pools = PoolSigners()
    relay_all(line)
    assert any(len(runs) > 1 for runs in sent_runs(line, 3 * BATCH))


def test_a_topic_that_takes_only_small_messages_gets_the_runs_one_by_one(line: Line) -> None:
    specs = [
        replace(spec, partitions=1, config={**spec.config, "max.message.bytes": "700"})
        for spec in line.topics.pool_specs("good")
    ]
    ensure_topics(KafkaConfig(line.bootstrap), specs)
    register_pool(line.world.db, "good")
    line.world.worker(pool="good")
    for _ in range(BATCH):
        line.world.put_run("queued", pool="good", shard=0)
    line.world.db.execute(MESSAGES_OF_RUNS, ["good"])
    relay_all(line)

    assert [run for (run,) in sent_runs(line, BATCH)] == line.world.column("select id from runs order by id")
    assert line.world.count("runs", "state = 'queued'") == BATCH


TOGETHER = """
    insert into outbox (slice, lane, created_at, fence, namespace, pool, run_ids, job_ids, instants, job_versions)
    select shard, lane + 10, now(), 1, namespace, pool, array_agg(id order by id), array_agg(job_id order by id),
           array_agg(scheduled_for order by id), array_agg(job_version order by id)
    from runs where pool = %s group by shard, lane, namespace, pool
"""


def test_the_runs_of_a_row_are_sent_and_the_row_is_deleted(line: Line, waiting: list[UUID]) -> None:
    line.world.db.execute("delete from outbox")
    line.world.db.execute(TOGETHER, ["good"])
    line.world.worker(pool="good")
    relay_all(line)
    assert sorted(run for runs in sent_runs(line, BATCH) for run in runs) == waiting


def test_the_runs_of_a_row_without_a_topic_wait_one_by_one(line: Line) -> None:
    register_pool(line.world.db, "good")
    for pool in ("good", "keyless"):
        for _ in range(5):
            line.world.put_run("queued", pool=pool, shard=0)
        line.world.db.execute(TOGETHER, [pool])
    relay_all(line)
    states = line.world.rows(
        "select pool, state, reason, count(*) as runs from runs group by 1, 2, 3 order by 1"
    )
    assert [(row["pool"], row["state"], row["reason"], row["runs"]) for row in states] == [
        ("good", "waiting", "undeliverable", 5),
        ("keyless", "waiting", "undeliverable", 5),
    ]


class Refusing:
    """A producer that some messages do not get through: refused for good, or not acknowledged."""

    def __init__(self, producer: Any, failures: dict[UUID, DeliveryFailure]) -> None:
        self.producer, self.failures = producer, failures
        self.sent = 0

    def partitions(self, topic: str) -> int:
        return int(self.producer.partitions(topic))

    def send_batch(self, messages: Sequence[OutboundMessage]) -> BatchResult:
        failed = {
            n: failure
            for n, message in enumerate(messages)
            for run, failure in self.failures.items()
            if str(run).encode() in message.value
        }
        sent = [n for n in range(len(messages)) if n not in failed]
        assert self.producer.send_batch([messages[n] for n in sent]).all_acknowledged
        self.sent += sum(count_runs(messages[n].value) for n in sent)
        return BatchResult(len(messages), failed)

    def close(self) -> None:
        self.producer.close()


def test_one_run_of_a_row_holds_up_the_row_and_parks_no_other(line: Line, waiting: list[UUID]) -> None:
    line.world.db.execute("delete from outbox")
    line.world.db.execute(TOGETHER, ["good"])
    line.world.worker(pool="good")
    large = DeliveryFailure(FailureKind.PERMANENT, "MSG_SIZE_TOO_LARGE", "too large")
    away = unacknowledged_topic("topic", "message timed out")
    failures = {waiting[3]: large, waiting[7]: away}
    refusing = Refusing(line.runs._producer, failures)
    line.runs._producer = refusing  # type: ignore[assignment]
    for _ in range(3):
        line.runs.run_once(line.world.db)
    # One run was not acknowledged: the row stays as it is, and nothing is decided about any of its runs.
    assert line.world.count("outbox") == 1
    assert line.world.count("runs", "state = 'queued'") == BATCH

    del failures[waiting[7]]
    relay_all(line)
    assert line.world.column("select id from runs where reason = 'undeliverable'") == [waiting[3]]
    assert line.world.count("runs", "state = 'queued'") == BATCH - 1
    others = set(waiting) - {waiting[3]}
    assert {run for runs in sent_runs(line, refusing.sent) for run in runs} == others
