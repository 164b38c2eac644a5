"""What a handler does to its connection ends with its attempt: neither its outcome nor the next job feels it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader
from tests.integration.store.world import World

from noonmark.core.states import RunState

ONCE = {"delivery": "exactly_once"}


@pytest.fixture(autouse=True)
def effects(world: World) -> Iterator[None]:
    world.db.execute("create table effects (what text)")
    yield
    world.db.execute("drop table effects")


def rows_as_dicts(connection):
    connection.row_factory = dict_row


def client_side_cursors(connection):
    connection.cursor_factory = psycopg.ClientCursor


def loaders_of_its_own(connection):
    for name in ("uuid", "timestamptz", "int4", "text"):
        connection.adapters.register_loader(name, TextLoader)


def tables_of_our_names(connection):
    connection.execute("create temp table runs as select * from runs")
    connection.execute("create temp table attempts as select * from attempts")


def a_path_of_its_own(connection):
    connection.execute("set search_path = pg_catalog")


def a_role_of_its_own(connection):
    connection.execute("set role pg_read_all_stats")


def settings_and_locks(connection):
    connection.execute("set lock_timeout = 77")
    connection.execute("set application_name = 'mine'")
    connection.execute("create temp table leftover (n int)")
    connection.execute("select pg_advisory_lock(4242)")
    connection.execute("listen anything")


@pytest.mark.parametrize(
    "change",
    [
        rows_as_dicts,
        client_side_cursors,
        loaders_of_its_own,
        tables_of_our_names,
        a_path_of_its_own,
        a_role_of_its_own,
        settings_and_locks,
    ],
)
def test_what_a_handler_sets_reaches_neither_its_outcome_nor_the_next_handler(world, desk, change):
    seen = []

    def changes(ctx):
        with ctx.transaction() as connection:
            connection.execute("insert into effects values ('done')")
            change(connection)

    def looks(ctx):
        with ctx.transaction() as connection:
            seen.append(
                connection.execute(
                    "select current_user, current_setting('search_path'), current_setting('lock_timeout'),"
                    " current_setting('application_name'), to_regclass('leftover'),"
                    " (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),"
                    " (select count(*) from pg_listening_channels())"
                ).fetchone()
            )

    desk.run(looks, ONCE)
    outcome = desk.run(changes, ONCE)
    desk.run(looks, ONCE)

    assert world.run(outcome.run.id)["state"] == "succeeded"
    assert world.column("select what from effects") == ["done"]
    assert seen[0] == seen[1]


def test_a_pipeline_that_a_handler_leaves_open_commits_nothing(world, desk):
    left = []

    def opens(ctx):
        with ctx.transaction() as connection:
            connection.execute("insert into effects values ('done')")
            left.append(connection.pipeline())
            left[0].__enter__()

    outcome = desk.run(opens, ONCE)

    assert world.run(outcome.run.id)["state"] == outcome.state == RunState.DEAD
    assert world.column("select what from effects") == []


def test_a_thread_that_a_handler_leaves_behind_executes_nothing_in_the_next_transaction(world, desk):
    go = threading.Event()
    told = []

    def late(connection):
        go.wait(20)
        try:
            connection.execute("insert into effects values ('late')")
        except psycopg.OperationalError as error:
            told.append(str(error))

    def leaves(ctx):
        with ctx.transaction() as connection:
            connection.execute("insert into effects values ('first')")
        thread = threading.Thread(target=late, args=[connection])
        thread.start()
        return thread.ident

    def next_one(ctx):
        with ctx.transaction() as connection:
            connection.execute("insert into effects values ('second')")
            go.set()
            while not told:
                connection.execute("select")

    desk.run(leaves, ONCE)
    desk.run(next_one, ONCE)

    assert told == ["the attempt is over, and its transaction with it"]
    assert world.column("select what from effects order by what") == ["first", "second"]
