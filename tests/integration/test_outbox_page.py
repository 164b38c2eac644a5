"""The code blocks of docs/outbox.md run on a real database, and leave the rows that the page speaks of."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support.doc_blocks import blocks_of, run_python
from tests.support.stack import Postgres

from noonmark.outbox import create_table_sql

pytestmark = pytest.mark.postgres

PAGE = Path(__file__).parents[2] / "docs" / "outbox.md"


@pytest.fixture
def app_url(postgres_server: Postgres) -> Iterator[str]:
    name = f"app_{uuid.uuid4().hex[:12]}"
    postgres_server.run(f"create database {name}")
    yield postgres_server.url_of(name)
    postgres_server.run(f"drop database {name} with (force)")


def test_the_blocks_enqueue_what_they_say(app_url: str) -> None:
    with psycopg.connect(app_url) as connection:
        connection.execute("create table orders (item text)")
        connection.execute(create_table_sql())
    given = {"DATABASE_URL": app_url.replace("postgresql:", "postgresql+psycopg:"), "PSYCOPG_URL": app_url}
    names = run_python(blocks_of(PAGE, "python"), given)
    names["engine"].dispose()
    with psycopg.connect(app_url) as connection:
        for block in blocks_of(PAGE, "sql"):
            connection.execute(block.code)
        items = connection.execute("select item from orders").fetchall()
        rows = connection.execute(
            "select document -> 'payload' ->> 'order', idempotency_key = id::text, idempotency_key"
            " from noonmark_outbox order by seq"
        ).fetchall()
        columns = connection.execute(
            "select column_name from information_schema.columns where table_name = 'noonmark_outbox'"
        ).fetchall()
    assert items == [("lamp",), ("chair",)]
    assert [row[0] for row in rows] == ["7", "8", "9"]
    assert rows[0][1]
    assert [row[2] for row in rows[1:]] == ["confirm-order-8", "confirm-order-9"]
    text = PAGE.read_text(encoding="utf-8")
    assert [name for (name,) in columns if f"`{name}`" not in text] == []
