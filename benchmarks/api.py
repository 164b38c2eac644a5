"""What the API does: jobs made one at a time and in bulk, and pages of listings among many jobs and runs.

It starts a Postgres and one process of the API of its own; the client shares the machine with them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import psycopg

from benchmarks.api_client import ApiClient
from benchmarks.figures import Spread
from noonmark.auth.key_issuing import issue_key
from noonmark.core.access.roles import Principal
from noonmark.devstack.options import CLI
from noonmark.devstack.postgres.server import start_postgres
from noonmark.devstack.processes.ports import free_port
from noonmark.store.access.api_keys import NewKey
from noonmark.store.migrations.migrate import migrate

CLIENTS: Final = 16
CREATES: Final = 10_000
BULK: Final = 10_000
BULKS: Final = 5
PAGES: Final = 200
JOBS: Final = 100_000
RUNS: Final = 200_000
DAYS: Final = 30
TARGETS: Final = {"creates_per_second": 2500, "bulk_jobs_per_second": 30_000, "list_p99_ms": 50}
_READY_SECONDS: Final = 60.0

FILTERS: Final = (
    "", "name=job%20777", "search=b%20777", "search=nothing", "owner=owner%203", "owner=nobody",
    "handler=handler%205", "handler=rare", "label=team:team%204", "label=rare:yes",
    "label=team:team%204&label=rare:yes", "state=paused", "state=active", "state=completed", "state=broken",
    "priority=high", "pool=default", "pool=other", "type=python", "type=http", "recurring=true",
    "recurring=false", "owner=owner%203&state=paused&label=team:team%204",
)  # fmt: skip

_JOBS: Final = """
    insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, owner, labels, schedule, policy,
                      work, unique_name, state, version, created_at, updated_at)
    select noonmark_uuid7(), 'many', 'job ' || n, case when n %% 5 = 0 then 'http' else 'python' end,
           case when n %% 5 = 0 then null when n %% 5000 = 1 then 'rare' else 'handler ' || n %% 50 end,
           n %% 3, case when n %% 10 = 0 then 'other' else 'default' end, 0, 'owner ' || n %% 40,
           jsonb_build_object('team', 'team ' || n %% 30)
               || case when n %% 10000 = 7 then '{"rare": "yes"}'::jsonb else '{}' end,
           case when n %% 4 = 0 then '{"cron": "0 3 * * *", "timezone": "UTC"}'::jsonb end,
           case when n %% 4 = 0 then '{"overlap": "skip"}'::jsonb end,
           '{"payload": {"user_id": 7}, "timeout_seconds": 30, "retry": {"max_retries": 3,
             "delay_seconds": 60, "factor": 2, "max_delay_seconds": 3600, "jitter": "full"}}',
           n %% 4 = 0, case when n %% 100 = 7 then 'paused' else 'active' end, 1, now(), now()
    from generate_series(1, %(jobs)s) n
"""
_RUNS: Final = """
    insert into runs (id, scheduled_for, queued_at, started_at, finished_at, job_id, job_version, fence,
                      attempt, lane, shard, state, origin, namespace, pool, request_id)
    select noonmark_uuid7(), at, at, at, at, id, 1, 1, 1, 1, 0, 'succeeded', 'schedule', 'many', 'default',
           n::text
    from (select id, n, now() - make_interval(days => %(day)s) + make_interval(secs => 0.001 * n) as at
          from generate_series(1, %(runs)s) n
          join (select id, row_number() over () as place from jobs where namespace = 'many') as j
            on j.place = 1 + (n * 31 + %(day)s) %% %(jobs)s) as wanted
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured; rates are by the client's clock.

    Attributes:
        clients: of the creates, each with one request in flight.
        creates_per_second: of jobs made one at a time.
        create_ms: how long each took.
        keyed_creates_per_second: the same with an idempotency key each.
        bulk_jobs_per_second: of requests of `BULK` jobs, one after the other; the middle one.
        list_ms: of a page of 50, by its filters.
        list_p99_ms: of the slowest of these.
    """

    clients: int
    jobs: int
    runs: int
    creates_per_second: int
    create_ms: Spread | None
    keyed_creates_per_second: int
    bulk_jobs_per_second: int
    list_ms: dict[str, Spread | None]
    list_p99_ms: float


def measure(*, creates: int, clients: int, jobs: int, runs: int) -> Figures:
    """Start what is needed, measure, and end it."""
    with _api() as (client, database):
        rates, spread = [], None
        for keyed in (False, True):
            _create(client, clients * 50, clients=clients, keyed=keyed)
            began = time.perf_counter()
            took = _create(client, creates, clients=clients, keyed=keyed)
            rates.append(round(creates / (time.perf_counter() - began)))
            spread = spread or Spread.of_seconds(took)
        bulks = sorted(BULK / _bulk(client, number) for number in range(BULKS))
        _fill(database, jobs, runs)
        listed = {query or "none": _pages(client, query) for query in FILTERS}
    return Figures(
        clients, jobs, runs, rates[0], spread, rates[1], round(bulks[BULKS // 2]), listed,
        max(pages.p99 for pages in listed.values() if pages),
    )  # fmt: skip


@contextlib.contextmanager
def _api() -> Iterator[tuple[ApiClient, psycopg.Connection]]:
    """Run Postgres and the API; give a client of it, and a session of the owner's."""
    with tempfile.TemporaryDirectory(prefix="noonmark-bench-") as folder:
        server = start_postgres(Path(folder) / "postgres")
        try:
            migrate(server.url)
            with psycopg.connect(server.url, autocommit=True) as database:
                by = Principal("benchmark", "benchmark", platform=True)
                token = str(issue_key(database, by, NewKey("benchmark", {}, platform=True)).token)
                with _process(server.url) as url:
                    yield ApiClient(url, token), database
        finally:
            server.stop()


