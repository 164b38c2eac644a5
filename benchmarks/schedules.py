"""What schedules cost: planning of due recurring jobs, an uncached next instant, a long preview.

A hundred thousand due jobs share a thousand cron expressions in twenty zones. They are claimed through the
trigger's own code from a Postgres of the benchmark's own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import orjson
import psycopg

from noonmark.core.ids import shard_of, uuid7_batch
from noonmark.core.schedules.preview import preview
from noonmark.core.schedules.schedule import Schedule, load_schedule, parse_schedule
from noonmark.core.states import Lane, TimerKind
from noonmark.devstack.postgres.server import start_postgres
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import TimerPlan
from noonmark.store.claims.planner import Planner
from noonmark.store.database.connect import connect
from noonmark.store.database.row_types import DueTimer
from noonmark.store.documents.columns import recurring_due
from noonmark.store.migrations.migrate import DEFAULT_SHARDS, migrate
from noonmark.store.outcomes.events import EventTopics

JOBS: Final = 100_000
EXPRESSIONS: Final = 1_000
PREVIEW_FIRES: Final = 10_000
BATCH: Final = 8_000
ZONES: Final = (
    "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo",
    "America/Santiago", "America/St_Johns", "Europe/London", "Europe/Dublin", "Europe/Berlin",
    "Europe/Athens", "Africa/Cairo", "Africa/Casablanca", "Asia/Jerusalem", "Asia/Beirut", "Australia/Sydney",
    "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham", "Antarctica/Troll",
)  # fmt: skip
TARGETS: Final = {"planning_us_per_run": 12.0, "uncached_next_us": 200.0, "preview_seconds": 1.0}
_TOPICS: Final = EventTopics(lifecycle="bench.lifecycle", dead="bench.dead")
_EVERY_SHARD: Final = tuple(range(DEFAULT_SHARDS))


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured; times are CPU time of this process."""

    jobs: int
    expressions: int
    zones: int
    claimed: int
    planning_us_per_run: float
    claim_cpu_us_per_run: float
    claim_runs_per_second: float
    uncached_next_us: float
    uncached_next_us_p99: float
    preview_seconds: float


class TimedPlanner:
    """The trigger's planner, with the CPU time of its plans added up."""

    def __init__(self) -> None:
        self._planner = Planner(catch_up_cap=100, ledger_cap=1000)
        self.zone_data = self._planner.zone_data
        self.spent_ns = 0

    def prepare(self, connection: psycopg.Connection, timers: Sequence[DueTimer]) -> None:
        """Plan the batch, so that one reading of the clock covers all of it."""
        began = time.process_time_ns()
        self._planner.prepare(connection, timers)
        self._plans = {timer.place: self._planner(timer) for timer in timers}
        self.spent_ns += time.process_time_ns() - began

    def __call__(self, timer: DueTimer) -> TimerPlan:
        """Return the plan that was made."""
        return self._plans[timer.place]


def expressions(count: int) -> list[dict[str, str]]:
    """Return so many different cron schedules, spread over the zones."""
    forms = ("{m} {h} * * *", "{m} * * * *", "{m} {h} * * {w}", "{m}-59/7 {h} 1,15 * *", "{m} {h} L * *")
    found = []
    for n in range(count):
        minute, hour, weekday = n // len(ZONES) % 60, n // 7 % 24, n % 7
        text = forms[n % len(forms)].format(m=minute, h=hour, w=weekday)
        found.append({"cron": text, "timezone": ZONES[n % len(ZONES)]})
    return found


def _schedules(count: int, now: datetime) -> list[Schedule]:
    return [parse_schedule(document, created_at=now) for document in expressions(count)]


def _fill(connection: psycopg.Connection, jobs: int, schedules: Sequence[Schedule]) -> None:
    row = connection.execute("select noonmark_now()").fetchone()
    assert row is not None
    due = row[0] - timedelta(seconds=5)
    ids = uuid7_batch(jobs)
    texts = [orjson.dumps(schedule.spec()).decode() for schedule in schedules]
    first = [recurring_due(schedule, ids[0], due, zone_data_is_active=True) for schedule in schedules]
    with connection.cursor() as cursor:
        with cursor.copy(
            "copy jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work,"
            " unique_name, state, version, created_at, updated_at) from stdin"
        ) as copy:
            for n, job_id in enumerate(ids):
                shard = shard_of(job_id, DEFAULT_SHARDS)
                copy.write_row(
                    (job_id, "bench", f"job-{n}", "python", "bench.noop", 1, "default", shard,
                     texts[n % len(texts)], None, '{"payload":{},"timeout_seconds":60}', True,
                     "active", 1, due, due)
                )  # fmt: skip
        with cursor.copy(
            "copy timers (fire_at, scheduled_for, after_at, after_offset, job_id, job_version, shard, lane,"
            " kind, namespace, pool) from stdin"
        ) as copy:
            for n, job_id in enumerate(ids):
                planned = first[n % len(first)]
                copy.write_row(
                    (due, due, due - timedelta(minutes=1), planned.after_offset, job_id, 1,
                     shard_of(job_id, DEFAULT_SHARDS), 1, int(TimerKind.ZONED), "bench", "default")
                )  # fmt: skip
    connection.execute("analyze jobs; analyze timers")


