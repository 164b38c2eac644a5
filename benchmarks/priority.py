"""W5: how late high and normal jobs start while a burst of low ones drains, against before it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import psycopg

from benchmarks.burst import SETTLED
from benchmarks.figures import Priority, Spread
from benchmarks.load import Load, evenly, load, sleep_until
from benchmarks.open_loop import lateness
from benchmarks.stack import Stack, states_of, wait_for
from noonmark.core.states import Lane

HIGH_RATE: Final = 50.0
_BEFORE_SECONDS: Final = 10.0
_SLOWEST_RUNS_PER_S: Final = 2000


def measure_priority(stack: Stack, connection: psycopg.Connection, low_jobs: int) -> Priority:
    """Load low jobs due at one instant, and others due from before it until it has drained."""
    longest = _BEFORE_SECONDS + low_jobs / _SLOWEST_RUNS_PER_S + 10
    high = Load("bench-high", evenly(HIGH_RATE, longest), lane=Lane.HIGH)
    normal = Load("bench-normal", evenly(HIGH_RATE, longest), lane=Lane.NORMAL)
    low = Load("bench-low", [_BEFORE_SECONDS] * low_jobs, lane=Lane.LOW)
    loaded = load(connection, high, normal, low)
    settled_before = stack.counter("worker", SETTLED, lane=low.lane.label)
    instant = loaded.due + timedelta(seconds=_BEFORE_SECONDS)
    sleep_until(connection, instant)
    wait_for(
        lambda: stack.counter("worker", SETTLED, lane=low.lane.label) - settled_before,
        low_jobs,
        timeout_seconds=60 + low_jobs / _SLOWEST_RUNS_PER_S,
    )
    stack.require_services()
    row = connection.execute(
        "select extract(epoch from max(finished_at) - %s)::float8 from runs where namespace = %s",
        [instant, low.namespace],
    ).fetchone()
    assert row is not None
    low_seconds = float(row[0])
    drained = instant + timedelta(seconds=low_seconds)
    before = [
        Spread.of_seconds(lateness(connection, one.namespace, loaded.due, instant)) for one in (high, normal)
    ]
    during = [
        Spread.of_seconds(lateness(connection, one.namespace, instant, drained)) for one in (high, normal)
    ]
    connection.execute("delete from timers where namespace = any (%s)", [[high.namespace, normal.namespace]])
    return _figures(low_jobs, low_seconds, states_of(connection, low.namespace), before, during)


def _figures(
    low_jobs: int,
    low_seconds: float,
    states: dict[str, int],
    before: Sequence[Spread | None],
    during: Sequence[Spread | None],
) -> Priority:
    (high_before, normal_before), (high_during, normal_during) = before, during
    return Priority(
        low_jobs=low_jobs,
        low_seconds=round(low_seconds, 2),
        low_runs_per_s=round(states.get("succeeded", 0) / low_seconds, 1),
        high_rate=HIGH_RATE,
        high_ms_before=high_before,
        high_ms_during=high_during,
        normal_ms_before=normal_before,
        normal_ms_during=normal_during,
        added_p99_ms=round(high_during.p99 - high_before.p99, 2) if high_before and high_during else None,
        not_started=low_jobs - states.get("succeeded", 0),
    )
