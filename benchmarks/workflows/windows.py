"""The parts that run on a stack with services: wide workflows, chains, and many that wait."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from typing import Final

import psycopg

from benchmarks.burst import measure_burst
from benchmarks.figures import Burst, Idle, Spread, total
from benchmarks.handlers import STAMP as STAMP_FORMAT
from benchmarks.load import at_once, database_now, evenly, sleep_until
from benchmarks.meter import Meter
from benchmarks.open_loop import measure_idle
from benchmarks.stack import BenchmarkError, Stack, states_of, wait_for, wait_for_empty_outbox
from benchmarks.workflows.documents import STAMP, chain, fan, submit_due
from benchmarks.workflows.figures import Hop, IdleWorkflows, Plain, Wide
from noonmark.store.cluster.pools import register_pool

SILENT_POOL: Final = "benchmark-silent"
"""A pool without workers."""

_TABLES: Final = ("workflows", "workflow_tasks", "timers", "waits")
_TASK_RUNS_PER_S: Final = 300
_READING_SECONDS: Final = 0.1
_FLUSHED_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 3.0
_NEAR_SECONDS: Final = 5e-6
_TIMED: Final = "noonmark_workflow_pass_seconds"
_FACTS: Final = "noonmark_workflow_facts_total"


def measure_plain(stack: Stack, connection: psycopg.Connection, runs: int) -> Plain:
    """Measure a burst of one-time jobs."""
    return _plain(measure_burst(stack, connection, stack.meter(connection), runs, kind="one-time"))


def measure_wide(
    stack: Stack,
    connection: psycopg.Connection,
    *,
    workflows: int,
    tasks: int,
    plain: Plain | None,
    namespace: str = "bench-wide",
) -> Wide:
    """Let workflows come due at one instant, and account for every run of them."""
    meter = stack.meter(connection)
    due = submit_due(connection, namespace, fan(tasks), at_once(workflows))
    passes = _Passes(stack)
    sleep_until(connection, due, early_seconds=_READING_SECONDS)
    before = meter.read()
    sleep_until(connection, due)
    runs = workflows * tasks
    _wait_for_ends(connection, namespace, workflows, timeout_seconds=60 + runs / _TASK_RUNS_PER_S)
    wait_for_empty_outbox(connection)
    spent = meter.spent(before)
    stack.require_services()
    row = connection.execute(
        "select extract(epoch from max(finished_at) - %s)::float8 from runs where namespace = %s",
        [due, namespace],
    ).fetchone()
    assert row is not None
    count, facts, seconds = passes.since()
    cpu = spent.cpu_us(runs)
    return Wide(
        workflows=workflows,
        tasks=tasks,
        task_runs=runs,
        succeeded=states_of(connection, namespace).get("succeeded", 0),
        seconds=round(row[0], 3),
        task_runs_per_s=round(runs / row[0], 1),
        cpu_us_per_task_run=round(total(cpu), 2),
        cpu_us_by_process=cpu,
        cpu_us_by_backend=spent.backend_us(runs),
        wal_bytes_per_task_run=round(spent.wal / runs, 1),
        other_cpu_percent=spent.other_percent(),
        checkpoint=spent.checkpoint,
        passes=count,
        facts_per_pass=round(facts / max(1, count), 1),
        pass_ms=round(1000 * seconds / max(1, count), 2),
        plain=plain,
    )


def measure_hop(
    stack: Stack, connection: psycopg.Connection, *, rate: float, seconds: float, tasks: int
) -> Hop:
    """Let chains come due at a steady rate; tell how long each task waited for the end of the one before."""
    namespace = "bench-hop"
    meter = stack.meter(connection)
    offsets = evenly(rate, seconds)
    due = submit_due(connection, namespace, chain(tasks, STAMP), offsets)
    passes = _Passes(stack)
    sleep_until(connection, due, early_seconds=_READING_SECONDS)
    before = meter.read()
    # Nothing is asked of any process while workflows come due.
    time.sleep(seconds + _READING_SECONDS)
    spent = meter.spent(before)
    _wait_for_ends(connection, namespace, len(offsets), timeout_seconds=60)
    stack.require_services()
    time.sleep(_FLUSHED_SECONDS)
    count, facts, pass_seconds = passes.since()
    rows = connection.execute(
        "select extract(epoch from scheduled_for)::float8, extract(epoch from queued_at)::float8,"
        " extract(epoch from started_at)::float8, extract(epoch from finished_at)::float8"
        " from runs where namespace = %s and origin = 'task' order by scheduled_for, queued_at",
        [namespace],
    ).fetchall()
    begun = _begun(stack, due, seconds)
    queued, started, handled = [], [], []
    without = 0
    for instant, runs in _by_instant(rows).items():
        stamps = begun.get(_whole_us(instant), [])
        known = len(stamps) == len(runs)
        for place, (parent, child) in enumerate(pairwise(runs), 1):
            queued.append(child[1] - parent[3])
            started.append(child[2] - parent[3])
            if known:
                handled.append(stamps[place] - parent[3])
            without += not known
    done = sum(row[3] is not None for row in rows)
    cpu = spent.cpu_us(max(1, done))
    return Hop(
        rate=rate,
        seconds=seconds,
        tasks=tasks,
        hops=len(started),
        queued_ms=Spread.of_seconds(queued),
        started_ms=Spread.of_seconds(started),
        handler_ms=Spread.of_seconds(handled),
        without=without,
        cpu_us_per_task_run=round(total(cpu), 2),
        cpu_us_by_process=cpu,
        other_cpu_percent=spent.other_percent(),
        facts_per_pass=round(facts / max(1, count), 1),
        pass_ms=round(1000 * pass_seconds / max(1, count), 2),
    )


def measure_idle_workflows(
    stack: Stack, connection: psycopg.Connection, *, workflows: int, seconds: float
) -> IdleWorkflows:
    """Open workflows that wait for a pool without workers, and compare the stack before and afterwards."""
    namespace = "bench-idle"
    register_pool(connection, SILENT_POOL)
    time.sleep(_SETTLE_SECONDS)
    meter = stack.meter(connection)
    without, polls_without = _idle(stack, connection, meter, seconds)
    sizes = _sizes(connection)
    tasks = {"first": fan(2, pool=SILENT_POOL)["first"]}
    submit_due(connection, namespace, tasks, at_once(workflows))
    opened = wait_for(
        lambda: _count(connection, "select count(*) from workflows"),
        workflows,
        timeout_seconds=60 + workflows / _TASK_RUNS_PER_S,
        interval_seconds=0.5,
    )
    if not opened:
        raise BenchmarkError(f"not all of {workflows} workflows were opened")
    wait_for_empty_outbox(connection)
    time.sleep(_SETTLE_SECONDS)
    after = _sizes(connection)
    with_open, polls_with = _idle(stack, connection, meter, seconds)
    return IdleWorkflows(
        open=workflows,
        without=without,
        with_open=with_open,
        transactions_per_s=(polls_without, polls_with),
        table_mb={name: round((after[name] - sizes[name]) / 1e6, 2) for name in _TABLES},
    )


class _Passes:
    """Reads how many passes the trigger has made since; outside of windows, because the service answers."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._before = self._read()

    def since(self) -> tuple[int, float, float]:
        """Return passes, what they took, and their seconds."""
        count, facts, seconds = (
            after - before for after, before in zip(self._read(), self._before, strict=True)
        )
        return round(count), facts, seconds

    def _read(self) -> tuple[float, float, float]:
        count, seconds = (self._stack.counter("trigger", f"{_TIMED}_{part}") for part in ("count", "sum"))
        return count, self._stack.counter("trigger", _FACTS), seconds


