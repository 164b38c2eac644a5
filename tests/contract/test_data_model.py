"""docs/data-model.md names the tables, indexes and settings that a migrated database has."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from noonmark.store.tables import tables

PAGE = (Path(__file__).parents[2] / "docs" / "data-model.md").read_text()


@pytest.fixture
def db(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def sections() -> dict[str, str]:
    """The text about each table."""
    body = PAGE.split("## The tables\n", 1)[1].split("\n## ", 1)[0]
    parts = re.split(r"^### (\w+)\n", body, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def settings(db: psycopg.Connection) -> dict[str, dict[str, str]]:
    """Storage settings by table; a day of the ledger stands for all."""
    rows = db.execute(
        "select relname, reloptions from pg_class where relkind = 'r' and reloptions is not null"
    )
    return {
        re.sub(r"\d{8}$", "YYYYMMDD", name): dict(o.split("=") for o in options) for name, options in rows
    }


def test_every_table_has_a_section():
    assert set(sections()) == {table.name for table in tables.metadata.sorted_tables}


def test_every_index_that_a_statement_can_use_is_named(db):
    named = db.execute(
        """select tablename, indexname, indexdef from pg_indexes
           where schemaname = 'public' and tablename !~ '^runs' and tablename <> 'alembic_version'
             and indexname !~ '_pkey$' and indexname !~ '_key$'"""
    ).fetchall()

    missing = [index for table, index, _ in named if f"`{index}`" not in sections()[table]]

    assert missing == []


def test_the_table_of_storage_settings_is_that_of_the_database(db):
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \| (\S+) \|$", PAGE, re.MULTILINE)
    told = {name: (fill, vacuum, truncate) for name, fill, vacuum, truncate in rows}

    real = {
        name: (
            options["fillfactor"],
            options.get("autovacuum_vacuum_scale_factor", "default"),
            {"off": "off", None: "default"}[options.get("vacuum_truncate")],
        )
        for name, options in settings(db).items()
        if "fillfactor" in options
    }
    assert told == real
    for name, options in settings(db).items():
        if "autovacuum_vacuum_scale_factor" in options:
            assert options["autovacuum_vacuum_cost_delay"] == "0", name


def test_fillfactors_in_the_text_are_those_of_the_table():
    told = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE))

    for name, text in sections().items():
        for figure in re.findall(r"[Ff]illfactor (\d+)", text):
            assert figure == told["runs_YYYYMMDD" if name == "runs" else name], name


def test_the_example_queries_run(db):
    queries = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    examples = [query for block in queries for query in block.split(";") if query.strip()]
    assert len(examples) >= 6

    for query in examples:
        db.execute(query)


def test_statements_and_functions_that_the_page_names_exist(db):
    page = PAGE.replace("runs_YYYYMMDD", "")
    assert db.execute("select to_regproc('noonmark_now'), to_regproc('noonmark_make_day')").fetchone() != (
        None,
        None,
    )
    for path in re.findall(r"`((?:shared|tests)/[\w/.]+)`", page):
        assert (Path(__file__).parents[2] / path).exists(), path


def test_what_changes_in_a_run_is_in_no_index(db):
    """Else no update of a run is HOT."""
    keys = {"id", "scheduled_for", "job_id", "origin", "request_id"}
    indexed = {
        row[0]
        for row in db.execute(
            """select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any (indkey)
               where indrelid = 'runs'::regclass"""
        )
    }
    partial = db.execute(
        "select count(*) from pg_index where indrelid = 'runs'::regclass and indpred is not null"
    ).fetchone()

    assert indexed == keys
    assert partial == (0,)


def test_nothing_hot_has_a_foreign_key(db):
    tied = {
        row[0] for row in db.execute("select conrelid::regclass::text from pg_constraint where contype = 'f'")
    }

    assert tied == {"pool_keys"}


def test_there_is_no_default_partition(db):
    assert db.execute("select partdefid from pg_partitioned_table").fetchall() == [(0,)]
