"""Loading jobs that will be due: the rows that intake would write, by COPY."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

from benchmarks.stack import BenchmarkError
from noonmark.core.ids import shard_of, uuid7_batch
from noonmark.core.states import Lane
from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.store.documents.columns import Due, first_due, once_due, policy_text, work_text

PAYLOAD_BYTES: Final = 256
_LEAST_ROWS_PER_S: Final = 40_000
_LEAD_SECONDS: Final = 2.0
_SPARE_SECONDS: Final = 0.3
_TRIES: Final = 4
_CHUNK: Final = 2000
_NULL: Final = "\\N"


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs to load.

    Attributes:
        namespace: of the jobs; it distinguishes their runs from others.
        offsets: seconds from the first due instant to that of each job, rising.
        handler: what the jobs run.
        lane: of the jobs.
        cron: expression of recurring jobs; None for one-time jobs.
        url: what http jobs call; None for jobs that run the handler.
    """

    namespace: str
    offsets: Sequence[float]
    handler: str = "bench.noop"
    lane: Lane = Lane.NORMAL
    cron: str | None = None
    url: str | None = None

    @property
    def size(self) -> int:
        """How many jobs."""
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was loaded.

    Attributes:
        due: the first due instant, by the database's clock.
        copy_jobs_per_s: rows of `jobs` with their timers per second of COPY.
        wal: bytes written by it.
    """

    due: datetime
    copy_jobs_per_s: float
    wal: int


@dataclass(slots=True)
class _Rows:
    jobs: list[bytes] = field(default_factory=list)
    timers: list[bytes] = field(default_factory=list)


def at_once(count: int) -> list[float]:
    """All jobs at one instant."""
    return [0.0] * count


def evenly(rate: float, seconds: float) -> list[float]:
    """Jobs at evenly spaced instants."""
    return [index / rate for index in range(round(rate * seconds))]


def document(load: Load, name: str, run_at: datetime | None) -> dict[str, Any]:
    """Return a job document as a client would write it; its payload has `PAYLOAD_BYTES` bytes as JSON."""
    payload = {"pad": "x" * (PAYLOAD_BYTES - len('{"pad":""}'))}
    what: dict[str, Any] = {"type": "python", "handler": load.handler, "payload": payload}
    if load.url is not None:
        what = {
            "type": "http",
            "timeout_seconds": 300,
            "payload": {"url": load.url, "method": "POST", "body": payload},
        }
    when = {"schedule": {"cron": load.cron}} if load.cron else {"run_at": run_at and run_at.isoformat()}
    return {
        "name": name,
        "namespace": load.namespace,
        "priority": load.lane.label,
        **what,
        **when,
    }


def load(connection: psycopg.Connection, *loads: Load) -> Loaded:
    """Load jobs and their timers so that the first instant lies a little ahead when it is done.

    Raises:
        BenchmarkError: the database takes too long even with a generous lead.
    """
    size = sum(one.size for one in loads)
    lead_seconds = _LEAD_SECONDS + size / _LEAST_ROWS_PER_S
    for _ in range(_TRIES):
        due = database_now(connection) + timedelta(seconds=lead_seconds)
        began_wal = _wal(connection)
        rows = _render(loads, due, shards=_shards(connection))
        began = time.perf_counter()
        _copy(connection, _JOBS, rows.jobs)
        _copy(connection, _TIMERS, rows.timers)
        took = time.perf_counter() - began
        wal = _wal(connection) - began_wal
        connection.execute("analyze jobs, timers")
        if (due - database_now(connection)).total_seconds() > _SPARE_SECONDS:
            return Loaded(due, size / took, wal)
        # Late: part of it may have run already. It is withdrawn, and loaded again with more time.
        lead_seconds *= 2
        _withdraw(connection, [one.namespace for one in loads])
    raise BenchmarkError(f"{size} jobs could not be loaded within {lead_seconds / 2:.0f} s")


def database_now(connection: psycopg.Connection) -> datetime:
    """Return the time of any database of the benchmark's server."""
    row = connection.execute("select statement_timestamp()").fetchone()
    assert row is not None
    found: datetime = row[0]
    return found


