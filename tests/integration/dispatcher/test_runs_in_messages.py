"""Several runs in a message and in a row of the outbox: each is sent, and none holds up another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.integration.dispatcher.line import BATCH, MESSAGES_OF_RUNS, Line, relay_all

from noonmark.core.states import Lane
from noonmark.dispatcher.pool_signers import PoolSigners
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
from noonmark.store.cluster.pools import read_keys, register_pool
from noonmark.store.runs import worker_lease

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def sent_runs(line: Line, runs: int, pool: str = "good") -> list[list[UUID]]:
    """The run ids of each message of a pool's normal lane, by partition and offset."""
    (key,) = read_keys(line.world.db, pool)
    signer = Signer({key.key_id: key.secret}, key.key_id)
    messages = line.received(line.topics.runs(pool, Lane.NORMAL), runs, lambda m: count_runs(m.value()))
    messages.sort(key=lambda m: (m.partition(), m.offset()))
    return [[run.run_id for run in open_runs(m.value(), signer).runs] for m in messages]


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
