"""W1: many jobs due at one instant, from that instant to the last durable outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import psycopg

from benchmarks.figures import Burst, Spread, mean_batch, total
from benchmarks.load import Load, Loaded, at_once, database_now, far_cron, load, sleep_until
from benchmarks.meter import Meter, Spent
from benchmarks.stack import POOL, Stack, states_of, wait_for, wait_for_empty_outbox
from benchmarks.stages import Timed, read_timed, stages_of
from benchmarks.stored import Stored, growth_per_run, read_stored
from benchmarks.verdicts import read_verdicts
from noonmark.core.states import Lane
from noonmark.kafka.topics import Topics

SETTLED: Final = "noonmark_runs_settled_total"
_SLOWEST_RUNS_PER_S: Final = 500
_READING_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Drained:
    """A burst that has drained, or was given up."""

    loaded: Loaded
    spent: Spent
    seen_seconds: float
    before: Timed
    after: Timed


def measure_burst(
    stack: Stack, connection: psycopg.Connection, meter: Meter, size: int, *, kind: str
) -> Burst:
    """Load a burst, let it drain, and account for every run of it.

    Args:
        stack: with its services started.
        connection: in autocommit.
        meter: of the stack.
        size: how many jobs.
        kind: `one-time`, or `recurring` for cron jobs that go on afterwards.
    """
    cron = far_cron(database_now(connection)) if kind == "recurring" else None
    burst = Load(f"bench-{kind}-{size}", at_once(size), cron=cron)
    stored = _stored(stack, connection)
    drained = drain(stack, connection, meter, burst)
    accounted = _account(stack, connection, meter, burst, drained, kind)
    return replace(accounted, stored_bytes_per_run=growth_per_run(stored, _stored(stack, connection), size))


def _stored(stack: Stack, connection: psycopg.Connection) -> Stored:
    return read_stored(connection, stack.folder / "kafka", stack.topics.prefix)


def drain(stack: Stack, connection: psycopg.Connection, meter: Meter, burst: Load) -> Drained:
    """Load a burst and wait until its last outcome is recorded and announced."""
    loaded = load(connection, burst)
    settled_before = stack.counter("worker", SETTLED)
    timed = read_timed(stack)
    sleep_until(connection, loaded.due, early_seconds=_READING_SECONDS)
    before = meter.read()
    sleep_until(connection, loaded.due)
    began = time.monotonic()
    wait_for(
        lambda: stack.counter("worker", SETTLED) - settled_before,
        burst.size,
        timeout_seconds=60 + burst.size / _SLOWEST_RUNS_PER_S,
    )
    seen_seconds = time.monotonic() - began
    wait_for_empty_outbox(connection)
    spent = meter.spent(before)
    stack.require_services()
    return Drained(loaded, spent, seen_seconds, timed, read_timed(stack))


def run_messages(topics: Topics, records: Mapping[str, int]) -> int:
    """Count the messages on the topics of runs, from the records by topic."""
    return sum(records.get(topics.runs(POOL, lane), 0) for lane in Lane)


def _account(
    stack: Stack, connection: psycopg.Connection, meter: Meter, burst: Load, drained: Drained, kind: str
) -> Burst:
    size, spent, due = burst.size, drained.spent, drained.loaded.due
    last_seconds, repeated, starts, records = _ledger(connection, burst.namespace, due)
    seconds = last_seconds or drained.seen_seconds
    late = connection.execute(
        "select extract(epoch from started_at - scheduled_for)::float8 from runs"
        " where namespace = %s and scheduled_for = %s and started_at is not null",
        [burst.namespace, due],
    ).fetchall()
    succeeded = states_of(connection, burst.namespace).get("succeeded", 0)
    verdicts = read_verdicts(stack.bootstrap, stack.topics.lifecycle, burst.namespace)
    cpu = spent.cpu_us(size)
    rate = succeeded / seconds
    return Burst(
        kind=kind,
        runs=size,
        seconds=round(seconds, 3),
        seen_seconds=round(drained.seen_seconds, 3),
        runs_per_s=round(rate, 1),
        cpu_us_per_run=round(total(cpu), 2),
        cpu_us_by_process=cpu,
        cpu_us_by_backend=spent.backend_us(size),
        other_cpu_percent=spent.other_percent(),
        wal_bytes_per_run=round(spent.wal / size, 1),
        wal_bytes_per_run_with_load=round((spent.wal + drained.loaded.wal) / size, 1),
        messages_per_run=round(sum(spent.records.values()) / size, 3),
        messages=spent.records,
        copy_jobs_per_s=round(drained.loaded.copy_jobs_per_s),
        share_of_copy_jobs=round(rate / drained.loaded.copy_jobs_per_s, 4),
        start_ms=Spread.of_seconds([row[0] for row in late]),
        rss_mb=meter.memory_mb(),
        lost=size - succeeded,
        second_verdicts=verdicts.second,
        without_event=max(0, succeeded - verdicts.runs),
        repeated=repeated,
        checkpoint=spent.checkpoint,
        runs_per_start=mean_batch(succeeded, starts),
        runs_per_recorded_batch=mean_batch(succeeded, records),
        runs_per_message=mean_batch(size, run_messages(stack.topics, spent.records)),
        stages=stages_of(connection, burst.namespace, due, drained.before, drained.after),
    )


def _ledger(
    connection: psycopg.Connection, namespace: str, due: datetime
) -> tuple[float | None, int, int, int]:
    """Return the seconds to the last outcome, and counts of repeated runs, starts and recorded batches."""
    row = connection.execute(
        "select extract(epoch from max(finished_at) - %(due)s)::float8,"
        " count(*) filter (where fence > 1 or attempt > 1),"
        " count(distinct started_at), count(distinct finished_at)"
        " from runs where namespace = %(namespace)s and scheduled_for = %(due)s and state = 'succeeded'",
        {"due": due, "namespace": namespace},
    ).fetchone()
    assert row is not None
    return row