def sleep_until(connection: psycopg.Connection, instant: datetime, *, early_seconds: float = 0.0) -> None:
    """Sleep until an instant of the database's clock, or a little before."""
    left = (instant - database_now(connection)).total_seconds() - early_seconds
    if left > 0:
        time.sleep(left)


_JOBS: Final = (
    "copy jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work,"
    " unique_name, state, version, created_at, updated_at) from stdin"
)
_TIMERS: Final = (
    "copy timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool) from stdin"
)


def _render(loads: Sequence[Load], due: datetime, *, shards: int) -> _Rows:
    """Write all rows as text before the clock of COPY runs; timers in the order of their instants."""
    rows = _Rows()
    timers: list[tuple[float, bytes]] = []
    for one in loads:
        now = due - timedelta(seconds=1)
        spec = parse_job(document(one, "one", due), now=now, ledger_floor=now - timedelta(days=1))
        ids = uuid7_batch(one.size)
        planned = first_due(spec, ids[0], now, zone_data_is_active=True, paused=False)
        for job_id, offset in zip(ids, one.offsets, strict=True):
            instant = due + timedelta(seconds=offset)
            first = planned if spec.schedule is not None else once_due(spec, instant)
            shard = shard_of(job_id, shards)
            rows.jobs.append(_job_row(job_id, shard, spec, first, now))
            timers.append((offset, _timer_row(job_id, shard, spec, first, instant)))
    timers.sort(key=lambda timer: timer[0])
    rows.timers = [row for _, row in timers]
    return rows


def _job_row(job_id: UUID, shard: int, spec: JobSpec, due: Due, now: datetime) -> bytes:
    return _line(
        job_id,
        spec.namespace,
        f"{spec.namespace}-{job_id}",
        spec.kind,
        spec.handler,
        int(spec.lane),
        spec.pool,
        shard,
        due.schedule,
        policy_text(spec),
        work_text(spec),
        "t" if spec.schedule is not None else "f",
        "active",
        1,
        now,
        now,
    )


def _timer_row(job_id: UUID, shard: int, spec: JobSpec, due: Due, instant: datetime) -> bytes:
    return _line(instant, instant, job_id, 1, shard, int(spec.lane), int(due.kind), spec.namespace, spec.pool)


def _line(*values: object) -> bytes:
    """One row of COPY's text format. Nothing that is loaded here holds a tab, a newline or a backslash."""
    return ("\t".join(_NULL if value is None else str(value) for value in values) + "\n").encode()


def _copy(connection: psycopg.Connection, command: str, rows: Sequence[bytes]) -> None:
    chunks = [b"".join(rows[at : at + _CHUNK]) for at in range(0, len(rows), _CHUNK)]
    with connection.cursor() as cursor, cursor.copy(command.encode()) as copy:
        for chunk in chunks:
            copy.write(chunk)


def _withdraw(connection: psycopg.Connection, namespaces: list[str]) -> None:
    connection.execute("delete from timers where namespace = any(%s)", [namespaces])
    give_up_at = time.monotonic() + 60
    live = "select exists (select from runs where namespace = any(%s) and state in ('queued', 'running'))"
    while time.monotonic() < give_up_at:
        row = connection.execute(live, [namespaces]).fetchone()
        if row is None or not row[0]:
            break
        time.sleep(0.2)
    connection.execute("delete from runs where namespace = any(%s)", [namespaces])
    connection.execute("delete from jobs where namespace = any(%s)", [namespaces])


def _shards(connection: psycopg.Connection) -> int:
    row = connection.execute("select shards from install").fetchone()
    assert row is not None
    return int(row[0])


def _wal(connection: psycopg.Connection) -> int:
    row = connection.execute("select (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])


def far_cron(now: datetime) -> str:
    """Return an expression whose next instant is half a day away, so that nothing fires again meanwhile."""
    return f"{now.minute} {(now.hour + 12) % 24} * * *"
