"""`python -m benchmarks.verify`: what `noonmark verify` costs per run, as JSON.

A ledger of three days is written set-based, as sound services would have left it; then it is checked once.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.claim_backlog import cpu_seconds
from benchmarks.stack import BenchmarkError
from noonmark.cli.verify.pacing import Pacer
from noonmark.cli.verify.walk import LedgerCheck, Window
from noonmark.devstack.postgres.server import start_postgres
from noonmark.kafka.topics import Topics
from noonmark.store.database.connect import connect
from noonmark.store.migrations.migrate import migrate
from noonmark.store.verify.reader import LedgerReader

DAYS: Final = 3
RECURRING: Final = 1000
"""Jobs that share half of the runs; every other run is that of a one-time job."""

_MADE_ID: Final = (
    "(substr(noonmark_first_id({at})::text, 1, 14) || '7' || substr(md5({n}::text), 1, 3) || '-8'"
    " || substr(md5({n}::text), 4, 3) || '-' || substr(md5({n}::text), 7, 12))::uuid"
)
_FILL: Final = (
    # Of a thousand runs, 20 needed a second attempt, and 5 are dead.
    f"""create temporary table made as
        select n, at, {_MADE_ID.format(at="at", n="n")} as run_id,
               case when mod(n, 2) = 0 then {_MADE_ID.format(at="first_at", n="(-n)")}
                    else {_MADE_ID.format(at="first_at", n=f"mod(n, {2 * RECURRING})")} end as job_id,
               case when mod(n, 1000) < 5 then 'dead' when mod(n, 1000) < 25 then 'retried' else 'plain' end
                   as course
        from (select n, noonmark_now() - interval '40 days' as first_at,
                     noonmark_now() - interval '1 hour' - n * (interval '{DAYS} days' / %(runs)s) as at
              from generate_series(1, %(runs)s::int) as n) as numbered""",
    """insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, work, unique_name, state,
                         version, created_at, updated_at)
       select distinct on (job_id) job_id, 'bench', 'job-' || n, 'python', 'bench.noop', 1, 'default', 0,
              json_build_object('payload', repeat('x', 256), 'timeout_seconds', 60,
                                'retry', json_build_object('max_retries', 3)),
              false, 'active', 1, at - interval '1 day', at - interval '1 day'
       from made""",
    """insert into workers (pool, host, pid, lease_seconds, started_at, beat_at)
       values ('default', 'bench', 1, 15, noonmark_now() - interval '40 days', noonmark_now())""",
    """insert into runs (id, scheduled_for, queued_at, started_at, finished_at, job_id, job_version, fence,
                         attempt, lane, shard, state, reason, origin, request_id, namespace, pool, result,
                         error, owner, epoch)
       select run_id, at, at + interval '5 ms',
              at + case when course = 'plain' then interval '20 ms' else interval '3 s' end,
              at + interval '4 s', job_id, 1, case when course = 'plain' then 1 else 2 end,
              case when course = 'plain' then 1 else 2 end, 1, 0,
              case when course = 'dead' then 'dead' else 'succeeded' end,
              case when course = 'dead' then 'retries_exhausted' end, 'schedule', '', 'bench', 'default',
              case when course <> 'dead' then '"done"'::json end,
              case when course <> 'plain' then repeat('no luck ', 30) end, (select max(id) from workers), 1
       from made order by run_id""",
    """insert into attempts (run_id, scheduled_for, fence, attempt, outcome, error, worker, started_at,
                             finished_at)
       select run_id, at, number, number, 'failed', repeat('no luck ', 30), (select max(id) from workers),
              at + number * interval '1.5 s', at + number * interval '1.5 s' + interval '1 s'
       from made, generate_series(1, 2) as number
       where course = 'dead' or (course = 'retried' and number = 1)""",
    """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error,
                                 fingerprint, died_at)
       select run_id, at, job_id, 'bench', 2, 'retries_exhausted', repeat('no luck ', 30), 'f',
              at + interval '4 s'
       from made where course = 'dead'""",
    "vacuum analyze",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a ledger, check it, and print JSON; 1 if the check found anything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="in the ledger (%(default)s)")
    parser.add_argument("--step", type=int, default=2000, help="runs of one snapshot (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="share of the time for queries (%(default)s)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="noonmark-bench-") as folder:
        server = start_postgres(Path(folder) / "postgres")
        try:
            migrate(server.url)
            fill(server.url, chosen.runs)
            cost = _measure(server.url, chosen.runs, chosen.step, chosen.rate)
        finally:
            server.stop()
    json.dump(cost, sys.stdout, indent=2)
    print()
    return 0 if cost["clean"] else 1


def fill(url: str, runs: int) -> None:
    """Write a ledger of `DAYS` days before the last hour into a migrated database."""
    with connect(url, application="benchmark", autocommit=True, statement_timeout_seconds=1800) as connection:
        connection.execute(
            "select noonmark_make_day((noonmark_now() at time zone 'UTC')::date - n)"
            " from generate_series(0, %s) as n",
            [DAYS + 1],
        )
        for statement in _FILL:
            connection.execute(psycopg.sql.SQL(statement), {"runs": runs} if "%(" in statement else None)


def _measure(url: str, runs: int, step: int, rate: float) -> dict[str, object]:
    with connect(url, application="benchmark", autocommit=True) as connection:
        pacer = Pacer(rate)
        window = Window(None, None, (), step)
        check = LedgerCheck(LedgerReader(connection), window, pacer, Topics("bench"))
        backend = connection.info.backend_pid
        began, python, postgres = time.perf_counter(), time.process_time(), cpu_seconds(backend)
        report = check.run()
        seconds = time.perf_counter() - began
        python, postgres = time.process_time() - python, cpu_seconds(backend) - postgres
    if report.runs != runs:
        raise BenchmarkError(f"of {runs} runs, {report.runs} were checked")
    return {
        "runs": runs,
        "step": step,
        "rate": rate,
        "clean": report.clean,
        "findings": [finding.sentence for finding in report.findings[:5]],
        "steps": pacer.steps,
        "seconds": round(seconds, 2),
        "busy_ms_per_step": round(1000 * pacer.busy_seconds / pacer.steps, 1),
        "python_us_per_run": round(1e6 * python / runs, 1),
        "postgres_us_per_run": round(1e6 * postgres / runs, 1),
        "minutes_of_a_million": round(seconds / runs * 1e6 / 60, 2),
    }


if __name__ == "__main__":
    sys.exit(main())