@contextlib.contextmanager
def _process(dsn: str) -> Iterator[str]:
    port, metrics = free_port(), free_port()
    own = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
    settings = {
        "NOONMARK_DATABASE_URL": dsn,
        "NOONMARK_API_RATE_PER_MINUTE": "0",
        "NOONMARK_METRICS_PORT": str(metrics),
        "NOONMARK_LOG_LEVEL": "warning",
    }
    process = subprocess.Popen([*CLI, "api", "--port", str(port)], env=own | settings)
    url = f"http://127.0.0.1:{port}"
    try:
        _await(f"{url}/healthz", process)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own address
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.1)


def _document(number: int) -> dict[str, Any]:
    """Return a one-time job of the far future, as a shop would make it."""
    return {
        "name": f"mail {number}",
        "type": "python",
        "handler": "mails.send_welcome",
        "run_at": "2090-01-01T00:00:00Z",
        "payload": {"user_id": number, "template": "welcome", "text": "x" * 150},
    }


def _create(client: ApiClient, count: int, *, clients: int, keyed: bool) -> list[float]:
    numbers = itertools.count(time.time_ns())

    def make() -> bytes:
        number = next(numbers)
        key = f"Idempotency-Key: {number}\r\n" if keyed else ""
        return client.request("POST", "/v1/jobs", orjson.dumps(_document(number)), headers=key)

    return client.load(make, clients, count, 202)


def _bulk(client: ApiClient, number: int) -> float:
    body = orjson.dumps({"jobs": [_document(number * BULK + n) for n in range(BULK)]})
    answer, seconds = client.call(client.request("POST", "/v1/jobs/bulk", body), 200)
    assert orjson.loads(answer)["accepted"] == BULK
    return seconds


def _pages(client: ApiClient, query: str) -> Spread | None:
    request = client.request("GET", f"/v1/jobs?namespace=many&{query}")
    client.load(lambda: request, 1, 10, 200)
    return Spread.of_seconds(client.load(lambda: request, 1, PAGES, 200))


def _fill(database: psycopg.Connection, jobs: int, runs: int) -> None:
    """Make jobs of every sort, and runs of theirs over a month."""
    database.execute(_JOBS, {"jobs": jobs})
    database.execute(
        "select noonmark_make_day((now() - make_interval(days => n))::date) from generate_series(0, %s) n",
        [DAYS],
    )
    for day in range(DAYS):
        database.execute(_RUNS, {"day": day, "runs": runs // DAYS, "jobs": jobs})
    database.execute("vacuum analyze jobs, job_labels, runs, timers")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.api", description=__doc__)
    parser.add_argument("--creates", type=int, default=CREATES, help="jobs made one at a time (%(default)s)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="that create jobs (%(default)s)")
    parser.add_argument("--jobs", type=int, default=JOBS, help="jobs that are listed (%(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs in the ledger meanwhile (%(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write every figure to this file")
    asked = parser.parse_args(arguments)
    figures = dataclasses.asdict(
        measure(creates=asked.creates, clients=asked.clients, jobs=asked.jobs, runs=asked.runs)
    )
    text = json.dumps({"figures": figures, "targets": TARGETS}, indent=2)
    print(text)
    if asked.json is not None:
        asked.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
