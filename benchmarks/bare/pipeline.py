"""The three processes of the bare design: trigger, dispatcher and worker, as one loop each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

import orjson
import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from benchmarks.bare.database import CLAIM, DELETE_RELAYED, FINISH, READ_OUTBOX, START, connect
from benchmarks.handlers import STAMP
from noonmark.kafka.config import KafkaConfig

PARTITIONS: Final = 6
_BATCH: Final = 1000
_PAUSE_SECONDS: Final = 0.005
_POLL_SECONDS: Final = 0.05
_LINGER_MS: Final = 5

OutboxRow = tuple[int, UUID, UUID, int, float, str, bytes]
Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What the three processes share.

    Attributes:
        url: of the database with the bare design's tables.
        bootstrap: the broker.
        topic: of the run messages.
        stamps: file that the handler's instants are appended to.
        ready: number of processes that can receive work.
        recorded: number of outcomes that are committed.
        stop: set when the processes must end.
    """

    url: str
    bootstrap: str
    topic: str
    stamps: Path
    ready: Synchronized[int]
    recorded: Synchronized[int]
    stop: Event

    def report_ready(self) -> None:
        """Count this process as ready."""
        with self.ready.get_lock():
            self.ready.value += 1

    def goes_on(self) -> bool:
        """Whether this process must continue; also False if the benchmark has died."""
        parent = multiprocessing.parent_process()
        return not self.stop.is_set() and (parent is None or parent.is_alive())


def run_trigger(pipeline: Pipeline) -> None:
    """Turn due timers into runs until the pipeline stops."""
    _ignore_interrupts()
    with connect(pipeline.url, "bare-claim") as connection, connection.cursor(binary=True) as cursor:
        pipeline.report_ready()
        while pipeline.goes_on():
            row = cursor.execute(CLAIM, {"most": _BATCH}, prepare=True).fetchone()
            if row is None or row[0] < _BATCH // 2:
                time.sleep(_PAUSE_SECONDS)


def run_dispatcher(pipeline: Pipeline) -> None:
    """Send each outbox row as one message, and delete it once the broker has it."""
    _ignore_interrupts()
    producer = _producer(pipeline)
    producer.list_topics(pipeline.topic, timeout=10)
    with connect(pipeline.url, "bare-relay") as connection, connection.cursor(binary=True) as cursor:
        pipeline.report_ready()
        while pipeline.goes_on():
            rows = cursor.execute(READ_OUTBOX, {"most": _BATCH}, prepare=True).fetchall()
            if rows:
                _send(producer, pipeline.topic, rows)
                ids = [row[0] for row in rows]
                relayed = {"first": ids[0], "last": ids[-1], "ids": ids}
                cursor.execute(DELETE_RELAYED, relayed, prepare=True)
            if len(rows) < _BATCH // 2:
                time.sleep(_PAUSE_SECONDS)


def run_worker(pipeline: Pipeline) -> None:
    """Start runs, execute their handler, record the outcomes, and commit the offsets."""
    _ignore_interrupts()
    assigned: list[TopicPartition] = []
    with (
        closing(_consumer(pipeline)) as consumer,
        connect(pipeline.url, "bare-worker") as connection,
        pipeline.stamps.open("ab") as stamps,
    ):
        consumer.subscribe([pipeline.topic], on_assign=lambda _consumer, found: assigned.extend(found))
        while len(assigned) < PARTITIONS and pipeline.goes_on():
            consumer.poll(_POLL_SECONDS)
        pipeline.report_ready()
        while pipeline.goes_on():
            if (first := consumer.poll(_POLL_SECONDS)) is not None:
                messages = [first, *consumer.consume(_BATCH - 1, timeout=0)]
                _execute(connection, messages, stamps)
                with pipeline.recorded.get_lock():
                    pipeline.recorded.value += len(messages)
                _commit(consumer, pipeline.topic, messages)


def _execute(connection: psycopg.Connection, messages: list[Message], stamps: BinaryIO) -> None:
    """Take a batch of messages through `running` to the outcome."""
    if errors := [error for message in messages if (error := message.error()) is not None]:
        raise KafkaException(errors[0])
    runs: list[Run] = [orjson.loads(message.value() or b"") for message in messages]
    ids = [UUID(run["run_id"]) for run in runs]
    batch = {"worker": f"bare-{os.getpid()}", "ids": ids}
    started = connection.execute(START, batch, prepare=True).rowcount
    for run in runs:
        _HANDLERS[run["handler"]](run, stamps)
    finished = connection.execute(FINISH, batch, prepare=True).rowcount
    if not started == finished == len(ids):
        raise RuntimeError(f"of {len(ids)} runs, {started} started and {finished} finished; expected all")
    stamps.flush()


def _send(producer: Producer, topic: str, rows: list[OutboxRow]) -> None:
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    for _, run_id, job_id, attempt, due, handler, payload in rows:
        message = {
            "run_id": run_id,
            "job_id": job_id,
            "attempt": attempt,
            "due": due,
            "handler": handler,
            "payload": orjson.Fragment(bytes(payload)),
        }
        producer.produce(topic, key=run_id.bytes, value=orjson.dumps(message), on_delivery=delivered)
    while producer.flush(1.0):
        pass
    if failed:
        raise KafkaException(failed[0])


def _commit(consumer: Consumer, topic: str, messages: list[Message]) -> None:
    ends: dict[int, int] = {}
    for message in messages:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        ends[partition] = offset + 1
    positions = [TopicPartition(topic, number, end) for number, end in ends.items()]
    consumer.commit(offsets=positions, asynchronous=False)


def _producer(pipeline: Pipeline) -> Producer:
    return Producer(
        KafkaConfig(pipeline.bootstrap).client(
            client_id="bare-relay",
            enable_idempotence=True,
            acks="all",
            linger_ms=_LINGER_MS,
            compression_type="lz4",
            queue_buffering_max_messages=1_000_000,
        )
    )


def _consumer(pipeline: Pipeline) -> Consumer:
    return Consumer(
        KafkaConfig(pipeline.bootstrap).client(
            client_id="bare-worker",
            group_id=pipeline.topic,
            group_protocol="consumer",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="earliest",
        )
    )


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the benchmark, which ends its processes in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _noop(_run: Run, _stamps: BinaryIO) -> None:
    """Do nothing."""


def _stamp(run: Run, stamps: BinaryIO) -> None:
    """Note the instant, in the file's buffer."""
    stamps.write(STAMP.pack(run["due"], time.time()))


_HANDLERS: Final[dict[str, Callable[[Run, BinaryIO], None]]] = {"bench.noop": _noop, "bench.stamp": _stamp}