def _claim_all(connection: psycopg.Connection, planner: TimedPlanner) -> tuple[int, float, float]:
    """Return the runs claimed, the CPU seconds of this process and the wall seconds."""
    claimed, cpu, wall = 0, time.process_time(), time.perf_counter()
    while True:
        result = claims.claim_planned(
            connection,
            Lane.NORMAL,
            _EVERY_SHARD,
            BATCH,
            kind=TimerKind.ZONED,
            plan=planner,
            topics=_TOPICS,
            install_shards=DEFAULT_SHARDS,
        )
        if not result.claimed:
            return claimed, time.process_time() - cpu, time.perf_counter() - wall
        claimed += result.claimed


def _uncached(count: int, now: datetime) -> Iterator[float]:
    """Yield the microseconds of `next` of schedules that were never asked, in zones that were."""
    schedules = [load_schedule(schedule.spec()) for schedule in _schedules(count, now)]
    for zone in ZONES:
        parse_schedule({"cron": "0 0 * * *", "timezone": zone}, created_at=now)
    for schedule in schedules:
        began = time.perf_counter_ns()
        schedule.next(now)
        yield (time.perf_counter_ns() - began) / 1000


def measure(jobs: int, say: Callable[[str], None]) -> Figures:
    """Measure everything."""
    now = datetime.now(UTC)
    say(f"{EXPRESSIONS} uncached expressions")
    cold = sorted(_uncached(EXPRESSIONS, now))
    say(f"a preview of {PREVIEW_FIRES} fires")
    daily = parse_schedule({"cron": "*/5 * * * *", "timezone": "America/New_York"}, created_at=now)
    began = time.perf_counter()
    fires = preview(daily, now, None, PREVIEW_FIRES).fires
    preview_seconds = time.perf_counter() - began
    assert len(fires) == PREVIEW_FIRES
    with tempfile.TemporaryDirectory(prefix="noonmark-bench-") as folder:
        server = start_postgres(Path(folder) / "postgres")
        try:
            migrate(server.url)
            with connect(server.url, application="bench", autocommit=True) as connection:
                say(f"{jobs} due jobs with {EXPRESSIONS} expressions in {len(ZONES)} zones")
                _fill(connection, jobs, _schedules(EXPRESSIONS, now))
                planner = TimedPlanner()
                claimed, cpu, wall = _claim_all(connection, planner)
        finally:
            server.stop()
    return Figures(
        jobs=jobs,
        expressions=EXPRESSIONS,
        zones=len(ZONES),
        claimed=claimed,
        planning_us_per_run=round(planner.spent_ns / 1000 / claimed, 2),
        claim_cpu_us_per_run=round(cpu * 1e6 / claimed, 1),
        claim_runs_per_second=round(claimed / wall),
        uncached_next_us=round(statistics.median(cold), 1),
        uncached_next_us_p99=round(cold[len(cold) * 99 // 100], 1),
        preview_seconds=round(preview_seconds, 3),
    )


def main() -> None:
    """Measure and print; `--json FILE` keeps the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedules", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS, help="due jobs (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write every figure to this file")
    options = parser.parse_args()
    figures = measure(options.jobs, lambda text: print(f"… {text}", flush=True))
    shown = {name: getattr(figures, name) for name in Figures.__dataclass_fields__}
    for name, value in shown.items():
        target = TARGETS.get(name)
        verdict = (
            "" if target is None else f"   at most {target:g}: {'reached' if value <= target else 'MISSED'}"
        )
        print(f"{name:26} {value:>12,}{verdict}")
    if options.json is not None:
        options.json.write_text(json.dumps(shown, indent=2) + "\n")


if __name__ == "__main__":
    main()
