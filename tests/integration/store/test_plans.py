"""How Postgres executes every hot statement, on statistics that are right, missing or of an empty table.

A statement is given real values, planned as in production (no prepared statement survives), executed and
rolled back. It must visit about as many rows as its batch has, whatever the table holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.integration.store.world import EVERY_SHARD, World, open_world

from noonmark.core.ids import uuid7_batch
from noonmark.store import statements
from noonmark.store.statements import statement

ROWS = 24_000
BATCH = 400
WATCHED = ("timers", "outbox", "runs", "jobs")

Plan = Mapping[str, Any]

_RARE = {
    "resend_vanished": "reads the days of the look-back, every five minutes, while a group has passed its topic",
    "mark_time": "reads the outbox, every 5 s, in the leading dispatcher",
    "job_runs_now": "inserts only",
    "job_insert": "inserts only",
    "job_timers": "inserts only",
    "insert_runs": "inserts only",
    "insert_retries": "inserts only",
    "insert_events": "inserts only",
    "tell_runs": "inserts only",
    "job_conflicts": "looks up the few jobs that were left out",
    "job_update": "one job by its key",
    "job_set_state": "one job by its key",
    "job_lock": "one job by its key",
    "expired_days": "reads the catalogue, not the ledger",
}
"""Statements on the watched tables without a case of their own, and why."""

_READS_ITS_SLICE = {"job_hold_runs", "job_cancel_runs"}
"""An order of a person may read the unsent rows of one slice: `outbox` has no index by run, which every claim
would pay for, and its length is capped."""


class Filled:
    """A database with a backlog: due timers of each kind, unsent messages, queued and running runs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.db = world.db
        self.worker = world.worker()

    def fill(self) -> None:
        self.db.execute(
            """insert into jobs (id, namespace, kind, handler, lane, pool, shard, work, unique_name, state, version,
                                 created_at, updated_at)
               select noonmark_uuid7(), 'tests', 'python', 'h', n %% 3, 'default', n %% 4, '{"timeout_seconds":60}', false,
                      'active', 1, now(), now()
               from generate_series(1, %s) n""",
            [ROWS],
        )
        # A lane stands for a kind here: 0 one-time, 1 planned, 2 retries.
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
               select now() - interval '10 minutes', now(), id, case lane when 2 then id end, 1, shard, lane, lane, 'tests',
                      'default'
               from jobs"""
        )
        self.db.execute(
            """insert into runs (id, scheduled_for, queued_at, job_id, job_version, fence, lane, shard, state, origin,
                                 namespace, pool, owner, epoch, started_at)
               select noonmark_uuid7(), now(), now(), id, 1, 1, lane, shard,
                      case when shard < 2 then 'queued' else 'running' end, 'schedule', namespace, pool, %s, 1, now()
               from jobs""",
            [self.worker.worker],
        )
        self.db.execute(
            """insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
               select shard, lane, now(), id, job_id, scheduled_for, 1, 1, namespace, pool from runs"""
        )
        self.db.execute(
            """insert into start_batches (worker, epoch, first_scheduled_for, last_scheduled_for, started_at, overdue_at,
                                          run_ids)
               select %s, 1, min(scheduled_for), max(scheduled_for), min(started_at), now() + interval '1 h', array_agg(id)
               from (select *, row_number() over () / 100 as batch from runs where state = 'running') as r
               group by batch""",
            [self.worker.worker],
        )

    def choose(self) -> None:
        """The rows that the cases are about."""

        def few(query: str) -> list[tuple[Any, ...]]:
            return self.db.execute(f"{query} limit {BATCH}").fetchall()

        self.queued = few(
            "select id, scheduled_for, job_id from runs where state = 'queued' order by id desc"
        )
        self.running = few(
            "select id, scheduled_for, job_id from runs where state = 'running' order by id desc"
        )
        self.timers = few("select ctid::text, job_id from timers where kind = 1")
        self.outbox = few("select ctid::text, seq from outbox where slice = 2")
        self.started_at = self.world.value("select min(started_at) from runs")

    def cases(self) -> dict[str, dict[str, Any]]:
        me = self.worker._asdict()
        queued, running = span(self.queued), span(self.running)
        jobs = [row[2] for row in self.queued]
        small = {**span(self.queued[:5]), "shard": 0}
        due = {"shards": list(EVERY_SHARD), "limit": BATCH // 4}
        details = json.dumps({str(row[0]): [1, "dead", "x", None, "boom"] for row in self.running})
        refused = json.dumps({str(row[0]): [1, "no topic"] for row in self.queued})
        return {
            "claim_once": {**due, "lane": 0},
            "lock_planned": {**due, "lane": 1},
            "take_retries": {**due, "lane": 2},
            "probe_due": {"shards": list(EVERY_SHARD)},
            "due_days": due,
            "move_timers": {
                "places": [row[0] for row in self.timers],
                "at": [self.started_at] * len(self.timers),
            },
            "drop_timers": {"places": [row[0] for row in self.timers]},
            "read_outbox": {"slices": list(EVERY_SHARD), "lanes": [0, 1, 2, 3], "limits": [BATCH // 12] * 4},
            "delete_outbox": {
                "places": [row[0] for row in self.outbox],
                "seqs": [row[1] for row in self.outbox],
            },
            "pressure": {"slices": list(EVERY_SHARD), "cap": BATCH // 4},
            "park_runs": {**queued, "refused": refused, "retry_seconds": 5.0},
            "start_runs": {**me, **queued, "fence": 1, "pool": "default", "grace_seconds": 60},
            "finish_plain": {**me, **running, "fence": 1},
            "finish_detailed": {**me, **running, "outcomes": details},
            "already_recorded": {**me, **running},
            "my_batches": me,
            "my_live_runs": {**me, **running},
            "hand_back": {**me, **running},
            "cancel_unheld": {**me, **running},
            "expire_starts": queued,
            "requeue_runs": {**queued, "reason": "undeliverable"},
            "lose_runs": {
                **running,
                "workers": [self.worker.worker],
                "started_at": [self.started_at],
                "loss_budget": 5,
            },
            "lock_orphans": {"limit": 20},
            "break_jobs": {"ids": jobs[:20], "reasons": ["x"] * 20},
            "complete_jobs": {"ids": jobs[:20]},
            "job_lock_timers": {"job_id": jobs[0]},
            "job_drop_fire_timers": {"job_id": jobs[0]},
            "job_drop_retries": {"job_id": jobs[0]},
            "job_plan_timers": {"job_id": jobs[0]},
            "job_live_runs": {"job_id": jobs[0]},
            "job_hold_runs": small,
            "job_cancel_runs": small,
            "job_by_name": {"namespace": "tests", "name": "x"},
        }


UPDATES_OF_RUNS = (
    "expire_starts",
    "finish_detailed",
    "finish_plain",
    "hand_back",
    "cancel_unheld",
    "job_cancel_runs",
    "job_hold_runs",
    "lose_runs",
    "park_runs",
    "requeue_runs",
    "start_runs",
)


def span(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    at = [row[1] for row in rows]
    return {"ids": [row[0] for row in rows], "first": min(at), "last": max(at)}


@pytest.fixture(scope="module", params=["analysed while empty", "never analysed", "analysed when filled"])
def filled(request: pytest.FixtureRequest, postgres_server, template_database: str) -> Iterator[Filled]:
    name = f"plans_{uuid7_batch(1)[0].hex}"
    postgres_server.run(f"create database {name} template {template_database}")
    with open_world(postgres_server.url_of(name)) as world:
        tables = [*world.column("select relname from pg_class where relname ~ '^runs_[0-9]+$'"), *WATCHED]
        for table in tables:
            if table != "runs":
                world.db.execute(f"alter table {table} set (autovacuum_enabled = off)")
        if request.param == "analysed while empty":
            world.db.execute("analyze")
        database = Filled(world)
        database.fill()
        if request.param == "analysed when filled":
            world.db.execute("vacuum analyze")
        database.choose()
        yield database
    postgres_server.run(f"drop database {name} with (force)")


def explain(db: psycopg.Connection, name: str, params: Mapping[str, Any]) -> Plan:
    """Execute a statement in a transaction that is rolled back; return its plan with what it did."""
    with db.transaction() as transaction:
        row = db.execute(f"explain (analyze, timing off, format json) {statement(name)}", params).fetchone()
        assert row is not None
        raise_rollback = psycopg.Rollback(transaction)
        plan: Plan = row[0][0]["Plan"]
        raise raise_rollback
    return plan


def nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def table_of(node: Plan) -> str:
    relation: str = node.get("Relation Name", "")
    return "runs" if relation.startswith("runs_") else relation


def days_in(plan: Plan) -> set[str]:
    return {
        node["Relation Name"] for node in nodes(plan) if node.get("Relation Name", "").startswith("runs_")
    }


def visited(node: Plan) -> int:
    """Rows that a node looked at: those it gave and those it threw away."""
    thrown = sum(
        node.get(key, 0)
        for key in ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
    )
    return round((node["Actual Rows"] + thrown) * node["Actual Loops"])


def test_hot_statements_visit_only_the_rows_of_their_batch(filled):
    wrong = []
    for name, params in filled.cases().items():
        for node in nodes(explain(filled.db, name, params)):
            if name in _READS_ITS_SLICE and table_of(node) == "outbox":
                continue
            scans = node["Node Type"].endswith("Scan") and table_of(node) in WATCHED
            if node["Node Type"] == "Seq Scan" and table_of(node) in WATCHED and visited(node):
                wrong.append(f"{name} reads {node['Relation Name']} from end to end")
            elif (scans or "Join" in node["Node Type"] or node["Node Type"] == "Nested Loop") and (
                visited(node) > 3 * BATCH
            ):
                what = node.get("Relation Name", node["Node Type"])
                wrong.append(f"{name} visits {visited(node)} rows of {what} for a batch of {BATCH}")

    assert not wrong, "\n".join(wrong)


def test_writes_to_the_ledger_open_only_the_day_that_they_are_about(filled):
    cases = filled.cases()
    days = {name: days_in(explain(filled.db, name, cases[name])) for name in UPDATES_OF_RUNS}
    today = f"runs_{filled.world.now():%Y%m%d}"

    assert days == {key: {today} for key in UPDATES_OF_RUNS}


def test_hot_statements_find_rows_of_two_days_without_opening_others(filled):
    yesterday = filled.world.now() - timedelta(days=1)
    cases = filled.cases()["finish_plain"] | {"first": yesterday}

    plan = explain(filled.db, "finish_plain", cases)

    assert len(days_in(plan)) == 2


def test_the_count_of_unfinished_runs_does_not_read_the_ledger(filled):
    plan = explain(filled.db, "count_unfinished", {})

    scans = [node for node in nodes(plan) if table_of(node) == "runs"]
    # One look per batch and running run; the other days' partitions are never executed.
    assert not [node for node in scans if node["Node Type"] == "Seq Scan" and node["Actual Loops"]]
    assert (
        sum(visited(node) for node in scans if "Bitmap Index" not in node["Node Type"]) <= ROWS // 2 + BATCH
    )


def test_every_statement_on_a_large_table_has_a_case_or_a_reason_for_none(filled):
    cases = {*filled.cases(), "count_unfinished"}
    large = {name for name in statements.names() if re.search(rf"\b({'|'.join(WATCHED)})\b", statement(name))}

    assert large - cases - set(_RARE) == set()
    assert not cases & set(_RARE)


def test_starts_and_outcomes_leave_the_indexes_alone(filled):
    """HOT updates: neither state, owner nor times are indexed, and pages keep room for the next version."""
    world = filled.world
    cases = filled.cases()
    day = f"runs_{world.now():%Y%m%d}"
    before = updates(world, day)
    world.db.execute(statement("start_runs"), cases["start_runs"])
    started = world.value("select started_at from runs where id = %s", filled.queued[0][0])
    params = {**filled.worker._asdict(), **span(filled.queued), "fence": 1}
    assert len(world.db.execute(statement("finish_plain"), params).fetchall()) == BATCH

    total, hot = (after - earlier for after, earlier in zip(updates(world, day), before, strict=True))

    assert started is not None
    assert total == 2 * BATCH
    assert hot >= 0.9 * total


def updates(world: World, table: str) -> tuple[int, int]:
    world.db.execute("select pg_stat_force_next_flush()")
    (row,) = world.rows("select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = %s", table)
    return row["n_tup_upd"], row["n_tup_hot_upd"]
