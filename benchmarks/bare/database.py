"""The bare design's tables, its statements, and loading jobs that will be due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson
import psycopg

from benchmarks.load import PAYLOAD_BYTES, database_now
from benchmarks.stack import BenchmarkError
from noonmark.core.ids import uuid7_batch

SCHEMA: Final = """
create table jobs (
    id uuid primary key, tenant int not null, name text not null, handler text not null,
    lane smallint not null, state text not null default 'active', payload bytea not null,
    created_at timestamptz not null default now()
) with (fillfactor = 90);
create table timers (
    shard smallint not null, fire_at timestamptz not null, job_id uuid not null, lane smallint not null,
    primary key (shard, fire_at, job_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create table runs (
    id uuid primary key, job_id uuid not null, scheduled_for timestamptz not null, lane smallint not null,
    state text not null, attempt smallint not null, worker text, retry_at timestamptz,
    queued_at timestamptz not null, started_at timestamptz, finished_at timestamptz, error text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0,
        vacuum_truncate = off);
create unique index on runs (job_id, scheduled_for);
create index on runs (retry_at) where retry_at is not null;
create table outbox (
    shard smallint not null, id bigint generated always as identity, run_id uuid not null,
    job_id uuid not null, attempt smallint not null, due timestamptz not null,
    created_at timestamptz not null default now(),
    primary key (shard, id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
"""

CLAIM: Final = """
with due as (
    delete from timers where ctid = any (array(
        select ctid from timers where shard = 0 and fire_at <= now()
        order by fire_at, job_id limit %(most)s for update skip locked
    ))
    returning fire_at, job_id, lane
), planned as (
    insert into runs (id, job_id, scheduled_for, lane, state, attempt, queued_at)
    select gen_random_uuid(), job_id, fire_at, lane, 'queued', 1, now() from due
    returning id, job_id, scheduled_for
), queued as (
    insert into outbox (shard, run_id, job_id, attempt, due)
    select 0, id, job_id, 1, scheduled_for from planned
    returning 1
)
select count(*) from queued
"""
"""Turns due timers into queued runs with their outbox rows; returns how many."""

READ_OUTBOX: Final = """
select outbox.id, run_id, job_id, attempt, extract(epoch from due)::float8, job.handler, job.payload
from outbox
left join lateral (select handler, payload from jobs where jobs.id = outbox.job_id offset 0) as job on true
where shard = 0 order by outbox.id limit %(most)s
"""

DELETE_RELAYED: Final = (
    "delete from outbox where shard = 0 and id between %(first)s and %(last)s and id = any (%(ids)b)"
)

START: Final = (
    "update runs set state = 'running', worker = %(worker)s, started_at = now()"
    " where id = any (%(ids)b::uuid[]) and state = 'queued'"
)

FINISH: Final = (
    "update runs set state = 'succeeded', finished_at = now()"
    " where id = any (%(ids)b::uuid[]) and state = 'running'"
)

_LEAST_ROWS_PER_S: Final = 40_000
_LEAD_SECONDS: Final = 2.0
_SPARE_SECONDS: Final = 0.3
_TRIES: Final = 4
_TENANTS: Final = 50
_LANES: Final = 3


def connect(url: str, application: str) -> psycopg.Connection:
    """Open a session in autocommit whose name shows in the CPU by session."""
    return psycopg.connect(url, autocommit=True, application_name=application, options="-c TimeZone=UTC")


def load(connection: psycopg.Connection, offsets: Sequence[float], *, handler: str) -> datetime:
    """Load one-time jobs and their timers in one transaction; return the first due instant.

    Args:
        connection: in autocommit.
        offsets: seconds from the first due instant to that of each job, rising.
        handler: `bench.noop` or `bench.stamp`.

    Raises:
        BenchmarkError: the database takes too long even with a generous lead.
    """
    lead_seconds = _LEAD_SECONDS + len(offsets) / _LEAST_ROWS_PER_S
    for _ in range(_TRIES):
        due = database_now(connection) + timedelta(seconds=lead_seconds)
        with connection.transaction() as transaction:
            _copy(connection, due, offsets, handler)
            connection.execute("analyze jobs, timers")
            # No process reads a row before the commit: a load that took too long leaves no trace.
            if (due - database_now(connection)).total_seconds() < _SPARE_SECONDS:
                raise psycopg.Rollback(transaction)
            return due
        lead_seconds *= 2
    raise BenchmarkError(f"{len(offsets)} jobs could not be loaded within {lead_seconds / 2:.0f} s")


def _copy(connection: psycopg.Connection, due: datetime, offsets: Sequence[float], handler: str) -> None:
    payload = orjson.dumps({"pad": "x" * (PAYLOAD_BYTES - len('{"pad":""}'))})
    ids = uuid7_batch(len(offsets))
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "copy jobs (id, tenant, name, handler, lane, payload) from stdin (format binary)"
        ) as copy,
    ):
        copy.set_types(["uuid", "int4", "text", "text", "int2", "bytea"])
        for number, job_id in enumerate(ids):
            name, lane = f"job-{number}", number % _LANES
            copy.write_row((job_id, number % _TENANTS, name, handler, lane, payload))
    with (
        connection.cursor() as cursor,
        cursor.copy("copy timers (shard, fire_at, job_id, lane) from stdin (format binary)") as copy,
    ):
        copy.set_types(["int2", "timestamptz", "uuid", "int2"])
        for number, (job_id, offset) in enumerate(zip(ids, offsets, strict=True)):
            copy.write_row((0, due + timedelta(seconds=offset), job_id, number % _LANES))
