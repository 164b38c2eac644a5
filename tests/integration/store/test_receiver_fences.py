"""Fences in a receiver's own Postgres."""

import threading

import psycopg
import pytest

from noonmark.receiver import FenceStore, StaleFence, Verdict

PATIENCE = 60


@pytest.fixture
def store(database_url):
    store = FenceStore(psycopg.paramstyle, table="public.noonmark_fences")
    with psycopg.connect(database_url) as connection:
        store.create(connection)
        store.create(connection)
    return store


def test_fences_rise_and_never_fall(store, database_url):
    with psycopg.connect(database_url) as connection:
        assert store.accept(connection, "run-1", 2) is Verdict.NEW
        assert store.accept(connection, "run-1", 2) is Verdict.REPEATED
        with pytest.raises(StaleFence, match="fence 1 of run-1 is stale: fence 2 was accepted"):
            store.accept(connection, "run-1", 1)
        connection.rollback()
        assert store.accept(connection, "run-1", 1) is Verdict.NEW


@pytest.mark.parametrize("style", ["format", "pyformat"])
def test_both_styles_of_postgres_drivers(store, database_url, style):
    other = FenceStore(style, table="public.noonmark_fences")
    with psycopg.connect(database_url) as connection:
        assert other.accept(connection, "run-9", 5) is Verdict.NEW


@pytest.mark.parametrize(("first", "second", "told"), [(2, 1, "stale"), (1, 2, "new"), (1, 1, "repeated")])
def test_a_call_waits_for_the_one_before_it_and_is_then_judged(store, database_url, first, second, told):
    verdicts = []

    def late() -> None:
        with psycopg.connect(database_url, application_name="late") as connection:
            try:
                verdicts.append(store.accept(connection, "run-1", second).value)
            except StaleFence:
                verdicts.append("stale")

    with psycopg.connect(database_url) as connection, psycopg.connect(database_url, autocommit=True) as watch:
        store.accept(connection, "run-1", first)
        thread = threading.Thread(target=late)
        thread.start()
        while not watch.execute(
            "select 1 from pg_stat_activity where application_name = 'late' and wait_event_type = 'Lock'"
        ).fetchone():
            assert thread.is_alive()
        connection.commit()
        thread.join(PATIENCE)
    assert verdicts == [told]
