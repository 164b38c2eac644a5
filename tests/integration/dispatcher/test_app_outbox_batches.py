"""How much of an application's outbox is relayed at once, and where its table may lie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.dispatcher.test_app_outbox import JOB, Shop, app_database

from noonmark import outbox
from noonmark.dispatcher import app_outbox
from noonmark.store.database.connect import connect

pytestmark = [pytest.mark.postgres]

__all__ = ["app_database"]


@pytest.fixture
def shop(app_database: str, emptied_database: str) -> Iterator[Shop]:
    made = Shop(app_database, emptied_database)
    yield made
    made.close()


def test_large_documents_are_relayed_a_few_at_a_time_in_their_order(shop, monkeypatch):
    """As many as there may be of rows would not fit into memory, nor into the time that a transaction may idle."""
    monkeypatch.setattr(app_outbox, "_BATCH_BYTES", 10_000)
    for n in range(5):
        shop.put({**JOB, "handler": f"h{n}", "payload": "x" * 6000})
    loop = shop.loop()
    assert [loop.run_once(shop.app, shop.noonmark) for _ in range(4)] == [2, 2, 1, 0]
    assert [job[1] for job in shop.jobs()] == [f"h{n}" for n in range(5)]


def test_documents_that_take_long_to_check_do_not_use_up_the_time_of_a_transaction(shop, monkeypatch):
    monkeypatch.setattr(app_outbox, "_CHECK_SECONDS", 0.0)
    for n in range(3):
        shop.put({**JOB, "handler": f"h{n}"})
    loop = shop.loop()
    assert [loop.run_once(shop.app, shop.noonmark) for _ in range(4)] == [1, 1, 1, 0]
    assert [job[1] for job in shop.jobs()] == ["h0", "h1", "h2"]


def test_the_table_may_lie_in_a_schema_that_the_url_names(shop):
    shop.app.execute("drop schema if exists elsewhere cascade; create schema elsewhere")
    url = f"{shop.url}{'&' if '?' in shop.url else '?'}options=-csearch_path%3Delsewhere"
    with connect(url, application="tests", autocommit=True) as theirs:
        theirs.execute(outbox.create_table_sql())
        with theirs.transaction():
            outbox.add(theirs, {**JOB, "handler": "h1"})
        assert shop.loop().run_once(theirs, shop.noonmark) == 1
        assert theirs.execute("show statement_timeout").fetchone() == ("30s",)
    assert [job[1] for job in shop.jobs()] == ["h1"]
    assert shop.rows() == []
