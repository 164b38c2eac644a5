"""Row-level security does not cost the API its plans: indexes are used under the role as they are without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest

from noonmark.core.ids import uuid7_batch
from noonmark.store.database.scope import enter_scope

JOBS = 6_000
TENANTS = 30
MINE = "n7"

QUERIES = {
    "jobs by namespace": "select id from jobs where namespace = 'n7' order by id limit 50",
    "a page of jobs": "select id from jobs where namespace = 'n7' and id > %(job)s order by id limit 50",
    "a job": "select * from jobs where id = %(job)s",
    "jobs by name": "select id from jobs where namespace = 'n7' and name = 'job 7' order by id limit 50",
    "runs of a job": "select id from runs where job_id = %(job)s order by scheduled_for desc limit 50",
    "a run": "select * from runs where id = %(run)s and scheduled_for = %(at)s",
    "attempts of a run": "select * from attempts where run_id = %(run)s",
    "versions of a job": "select * from job_versions where job_id = %(job)s",
    "timers of a job": "select * from timers where job_id = %(job)s",
    "audit entries": "select * from audit_log where namespace = 'n7' order by id desc limit 50",
    "dead letters": "select * from dead_letters where namespace = 'n7' order by died_at desc, run_id desc limit 50",
}


@pytest.fixture(scope="module")
def filled(postgres_server, template_database: str) -> Iterator[psycopg.Connection]:
    name = f"roleplans_{uuid7_batch(1)[0].hex}"
    postgres_server.copy(template_database, name)
    with psycopg.connect(postgres_server.url_of(name), autocommit=True) as db:
        db.execute(
            """insert into jobs (id, namespace, name, kind, lane, pool, shard, work, unique_name, state, version, created_at,
                                 updated_at)
               select noonmark_uuid7(), 'n' || n %% %s, 'job ' || n, 'python', 1, 'default', 0, '{}', false, 'active', 1,
                      now(), now()
               from generate_series(1, %s) n""",
            [TENANTS, JOBS],
        )
        db.execute(
            """insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, origin, namespace, pool)
               select noonmark_uuid7(), now(), id, 1, 1, 1, 0, 'waiting', 'schedule', namespace, 'default' from jobs"""
        )
        db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
               select now(), now(), id, 1, 0, 1, 0, namespace, 'default' from jobs"""
        )
        db.execute(
            """insert into attempts (run_id, scheduled_for, fence, attempt, outcome, finished_at)
               select id, scheduled_for, 1, 1, 'failed', now() from runs"""
        )
        db.execute(
            "insert into job_versions (job_id, version, kind, work) select id, 0, 'python', '{}' from jobs"
        )
        db.execute(
            """insert into audit_log (actor, actor_name, action, namespace, outcome, request_id)
               select 'x', 'x', 'x', namespace, 'done', 'x' from jobs"""
        )
        db.execute(
            """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, fingerprint, died_at)
               select id, scheduled_for, job_id, namespace, 1, 'x', 'x', now() from runs"""
        )
        db.execute("analyze")
        yield db
    postgres_server.drop(name)


def plan_of(
    db: psycopg.Connection, query: str, scope: tuple[str, ...] | None
) -> tuple[Mapping[str, Any], int]:
    """The plan of a query in a scope, executed, and how many rows it found."""
    run = db.execute(
        "select runs.id, scheduled_for, job_id from runs where namespace = %s limit 1", [MINE]
    ).fetchone()
    values = {"run": run[0], "at": run[1], "job": run[2]}
    with db.transaction(force_rollback=True):
        enter_scope(db, scope)
        row = db.execute(f"explain (analyze, costs off, timing off, format json) {query}", values).fetchone()
    return row[0][0]["Plan"], int(row[0][0]["Plan"]["Actual Rows"])


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("scope", [(MINE,), (MINE, "n8"), None], ids=["one", "two", "all"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_read_visits_what_it_returns_and_little_more(filled, name, scope):
    plan, _ = plan_of(filled, QUERIES[name], scope)

    visited = [
        (
            node["Node Type"],
            node.get("Relation Name"),
            node["Actual Rows"] + node.get("Rows Removed by Filter", 0),
        )
        for node in nodes(plan)
        if "Relation Name" in node
    ]
    assert visited
    assert max(rows for _, _, rows in visited) <= 2 * JOBS / TENANTS, visited
    assert "Seq Scan" not in {kind for kind, _, rows in visited if rows > 50}, visited


@pytest.mark.parametrize("name", QUERIES)
def test_the_namespaces_are_looked_up_once_for_a_statement(filled, name):
    plan, _ = plan_of(filled, QUERIES[name], (MINE,))

    once = [node for node in nodes(plan) if node.get("Parent Relationship") == "InitPlan"]
    assert once
    assert {node["Actual Loops"] for node in once} <= {0, 1}


@pytest.mark.parametrize("name", QUERIES)
def test_another_tenants_scope_finds_nothing(filled, name):
    _, own = plan_of(filled, QUERIES[name], (MINE,))
    _, foreign = plan_of(filled, QUERIES[name], ("n8",))

    assert foreign == 0
    assert own > 0 or name in {"a page of jobs", "jobs by name"}
