"""What this machine does at this minute, without noonmark: so that runs on different days compare."""

from __future__ import annotations

import secrets
import time
from typing import Final

import orjson
import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from benchmarks.figures import percentile
from benchmarks.stack import BenchmarkError, Stack
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import TopicSpec

PARTITIONS: Final = 6
_ROW_BYTES: Final = 380
_RECORD_BYTES: Final = 300
_DIFFERENT_RECORDS: Final = 997
_COPY_ROWS: Final = 150_000
_RECORDS: Final = 150_000
_COMMIT_SECONDS: Final = 1.0
_TRIPS: Final = 200
_WARM_TRIPS: Final = 20
_LOADS: Final = 20_000
_FLUSH_SECONDS: Final = 30.0
_WARM_BATCH: Final = 50
_WARM_BYTES: Final = 100


def measure_yardsticks(
    stack: Stack, connection: psycopg.Connection, *, share: float = 1.0
) -> dict[str, float]:
    """Measure the plain primitives that a run is made of, one after the other.

    Args:
        stack: its servers; no service has work meanwhile.
        connection: in autocommit.
        share: of the rows and records, for small benchmarks.
    """
    rows, records = max(5000, int(share * _COPY_ROWS)), max(5000, int(share * _RECORDS))
    produced, consumed = _kafka(stack, f"yardstick-{secrets.token_hex(4)}", records)
    copied, commits = _copy(connection, rows), _commits(connection)
    trips = _trips(stack, f"yardstick-trip-{secrets.token_hex(4)}")
    return {
        "copy_rows_per_s": round(copied),
        "commits_per_s": round(len(commits) / sum(commits)),
        **_typical("commit", commits),
        **_typical("trip", trips),
        "produce_per_s": round(produced),
        "consume_per_s": round(consumed),
        "orjson_loads_us": round(_orjson(), 3),
    }


def warm_broker(stack: Stack, records: int, *, limit_seconds: float) -> int:
    """Send small records to and from a topic of its own until the broker's code is compiled; return how many.

    A Java virtual machine that has just started needs ten times the CPU per request, until it has served
    some ten thousand of them. So the batches are small.
    """
    topic = "benchmark-warm-up"
    _make(stack, topic)
    producer = _producer(stack)
    consumer = _consumer(stack, topic)
    give_up_at = time.monotonic() + limit_seconds
    sent = received = 0
    value = b"w" * _WARM_BYTES
    try:
        while sent < records and time.monotonic() < give_up_at:
            for _ in range(_WARM_BATCH):
                producer.produce(topic, value)
            sent += _WARM_BATCH
            _flush(producer)
            received += len(consumer.consume(_WARM_BATCH, timeout=0.05))
        while received < sent and time.monotonic() < give_up_at:
            received += len(consumer.consume(5000, timeout=0.2))
    finally:
        consumer.close()
    return sent


def _copy(connection: psycopg.Connection, count: int) -> float:
    """Rows per second of one COPY into a table without any index."""
    connection.execute("create table benchmark_copy (id bigint, made_at timestamptz, body text)")
    body = "y" * (_ROW_BYTES - 8 - 8 - 24)
    lines = [f"{number}\t2030-01-01 00:00:00+00\t{body}\n".encode() for number in range(count)]
    chunks = [b"".join(lines[at : at + 2000]) for at in range(0, count, 2000)]
    began = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy("copy benchmark_copy from stdin") as copy:
        for chunk in chunks:
            copy.write(chunk)
    took = time.perf_counter() - began
    connection.execute("drop table benchmark_copy")
    return count / took


def _typical(name: str, seconds: list[float]) -> dict[str, float]:
    """Return the median and the p99 of durations, milliseconds."""
    ordered = sorted(1000 * one for one in seconds)
    return {
        f"{name}_p50_ms": round(percentile(ordered, 0.5), 3),
        f"{name}_p99_ms": round(percentile(ordered, 0.99), 3),
    }


