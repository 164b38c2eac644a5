"""W4: what a claim costs with ten thousand, a million or more timers waiting for later."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import psycopg

from benchmarks.figures import Claim
from benchmarks.stack import BenchmarkError, Stack
from noonmark.core.states import Lane
from noonmark.store.claims import claims
from noonmark.store.database.connect import connect
from noonmark.store.migrations.migrate import DEFAULT_SHARDS, migrate

BATCH: Final = 500
BATCHES: Final = 20
ROUNDS: Final = 3
_WARM_BATCHES: Final = 3
_LOAD_TIMEOUT_SECONDS: Final = 1800
_INSERT: Final = (
    "insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)"
)
_SHARDS: Final = list(range(DEFAULT_SHARDS))


@dataclass(frozen=True, slots=True)
class _Round:
    seconds: float
    postgres_seconds: float


class ClaimBench:
    """A separate database without a trigger: the benchmark claims itself."""

    def __init__(self, stack: Stack, url: str) -> None:
        """Migrate the database."""
        self._stack = stack
        migrate(url)
        self._url = url
        self._waiting = 0

    def measure(self, waiting: int) -> Claim:
        """Claim with so many timers waiting; sizes must rise from call to call."""
        with connect(
            self._url,
            application="benchmark",
            autocommit=True,
            statement_timeout_seconds=_LOAD_TIMEOUT_SECONDS,
        ) as connection:
            self._add_waiting(connection, waiting - self._waiting)
            self._waiting = waiting
            rounds = [self._round(connection) for _ in range(ROUNDS)]
            row = connection.execute("select pg_total_relation_size('timers')").fetchone()
        assert row is not None
        best = min(rounds, key=lambda one: one.postgres_seconds)
        return Claim(
            waiting=waiting,
            batch=BATCH,
            batches=BATCHES,
            rounds=ROUNDS,
            batch_ms=round(1000 * min(one.seconds for one in rounds) / BATCHES, 3),
            postgres_us_per_run=round(1e6 * best.postgres_seconds / (BATCHES * BATCH), 2),
            postgres_ms_per_batch=round(1000 * best.postgres_seconds / BATCHES, 3),
            table_mb=round(row[0] / 1e6, 1),
        )

    def _add_waiting(self, connection: psycopg.Connection, count: int) -> None:
        """Add timers due in the next thirty days, in random order, without their jobs: a claim reads none.

        The indexes are created again afterwards, which takes a fraction of the time.
        """
        indexes = connection.execute(
            "select indexname, indexdef from pg_indexes where tablename = 'timers' and schemaname = 'public'"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f'drop index "{name}"'.encode())
        connection.execute(
            _INSERT + " select at, at, gen_random_uuid(), 1, n %% %(shards)s, 1, 0, 'default', 'default'"
            " from (select n, now() + interval '1 hour' + random() * interval '30 days' as at"
            "       from generate_series(1, %(count)s::bigint) as n) as later",
            {"count": count, "shards": DEFAULT_SHARDS},
        )
        for _, definition in indexes:
            connection.execute(definition.encode())
        connection.execute("vacuum analyze timers")

    def _round(self, connection: psycopg.Connection) -> _Round:
        """Time batches of due jobs. What the round before made is gone, so that each begins alike."""
        connection.execute("truncate runs, outbox")
        connection.execute("vacuum (index_cleanup on) timers")
        total = (BATCHES + _WARM_BATCHES) * BATCH
        connection.execute(
            _INSERT + " select at, at, gen_random_uuid(), 1, n %% %(shards)s, 1, 0, 'default', 'default'"
            " from (select n, noonmark_now() - make_interval(secs => 0.001 * (%(total)s - n)) as at"
            "       from generate_series(1, %(total)s::int) as n) as due",
            {"total": total, "shards": DEFAULT_SHARDS},
        )
        for _ in range(_WARM_BATCHES):
            self._claim(connection)
        cpu = cpu_seconds(connection.info.backend_pid)
        began = time.perf_counter()
        for _ in range(BATCHES):
            self._claim(connection)
        took = time.perf_counter() - began
        return _Round(took, cpu_seconds(connection.info.backend_pid) - cpu)

    @staticmethod
    def _claim(connection: psycopg.Connection) -> None:
        """Do what the trigger does for one batch."""
        claims.probe(connection, _SHARDS)
        result = claims.claim_once(connection, Lane.NORMAL, _SHARDS, BATCH)
        if result.queued != BATCH:
            raise BenchmarkError(f"a claim of {BATCH} due jobs gave {result.queued} runs")


def cpu_seconds(pid: int) -> float:
    """CPU of a process with one thread: to the nanosecond where the kernel tells it, else in ticks."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    except OSError:
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