def _plain(burst: Burst) -> Plain:
    return Plain(
        burst.runs_per_s,
        burst.cpu_us_per_run,
        burst.cpu_us_by_process,
        burst.cpu_us_by_backend,
        burst.wal_bytes_per_run,
        burst.other_cpu_percent,
    )


def _wait_for_ends(
    connection: psycopg.Connection, namespace: str, workflows: int, *, timeout_seconds: float
) -> None:
    """Wait until no workflow is open and none waits for being opened."""
    wait_for(
        lambda: _count(connection, "select exists (select from workflows)::int"),
        1,
        timeout_seconds=10,
        interval_seconds=0.02,
    )
    wait_for(
        lambda: -_count(connection, "select count(*) from workflows"),
        0,
        timeout_seconds=timeout_seconds,
        interval_seconds=0.1,
    )
    # Between two of them, none may have been open for a moment.
    ended = "select count(*) from runs where namespace = %s and origin <> 'task' and finished_at is not null"
    if not wait_for(
        lambda: _count(connection, ended, namespace),
        workflows,
        timeout_seconds=timeout_seconds,
        interval_seconds=0.25,
    ):
        raise BenchmarkError(f"workflows of {namespace} did not end: {states_of(connection, namespace)}")


def _idle(stack: Stack, connection: psycopg.Connection, meter: Meter, seconds: float) -> tuple[Idle, float]:
    """Return what the stack uses while nothing is due, and the transactions per second of its database."""
    before, began = _transactions(connection), database_now(connection)
    idle = measure_idle(stack, meter, seconds=seconds)
    took = (database_now(connection) - began).total_seconds()
    return idle, round((_transactions(connection) - before) / took, 2)


def _transactions(connection: psycopg.Connection) -> float:
    # Sessions report what they did within a second, and at the latest a second after they fell idle.
    time.sleep(1.1)
    return _count(
        connection,
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()",
    )


def _sizes(connection: psycopg.Connection) -> dict[str, int]:
    return {
        name: int(_count(connection, "select pg_total_relation_size(%s::regclass)", name)) for name in _TABLES
    }


def _count(connection: psycopg.Connection, query: str, *values: object) -> float:
    row = connection.execute(query.encode(), values or None).fetchone()
    assert row is not None
    return float(row[0])


_Run = tuple[float, float, float, float]


def _by_instant(rows: list[_Run]) -> dict[float, list[_Run]]:
    """Return the runs of each workflow, which have its instant, in their order."""
    found: dict[float, list[_Run]] = defaultdict(list)
    for row in rows:
        if None not in row:
            found[row[0]].append(row)
    return found


def _begun(stack: Stack, due: datetime, seconds: float) -> dict[int, list[float]]:
    """Return the first lines of handlers by the instant of their workflow, rising."""
    raw = stack.stamps.read_bytes() if stack.stamps.exists() else b""
    whole = raw[: len(raw) // STAMP_FORMAT.size * STAMP_FORMAT.size]
    first, last = due.timestamp() - _NEAR_SECONDS, due.timestamp() + seconds
    found: dict[int, list[float]] = defaultdict(list)
    for instant, begun in STAMP_FORMAT.iter_unpack(whole):
        if first <= instant <= last:
            found[_whole_us(instant)].append(begun)
    return {instant: sorted(stamps) for instant, stamps in found.items()}


def _whole_us(instant: float) -> int:
    return round(1e6 * instant)
