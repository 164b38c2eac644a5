"""A service works on the schema of its release or a later one, and on none before it."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from tests.support.later_release import ADDS, REMOVES, REVISION, migrate_later

from noonmark.devstack.processes import processes
from noonmark.service.health import Health
from noonmark.service.runner import Service, StartError
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.database.planned_once import PLANNED_ONCE, function_of, missing_functions
from noonmark.store.migrations import migrate
from noonmark.store.migrations.revisions import SchemaRevision, known_revisions
from noonmark.telemetry.logs import get_logger

pytestmark = pytest.mark.postgres


def service(dsn: str) -> Service:
    settings = Settings.load(database_url=dsn)
    return Service("trigger", settings, Health(), threading.Event(), get_logger())


def test_the_revisions_are_those_of_the_migrations_in_their_order():
    config = Config()
    config.set_main_option("script_location", str(migrate._MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert known_revisions() == [script.revision for script in scripts.walk_revisions()][::-1]


def test_every_migration_says_which_releases_can_use_the_schema_after_it():
    config = Config()
    config.set_main_option("script_location", str(migrate._MIGRATIONS))
    known = known_revisions()
    for script in ScriptDirectory.from_config(config).walk_revisions():
        usable_from, before = script.module.usable_from, script.down_revision or script.revision
        assert usable_from in known
        if "Phase: pre" in (script.doc + script.longdoc):
            assert usable_from <= before, (
                f"{script.revision} is additive, so the release before can use the schema"
            )
        else:
            assert usable_from <= script.revision


def test_its_own_schema_is_worked_with_and_records_who_can_use_it(database_url: str):
    found = migrate.status(database_url)
    assert found.revision == SchemaRevision(known_revisions()[-1], "0001_pre_baseline")
    assert (found.problems, found.notes) == ([], [])
    assert await_install(service(database_url)).shards == migrate.DEFAULT_SHARDS


def test_a_database_of_a_release_that_recorded_nothing_gets_the_record_with_the_next_migrate(
    database_url: str,
):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("comment on table alembic_version is null")
    assert migrate.status(database_url).problems == []
    migrate.migrate(database_url)
    assert migrate.status(database_url).revision.usable_from == "0001_pre_baseline"


def test_a_later_schema_that_only_adds_is_worked_with_and_left_alone(database_url: str, tmp_path: Path):
    migrate_later(database_url, tmp_path, ADDS)
    before = dump(database_url)

    migrate.migrate(database_url)

    found = migrate.status(database_url)
    assert found.revision == SchemaRevision(REVISION, "0001_pre_baseline")
    assert found.problems == []
    (note,) = found.notes
    assert note.startswith(
        f"the schema is at {REVISION} of a later release; this release (0010_pre_workflows)"
    )
    assert "nothing to migrate" in note
    assert found.days_ahead >= 1
    assert dump(database_url) == before
    assert await_install(service(database_url)).shards == migrate.DEFAULT_SHARDS


def test_a_later_schema_that_removes_what_this_release_needs_is_refused_with_what_to_do(
    database_url: str, tmp_path: Path
):
    migrate_later(database_url, tmp_path, REMOVES)
    before = dump(database_url)

    told = rf"is at {REVISION} of a later release, and removed .* run a release with revision {REVISION} or later"
    with pytest.raises(migrate.SchemaError, match=told):
        migrate.migrate(database_url)
    assert re.search(told, "".join(migrate.status(database_url).problems))
    with pytest.raises(StartError, match=told):
        await_install(service(database_url))
    assert dump(database_url) == before


def test_a_later_schema_without_a_record_is_refused_with_what_to_do(database_url: str):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '0999_pre_of_a_later_release'")
        connection.execute("comment on table alembic_version is 'of somebody else'")
    with pytest.raises(
        StartError, match="does not say which releases can use it: run `noonmark db migrate` of"
    ):
        await_install(service(database_url))
    with pytest.raises(migrate.SchemaError, match="does not say which releases can use it"):
        migrate.migrate(database_url)


def test_a_release_that_waits_while_a_later_one_migrates_leaves_its_schema_alone(
    database_url: str, tmp_path: Path
):
    with psycopg.connect(database_url) as later, ThreadPoolExecutor(1) as threads:
        later.execute("select pg_advisory_xact_lock(hashtext('noonmark_migrate'))")
        waiting = threads.submit(migrate.migrate, database_url)
        with psycopg.connect(database_url, autocommit=True) as watch:
            assert processes.wait_until(
                lambda: bool(
                    watch.execute(
                        "select 1 from pg_stat_activity where application_name = 'noonmark-migrate'"
                        " and wait_event = 'advisory' and datname = current_database()"
                    ).fetchone()
                ),
                timeout_seconds=8,
            )
        later.execute("update alembic_version set version_num = %s", [REVISION])
        later.commit()
        waiting.result(30)
    assert migrate.status(database_url).revision == SchemaRevision(REVISION, "0001_pre_baseline")


def dump(dsn: str) -> list[tuple[object, ...]]:
    """Every column and index, and the record of the revision."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "select table_name::text, column_name::text, data_type::text from information_schema.columns"
            " where table_schema = 'public' union all select 'index', indexname::text, indexdef"
            " from pg_indexes where schemaname = 'public' union all"
            " select 'revision', version_num, obj_description('alembic_version'::regclass) from alembic_version"
            " order by 1, 2"
        ).fetchall()


def test_an_earlier_schema_is_refused_with_what_to_do(database_url: str):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '0001_pre_baseline'")
    with pytest.raises(StartError, match=r"is at 0001_pre_baseline.*needs 0010_pre_workflows.*db migrate"):
        await_install(service(database_url))


def test_a_database_without_a_schema_is_refused(postgres_server):
    with pytest.raises(StartError, match="has no noonmark schema"):
        await_install(service(postgres_server.url))


def test_a_schema_without_a_function_of_the_release_is_not_worked_with_until_it_is_migrated(
    database_url: str,
):
    with psycopg.connect(database_url, autocommit=True) as connection:
        (function,) = connection.execute(
            "select oid::regprocedure::text from pg_proc where proname = %s", [function_of("start_runs")]
        ).fetchone()
        connection.execute(f"drop function {function}")
        assert missing_functions(connection) == ["start_runs"]
        (problem,) = migrate.status(database_url).problems
        assert problem == (
            "the schema lacks functions of this release: run `noonmark db migrate` of this release"
        )
        with pytest.raises(StartError, match="lacks functions of this release: run `noonmark db migrate`"):
            await_install(service(database_url))

        migrate.migrate(database_url)

        assert missing_functions(connection) == []
    assert migrate.status(database_url).problems == []


def test_a_later_release_leaves_the_functions_of_this_one_and_this_one_makes_its_own_there(
    database_url: str, tmp_path: Path
):
    migrate_later(database_url, tmp_path, ADDS)
    with psycopg.connect(database_url, autocommit=True) as connection:
        assert missing_functions(connection) == []
        for (function,) in connection.execute(
            "select oid::regprocedure::text from pg_proc where proname = any (%s)",
            [[function_of(name) for name in PLANNED_ONCE]],
        ).fetchall():
            connection.execute(f"drop function {function}")
    migrate.migrate(database_url)
    assert migrate.status(database_url).problems == []