def _commits(connection: psycopg.Connection) -> list[float]:
    """Seconds of each transaction of one session that inserts one row each, durably."""
    connection.execute("create table benchmark_commit (id bigint, body text)")
    last = began = time.perf_counter()
    took: list[float] = []
    while last - began < _COMMIT_SECONDS:
        connection.execute("insert into benchmark_commit values (%s, %s)", [len(took), "commit"])
        now = time.perf_counter()
        took.append(now - last)
        last = now
    connection.execute("drop table benchmark_commit")
    return took


def _trips(stack: Stack, topic: str) -> list[float]:
    """Seconds from sending a record, one after the other, until a consumer has it."""
    _make(stack, topic)
    producer, consumer = _producer(stack), _consumer(stack, topic)
    took: list[float] = []
    try:
        for number in range(_WARM_TRIPS + _TRIPS):
            began = time.perf_counter()
            producer.produce(topic, b"trip")
            _flush(producer)
            _receive(consumer)
            if number >= _WARM_TRIPS:
                took.append(time.perf_counter() - began)
    finally:
        consumer.close()
    return took


def _kafka(stack: Stack, topic: str, count: int) -> tuple[float, float]:
    """Records per second of one producer until the last acknowledgement, and of one consumer."""
    _make(stack, topic)
    values = [secrets.token_hex(_RECORD_BYTES // 2).encode() for _ in range(_DIFFERENT_RECORDS)]
    producer = _producer(stack)
    producer.list_topics(topic, timeout=10)
    began = time.perf_counter()
    for number in range(count):
        producer.produce(topic, values[number % _DIFFERENT_RECORDS])
    _flush(producer)
    produced = count / (time.perf_counter() - began)
    consumer = _consumer(stack, topic)
    try:
        consumed = _consume(consumer, count)
    finally:
        consumer.close()
    return produced, consumed


def _consume(consumer: Consumer, count: int) -> float:
    """Records per second from the first batch on: finding leaders and ends of partitions does not count."""
    received = head = 0
    began = 0.0
    give_up_at = time.monotonic() + _FLUSH_SECONDS
    while received < count:
        if time.monotonic() > give_up_at:
            raise BenchmarkError(f"only {received} of {count} records came back")
        for message in consumer.consume(2000, timeout=0.1):
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            received += 1
        if received and not head:
            head, began = received, time.perf_counter()
    return (count - head) / max(time.perf_counter() - began, 1e-6)


def _receive(consumer: Consumer) -> None:
    """Wait for one record; `consume` would wait for more."""
    give_up_at = time.monotonic() + _FLUSH_SECONDS
    while (message := consumer.poll(0.1)) is None:
        if time.monotonic() > give_up_at:
            raise BenchmarkError("a record did not come back")
    error = message.error()
    if error is not None:
        raise KafkaException(error)


def _orjson() -> float:
    """Microseconds to read one small JSON document: the best of five rounds."""
    document = orjson.dumps(
        {
            "id": "a" * 36,
            "type": "noonmark.job.create.v1",
            "data": {"payload": {"pad": "x" * 240}, "n": [1, 2, 3]},
        }
    )
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(_LOADS):
            orjson.loads(document)
        best = min(best, time.perf_counter() - began)
    return 1e6 * best / _LOADS


def _make(stack: Stack, topic: str) -> None:
    ensure_topics(KafkaConfig(stack.bootstrap), [TopicSpec(topic, PARTITIONS, 1)])


def _producer(stack: Stack) -> Producer:
    return Producer(
        KafkaConfig(stack.bootstrap).client(
            client_id="benchmark",
            enable_idempotence=True,
            acks="all",
            compression_type="lz4",
            queue_buffering_max_messages=1_000_000,
        )
    )


def _consumer(stack: Stack, topic: str) -> Consumer:
    consumer = Consumer(
        KafkaConfig(stack.bootstrap).client(
            client_id="benchmark", group_id="benchmark-yardstick", enable_auto_commit=False
        )
    )
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    return consumer


def _flush(producer: Producer) -> None:
    if left := producer.flush(_FLUSH_SECONDS):
        raise BenchmarkError(f"{left} records got no answer from the broker")
