"""How Postgres executes the statements about workflows, on statistics that are right, missing or of an empty table."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.integration.store.test_plans import days_in, explain, nodes, statement_of, table_of, visited
from tests.integration.store.workflow_plans import BATCH, CASES, WorkflowBacklog
from tests.integration.store.world import open_world

from noonmark.core.ids import uuid7_batch

WATCHED = ("timers", "runs", "jobs", "workflows", "workflow_tasks")

OF_ONE_DAY = ("open_workflows", "close_workflows", "lock_queued_workflows", "release_facts", "insert_facts")


@pytest.fixture(scope="module", params=["analysed while empty", "never analysed", "analysed when filled"])
def backlog(
    request: pytest.FixtureRequest, postgres_server, template_database: str
) -> Iterator[WorkflowBacklog]:
    name = f"flowplans_{uuid7_batch(1)[0].hex}"
    postgres_server.copy(template_database, name)
    with open_world(postgres_server.url_of(name)) as world:
        days = world.column("select relname from pg_class where relname ~ '^runs_[0-9]+$'")
        for table in (*days, *WATCHED):
            if table != "runs":
                world.db.execute(f"alter table {table} set (autovacuum_enabled = off)")
        if request.param == "analysed while empty":
            world.db.execute("analyze")
        filled = WorkflowBacklog(world)
        filled.fill()
        if request.param == "analysed when filled":
            world.db.execute("vacuum analyze")
        yield filled
    postgres_server.drop(name)


def wrongs_of(db: psycopg.Connection, name: str, params: dict) -> Iterator[str]:
    """What a statement reads too much of; also a bitmap of an index that is combined with another one."""
    for node in nodes(explain(db, name, params)):
        bitmap = node["Node Type"] == "Bitmap Index Scan"
        scans = bitmap or (node["Node Type"].endswith("Scan") and table_of(node) in WATCHED)
        if node["Node Type"] == "Seq Scan" and table_of(node) in WATCHED and visited(node):
            yield f"{name} reads {node['Relation Name']} from end to end"
        elif (scans or "Join" in node["Node Type"] or node["Node Type"] == "Nested Loop") and (
            visited(node) > 3 * BATCH
        ):
            yield f"{name} visits {visited(node)} rows of {table_of(node) or node.get('Index Name', node['Node Type'])} for {BATCH}"


def test_statements_about_workflows_visit_only_the_rows_of_their_batch(backlog):
    cases = backlog.cases()

    wrong = [one for name, params in cases.items() for one in wrongs_of(backlog.db, name, params)]

    assert set(map(statement_of, cases)) == CASES
    assert not wrong, "\n".join(wrong)


def test_what_is_about_one_day_opens_no_other(backlog):
    cases = backlog.cases()
    today = f"runs_{backlog.world.now():%Y%m%d}"

    days = {name: days_in(explain(backlog.db, name, cases[name])) for name in OF_ONE_DAY}

    assert days == {name: {today} for name in OF_ONE_DAY}
