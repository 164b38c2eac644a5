"""W2: jobs due at evenly spaced instants, whether or not the ones before have started; and nothing at all."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.burst import SETTLED
from benchmarks.figures import Idle, OpenLoop, Spread
from benchmarks.handlers import STAMP
from benchmarks.load import Load, evenly, load, sleep_until
from benchmarks.meter import Meter
from benchmarks.stack import Stack, wait_for
from benchmarks.stages import read_timed, stages_of

_DRAIN_SECONDS: Final = 60.0
_FLUSHED_SECONDS: Final = 0.5
_READING_SECONDS: Final = 0.1
_ROUNDING_SECONDS: Final = 0.001


def measure_open_loop(
    stack: Stack, connection: psycopg.Connection, meter: Meter, *, rate: float, seconds: float
) -> OpenLoop:
    """Load jobs due at `rate` per second and tell how late each started.

    All timers are there before the first is due, so a slow start delays none that follows it, and every
    delay is counted from the planned instant: coordinated omission has no place to hide in.
    """
    jobs = Load(f"bench-open-{rate:g}", evenly(rate, seconds), handler="bench.stamp")
    loaded = load(connection, jobs)
    settled_before = stack.counter("worker", SETTLED)
    timed = read_timed(stack)
    sleep_until(connection, loaded.due, early_seconds=_READING_SECONDS)
    before = meter.read()
    # Nothing is asked of any process during the window.
    time.sleep(seconds + _READING_SECONDS)
    spent = meter.spent(before)
    wait_for(
        lambda: stack.counter("worker", SETTLED) - settled_before, jobs.size, timeout_seconds=_DRAIN_SECONDS
    )
    stack.require_services()
    late = lateness(connection, jobs.namespace, loaded.due)
    time.sleep(_FLUSHED_SECONDS)
    stamped = stamped_lateness(stack.stamps, loaded.due, seconds)
    return OpenLoop(
        rate=rate,
        seconds=seconds,
        runs=jobs.size,
        lateness_ms=Spread.of_seconds(late),
        handler_lateness_ms=Spread.of_seconds(stamped),
        cpu_percent=spent.percent(),
        cpu_percent_by_backend=spent.backend_percent(),
        cpu_percent_noonmark=spent.noonmark_percent(),
        cpu_percent_all=spent.all_percent(),
        other_cpu_percent=spent.other_percent(),
        wal_bytes_per_run=round(spent.wal / jobs.size, 1),
        not_started=jobs.size - len(late),
        stages=stages_of(connection, jobs.namespace, loaded.due, timed, read_timed(stack)),
        messages=spent.records,
    )


def measure_idle(stack: Stack, meter: Meter, *, seconds: float) -> Idle:
    """Tell what the stack uses while nothing is due."""
    before = meter.read()
    time.sleep(seconds)
    spent = meter.spent(before)
    stack.require_services()
    return Idle(
        seconds=seconds,
        cpu_percent=spent.percent(),
        cpu_percent_noonmark=spent.noonmark_percent(),
        cpu_percent_all=spent.all_percent(),
        other_cpu_percent=spent.other_percent(),
        cpu_percent_by_backend=spent.backend_percent(),
    )


def lateness(
    connection: psycopg.Connection, namespace: str, since: datetime, until: datetime | None = None
) -> list[float]:
    """Return the start lateness of each started run that was due in a window, seconds."""
    rows = connection.execute(
        "select extract(epoch from started_at - scheduled_for)::float8 from runs"
        " where namespace = %s and scheduled_for >= %s and started_at is not null"
        " and (%s::timestamptz is null or scheduled_for < %s)",
        [namespace, since, until, until],
    ).fetchall()
    return [row[0] for row in rows]


def stamped_lateness(stamps: Path, due: datetime, seconds: float) -> list[float]:
    """Return the lateness of the handlers whose instants were in a window, seconds.

    Args:
        stamps: file with the due instant and the first line of each handler, Unix seconds.
        due: the first due instant.
        seconds: length of the window.
    """
    raw = stamps.read_bytes() if stamps.exists() else b""
    whole = raw[: len(raw) // STAMP.size * STAMP.size]
    # A program in another language may round the instant to milliseconds.
    first, last = due.timestamp() - _ROUNDING_SECONDS, due.timestamp() + seconds + _ROUNDING_SECONDS
    return [begun - planned for planned, begun in STAMP.iter_unpack(whole) if first <= planned <= last]
