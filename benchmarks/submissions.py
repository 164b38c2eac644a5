"""W3: create events through one intake process, from the first to the last row of the inbox."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final

import psycopg
from confluent_kafka import Producer

from benchmarks.figures import Submissions, total
from benchmarks.load import Load, at_once, database_now, document, far_cron
from benchmarks.meter import Meter
from benchmarks.stack import BenchmarkError, Stack, wait_for
from noonmark.core.ids import uuid7_batch
from noonmark.kafka.config import KafkaConfig
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, render_structured
from noonmark.schemas.events.submissions import CREATE

TAKEN: Final = "noonmark_submissions_total"
_SOURCE: Final = "/benchmark"
_FAR: Final = timedelta(days=30)
_PUBLISH_SECONDS: Final = 60.0
_SLOWEST_PER_S: Final = 500


def measure_submissions(
    stack: Stack, connection: psycopg.Connection, meter: Meter, count: int, *, kind: str
) -> Submissions:
    """Publish create events while intake is held, let it go, and time its inbox.

    Args:
        stack: with its services started.
        connection: in autocommit.
        meter: of the stack.
        count: how many events.
        kind: `once` for one-time jobs far in the future, `cron` for recurring ones.
    """
    namespace = f"bench-in-{kind}"
    values = _events(namespace, count, database_now(connection), cron=kind == "cron")
    taken_before = stack.counter("intake", TAKEN)
    with stack.stopped("intake"):
        _publish(stack, values)
        before = meter.read()
        began = time.monotonic()
    wait_for(
        lambda: stack.counter("intake", TAKEN) - taken_before,
        count,
        timeout_seconds=30 + count / _SLOWEST_PER_S,
        interval_seconds=0.1,
    )
    took = time.monotonic() - began
    spent = meter.spent(before)
    stack.require_services()
    cpu = spent.cpu_us(count)
    return Submissions(
        kind=kind,
        submissions=count,
        per_s=round(_rate(connection, f"{_SOURCE}/{namespace}"), 1),
        seconds=round(took, 3),
        cpu_us_per_submission=round(total(cpu), 2),
        cpu_us_by_process=cpu,
        other_cpu_percent=spent.other_percent(),
        wal_bytes_per_submission=round(spent.wal / count, 1),
        missing=count - _count(connection, "select count(*) from jobs where namespace = %s", namespace),
        rejected=_count(
            connection,
            "select count(*) from rejections where event_source = %s",
            f"{_SOURCE}/{namespace}",
        ),
    )


def _events(namespace: str, count: int, now: datetime, *, cron: bool) -> list[tuple[bytes, bytes]]:
    """Render keys and values before anything is timed; each has a name, an instant and an id of its own."""
    made = []
    for index, event_id in enumerate(uuid7_batch(count)):
        # A few thousand expressions: memos of parsed schedules help as much as they do in real life.
        at = now + timedelta(minutes=index % 600)
        jobs = Load(namespace, at_once(1), cron=far_cron(at) if cron else None)
        name = f"{namespace}-{index}"
        data = document(jobs, name, now + _FAR + timedelta(milliseconds=index))
        value = render_structured(id=str(event_id), source=f"{_SOURCE}/{namespace}", type=CREATE, data=data)
        made.append((f"{namespace}/{name}".encode(), value))
    return made


def _publish(stack: Stack, events: list[tuple[bytes, bytes]]) -> None:
    producer = Producer(
        KafkaConfig(stack.bootstrap).client(
            client_id="benchmark",
            enable_idempotence=True,
            compression_type="lz4",
            queue_buffering_max_messages=1_000_000,
        )
    )
    topic, headers = stack.topics.submissions, list(STRUCTURED_HEADERS)
    for key, value in events:
        producer.produce(topic, value, key, headers=headers)  # type: ignore[arg-type]
    if left := producer.flush(_PUBLISH_SECONDS):
        raise BenchmarkError(f"{left} of {len(events)} submissions got no answer from the broker")


def _rate(connection: psycopg.Connection, source: str) -> float:
    """Submissions per second between the first batch and the last, without those of the first.

    A row is stamped by the statement that writes it: what lies between two stamps is the time of all
    batches but one.
    """
    row = connection.execute(
        "select extract(epoch from max(received_at) - min(received_at))::float8,"
        " count(*) - count(*) filter (where received_at = first)"
        " from (select received_at, min(received_at) over () as first from inbox where source = %s) as mine",
        [source],
    ).fetchone()
    if row is None or not row[0]:
        raise BenchmarkError("too few submissions were taken in to tell a rate")
    return float(row[1] / row[0])


def _count(connection: psycopg.Connection, query: str, value: str) -> int:
    row = connection.execute(query.encode(), [value]).fetchone()
    assert row is not None
    return int(row[0])
