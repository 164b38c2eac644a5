"""`noonmark outbox`: the table is made, looked at, and its parked rows are let go again."""

from __future__ import annotations

import getpass
import json
import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.support.stack import Postgres

pytestmark = pytest.mark.postgres


@pytest.fixture
def app_url(postgres_server: Postgres) -> Iterator[str]:
    name = f"app_{uuid.uuid4().hex[:12]}"
    postgres_server.run(f"create database {name}")
    yield postgres_server.url_of(name)
    postgres_server.run(f"drop database {name} with (force)")


def test_an_outbox_from_its_making_to_a_second_try(
    noonmark: Callable[..., str], app_url: str, monkeypatch: pytest.MonkeyPatch, emptied_database: str
) -> None:
    assert "has no table noonmark_outbox; run `noonmark outbox install`" in noonmark(
        "outbox", "status", "--url", app_url, code=1
    )
    assert noonmark("outbox", "install", "--url", app_url).startswith(
        "the outbox is ready in the database app_"
    )
    assert noonmark("outbox", "install", "--url", app_url).startswith("the outbox is ready")
    with psycopg.connect(app_url) as connection:
        connection.execute(
            """insert into noonmark_outbox (id, document, idempotency_key, parked_at, error)
               select gen_random_uuid(), '{}', n::text, case n when 2 then now() end, case n when 2 then 'no' end
               from generate_series(1, 2) n"""
        )

    monkeypatch.setenv("NOONMARK_APP_OUTBOXES", f"shop={app_url}=billing")
    assert "1 waiting, the oldest for 0 s; 1 parked" in noonmark("outbox", "status", "shop")
    shown = json.loads(noonmark("outbox", "status", "--json"))
    assert (shown["waiting"], shown["parked"], shown["items"][0]["error"]) == (1, 1, "no")

    assert "is not a row id" in noonmark("outbox", "retry", "--row", "7", code=2)
    assert noonmark("outbox", "retry", "--row", shown["items"][0]["id"]) == "1 row requeued\n"
    assert json.loads(noonmark("outbox", "status", "--json"))["waiting"] == 2
    assert noonmark("outbox", "retry") == "0 rows requeued\n"
    # In the log is what was changed of the installation's outbox; the table's making was asked for by a URL.
    kept = (f"local:{getpass.getuser()}", "outbox.retry", "outbox:shop", "billing", 1)
    with psycopg.connect(emptied_database) as connection:
        rows = connection.execute(
            "select actor, action, object, namespace, (after ->> 'rows')::int from audit_log"
        )
        assert rows.fetchall() == [kept]


def test_where_the_change_cannot_be_kept_nothing_is_changed(
    noonmark: Callable[..., str], app_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOONMARK_APP_OUTBOXES", f"shop={app_url}=billing")
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    noonmark("outbox", "install", "shop", code=3)
    assert "has no table noonmark_outbox" in noonmark("outbox", "status", "--url", app_url, code=1)


def test_what_is_meant_is_asked_for(
    noonmark: Callable[..., str], app_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "NOONMARK_APP_OUTBOXES is empty; give --url" in noonmark("outbox", "status", code=2)
    monkeypatch.setenv("NOONMARK_APP_OUTBOXES", f"a={app_url}=x b={app_url}=y")
    assert "give the name of an outbox; configured: a, b" in noonmark("outbox", "install", code=2)
    assert "outbox 'c' does not exist; configured: a, b" in noonmark("outbox", "install", "c", code=2)
    assert "not both" in noonmark("outbox", "install", "a", "--url", app_url, code=2)
    told = noonmark("outbox", "status", "--url", "postgresql://u:hunter2@[/x", code=2)
    assert "--url is not a Postgres URL" in told
    assert "hunter2" not in told
    away = noonmark("outbox", "status", "--url", "postgresql://u:hunter2@127.0.0.1:1/x", code=3)
    assert "cannot connect to the database" in away
    assert "hunter2" not in away


def test_the_statements_can_be_taken_into_the_applications_own_migrations(
    noonmark: Callable[..., str],
) -> None:
    assert noonmark("outbox", "install", "--sql").startswith("create table if not exists noonmark_outbox (")
