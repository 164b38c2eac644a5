"""`python -m benchmarks.limits`: what a run costs more under each rule that may hold it up, as JSON.

One process does what trigger and worker do with a run, in their batches: claim, promotion, start, outcome.
Kafka is left out: a rule changes nothing there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import psycopg
from psycopg.types.json import Json

from benchmarks.claim_backlog import cpu_seconds
from noonmark.core.ids import shard_of, uuid7_batch
from noonmark.core.states import AttemptOutcome, Lane, Overlap, RunState, TimerKind
from noonmark.devstack.postgres.server import start_postgres
from noonmark.store.claims import claims
from noonmark.store.claims.planner import Planner
from noonmark.store.database.connect import connect
from noonmark.store.limits import promotion
from noonmark.store.limits.limits import Figures, set_limit
from noonmark.store.migrations.migrate import DEFAULT_SHARDS, migrate
from noonmark.store.namespaces.namespaces import mark_cap
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import finish, starts, worker_lease
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.starts import StartRequest
from noonmark.store.runs.worker_lease import Identity

RUNS: Final = 10_000
BATCH: Final = 500
ROUNDS: Final = 3
_PLACES: Final = 200
"""Of a limit or cap: fewer than wait, so that lines are long and every end of a run makes room."""

_TOPICS: Final = EventTopics(lifecycle="bench.lifecycle", dead="bench.dead")
_SHARDS: Final = tuple(range(DEFAULT_SHARDS))


@dataclass(frozen=True, slots=True)
class Case:
    """A rule: the policy of the jobs, and what is set before they come due."""

    name: str
    policy: dict[str, object] | None
    prepare: Callable[[psycopg.Connection], object] = lambda _connection: None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run of a case cost: CPU of Postgres and of this process in µs, and WAL in bytes."""

    case: str
    runs: int
    postgres_us_per_run: float
    python_us_per_run: float
    wal_bytes_per_run: float


def _limited(connection: psycopg.Connection) -> None:
    set_limit(connection, "default", "api", Figures(max_running=_PLACES))


def _rated(connection: psycopg.Connection) -> None:
    # More tokens than runs: what is measured is the taking, not the waiting.
    set_limit(connection, "default", "api", Figures(rate_count=1_000_000, rate_seconds=1.0))


CASES: Final = (
    Case("none", None),
    Case("overlap skip", {"overlap": Overlap.SKIP.value}),
    Case("overlap queue_one", {"overlap": Overlap.QUEUE_ONE.value}),
    Case("limit of concurrency", {"limits": [["api", None]]}, _limited),
    Case("limit by time", {"limits": [["api", None]]}, _rated),
    Case("cap of the namespace", None, lambda connection: mark_cap(connection, "default", _PLACES)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every case and print JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each round (%(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="of each case; the cheapest counts (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="noonmark-bench-") as folder:
        server = start_postgres(Path(folder) / "postgres")
        try:
            migrate(server.url)
            costs = [_measure(server.url, case, chosen.runs, chosen.rounds) for case in CASES]
        finally:
            server.stop()
    json.dump(
        {"batch": BATCH, "places": _PLACES, "costs": [asdict(cost) for cost in costs]}, sys.stdout, indent=2
    )
    print()
    return 0


def _measure(url: str, case: Case, runs: int, rounds: int) -> Cost:
    with connect(url, application="benchmark", autocommit=True, statement_timeout_seconds=600) as connection:
        measured = [_round(connection, case, runs) for _ in range(rounds)]
    return min(measured, key=lambda cost: cost.postgres_us_per_run + cost.python_us_per_run)


def _round(connection: psycopg.Connection, case: Case, runs: int) -> Cost:
    connection.execute(
        "truncate runs, outbox, jobs, timers, waits, slots, limit_slots, buckets, start_batches, limits,"
        " namespaces"
    )
    case.prepare(connection)
    _load(connection, case, runs)
    connection.execute("vacuum analyze")
    worker = worker_lease.register(connection, pool="default", host="bench", pid=1, lease_seconds=3600.0)
    planner = Planner(catch_up_cap=100, ledger_cap=1000)
    backend = connection.info.backend_pid
    wal, postgres, python = _wal(connection), cpu_seconds(backend), time.process_time()
    done = 0
    while done < runs:
        claims.claim_planned(
            connection,
            Lane.NORMAL,
            _SHARDS,
            BATCH,
            kind=TimerKind.PLANNED,
            plan=planner,
            topics=_TOPICS,
            install_shards=DEFAULT_SHARDS,
        )
        if promotion.has_waiting_runs(connection):
            promotion.promote(connection, _TOPICS, install_shards=DEFAULT_SHARDS)
        done += _work(connection, worker)
    spent = cpu_seconds(backend) - postgres, time.process_time() - python
    return Cost(
        case.name,
        runs,
        round(1e6 * spent[0] / runs, 1),
        round(1e6 * spent[1] / runs, 1),
        round((_wal(connection) - wal) / runs, 0),
    )


def _load(connection: psycopg.Connection, case: Case, runs: int) -> None:
    """Put one-time jobs in place that need planning, and are due."""
    ids = uuid7_batch(runs)
    shards = [shard_of(job_id, DEFAULT_SHARDS) for job_id in ids]
    at = connection.execute("select noonmark_now() - interval '5 s'").fetchone()
    assert at is not None
    schedule = Json({"run_at": at[0].isoformat()})
    policy = Json(case.policy) if case.policy is not None else None
    connection.execute(
        """insert into jobs (id, namespace, kind, handler, lane, pool, shard, schedule, policy, work,
                             unique_name, state, version, created_at, updated_at)
           select id, 'default', 'python', 'h', 1, 'default', shard, %s, %s, '{"timeout_seconds": 60}', false,
                  'active', 1, now(), now()
           from unnest(%s::uuid[], %s::smallint[]) as u (id, shard)""",
        [schedule, policy, ids, shards],
    )
    connection.execute(
        """insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace,
                               pool)
           select %s, %s, id, 1, shard, 1, 1, 'default', 'default'
           from unnest(%s::uuid[], %s::smallint[]) as u (id, shard)""",
        [at[0], at[0], ids, shards],
    )


def _work(connection: psycopg.Connection, worker: Identity) -> int:
    """Relay, start and end what is queued, without Kafka in between."""
    rows: list[tuple[UUID, object, int]] = connection.execute(
        "delete from outbox where ctid = any (array("
        "  select ctid from outbox where lane = 1 order by slice, seq limit %s))"
        " returning run_id, scheduled_for, fence",
        [BATCH],
    ).fetchall()
    requests = [StartRequest(run_id, at, fence) for run_id, at, fence in rows]  # type: ignore[arg-type]
    started, _ = starts.start(connection, worker, "default", requests)
    fences = {request.run_id: request.fence for request in requests}
    outcomes = [
        Outcome(run, fences[run.id], RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, pool="default")
        for run in started
    ]
    with connection.transaction():
        finish.record(
            connection,
            worker,
            _TOPICS,
            outcomes,
            list({run.batch_id for run in started}),
            shards=DEFAULT_SHARDS,
        )
    return len(started)


def _wal(connection: psycopg.Connection) -> int:
    row = connection.execute("select (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    position: int = row[0]
    return position


if __name__ == "__main__":
    sys.exit(main())
