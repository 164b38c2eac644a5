"""Which runs share a message: order within a partition, runs of a job in one partition, everybody can read it."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.states import Lane
from noonmark.dispatcher.pool_signers import PoolState
from noonmark.dispatcher.run_messages import MessagePacker, Packed, Unsent, unsent_runs
from noonmark.kafka.messages import RUNS_PER_MESSAGE, QueuedRun, Signer, open_runs, traceparent_of
from noonmark.kafka.producers.delivery import DeliveryFailure, FailureKind
from noonmark.kafka.producers.producer import BatchResult
from noonmark.kafka.topics import Topics
from noonmark.store.database.row_types import OutboxRow

SIGNER = Signer({"k": b"x" * 32}, "k")
AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
TOGETHER, APART = PoolState(SIGNER, True), PoolState(SIGNER, False)
TOO_LARGE = DeliveryFailure(FailureKind.PERMANENT, "MSG_SIZE_TOO_LARGE", "large")
AWAY = DeliveryFailure(FailureKind.TRANSIENT, "_MSG_TIMED_OUT", "late")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def row(run: int, job: UUID, lane: Lane = Lane.NORMAL, pool: str = "default") -> Unsent:
    return Unsent(run, pool, lane, QueuedRun(UUID(int=run), job, "default", AT, 1, 1))


@pytest.fixture
def packer() -> MessagePacker:
    return MessagePacker(Topics(), lambda _topic: 4)


def runs_of(packed: Packed) -> list[list[int]]:
    return [[run.run_id.int for run in open_runs(m.value, SIGNER).runs] for m in packed.messages]


jobs = [uuid4() for _ in range(10)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(jobs), st.sampled_from(list(Lane)), st.sampled_from(["a", "b"]), st.booleans()
        ),
        max_size=300,
    )
)
def test_every_run_is_sent_once_in_the_order_of_its_partition(rows_given):
    rows = [row(n, job, lane, pool) for n, (job, lane, pool, _) in enumerate(rows_given)]
    traced = {
        UUID(int=n): TRACE for n, (_, _, _, is_traced) in enumerate(rows_given) if is_traced and n % 7 == 0
    }
    packer = MessagePacker(Topics(), lambda _topic: 4)

    packed = packer.pack(rows, {"a": TOGETHER, "b": APART}, traced)

    assert runs_of(packed) == packed.runs
    assert sorted(n for group in packed.runs for n in group) == list(range(len(rows)))
    sent: dict[tuple[str, int], list[int]] = defaultdict(list)
    of_job: dict[tuple[UUID, int, str], set[int]] = defaultdict(set)
    for message, group in zip(packed.messages, packed.runs, strict=True):
        assert len(group) <= RUNS_PER_MESSAGE
        batch = open_runs(message.value, SIGNER)
        assert message.topic == Topics().runs(batch.pool, Lane[batch.lane.upper()])
        assert len(group) == 1 or batch.pool == "a"
        if any(UUID(int=n) in traced for n in group):
            assert len(group) == 1
            assert traceparent_of(message.value) == TRACE
        sent[message.topic, message.partition] += group
        for n in group:
            of_job[rows[n].run.job_id, rows[n].lane, batch.pool].add(message.partition)
    assert all(numbers == sorted(numbers) for numbers in sent.values())
    assert all(len(partitions) == 1 for partitions in of_job.values())


def test_runs_of_one_partition_share_messages_up_to_the_most(packer: MessagePacker):
    job = uuid4()
    packed = packer.pack([row(n, job) for n in range(2 * RUNS_PER_MESSAGE + 1)], {"default": TOGETHER}, {})
    assert [len(group) for group in packed.runs] == [RUNS_PER_MESSAGE, RUNS_PER_MESSAGE, 1]
    assert len({(m.topic, m.partition) for m in packed.messages}) == 1


def test_the_most_runs_of_a_message_can_be_set():
    packer = MessagePacker(Topics(), lambda _topic: 4, most=1)
    assert packer.pack([row(n, jobs[0]) for n in range(3)], {"default": TOGETHER}, {}).runs == [[0], [1], [2]]


def test_with_a_worker_that_cannot_read_them_every_run_has_its_message(packer: MessagePacker):
    packed = packer.pack([row(n, jobs[0]) for n in range(5)], {"default": APART}, {})
    assert packed.runs == [[0], [1], [2], [3], [4]]
    assert len({m.partition for m in packed.messages}) == 1


def test_without_known_partitions_every_run_has_its_message_and_its_key_selects_one():
    packed = MessagePacker(Topics(), lambda _topic: 0).pack([row(1, jobs[0])], {"default": TOGETHER}, {})
    assert [(m.partition, m.key) for m in packed.messages] == [(-1, jobs[0].bytes)]


def test_a_failure_of_a_message_is_one_of_each_of_its_runs(packer: MessagePacker):
    packed = packer.pack([row(n, jobs[n % 2]) for n in range(6)], {"default": TOGETHER}, {})
    assert sorted(packed.by_run(BatchResult(len(packed.messages), {0: AWAY}))) == packed.runs[0]
    assert packed.by_run(BatchResult(len(packed.messages), {})) == {}
    assert packed.refused_together(BatchResult(len(packed.messages), {0: AWAY})).messages == []


def test_a_message_that_kafka_refuses_is_sent_run_by_run_and_so_are_those_after_it(packer: MessagePacker):
    rows = [row(n, jobs[0]) for n in range(5)]
    packed = packer.pack(rows, {"default": TOGETHER}, {})
    refused = packed.refused_together(BatchResult(1, {0: TOO_LARGE}))
    assert refused.runs == [[0, 1, 2, 3, 4]]

    apart = packer.unpack(rows, {"default": TOGETHER}, refused)

    assert apart.runs == [[0], [1], [2], [3], [4]]
    assert runs_of(apart) == apart.runs
    assert sorted(apart.by_run(BatchResult(5, {3: TOO_LARGE}))) == [3]
    assert packer.pack(rows, {"default": TOGETHER}, {}).runs == [[0], [1], [2], [3], [4]]


def test_a_row_has_one_run_or_several():
    one = OutboxRow("(0,1)", 1, 0, 2, UUID(int=1), jobs[0], AT, 7, 3, "a", "p", None, None, None, None)
    some = OutboxRow(
        "(0,2)", 2, 0, 12, None, None, None, 1, None, "b", "q", None, None, None, None,
        [UUID(int=2), UUID(int=3)], [jobs[1], jobs[2]], [AT, AT], [4, 5],
    )  # fmt: skip
    assert unsent_runs([one, some]) == [
        Unsent(0, "p", 2, QueuedRun(UUID(int=1), jobs[0], "a", AT, 7, 3)),
        Unsent(1, "q", 2, QueuedRun(UUID(int=2), jobs[1], "b", AT, 1, 4)),
        Unsent(1, "q", 2, QueuedRun(UUID(int=3), jobs[2], "b", AT, 1, 5)),
    ]
