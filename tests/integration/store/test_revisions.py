"""A service works on the schema of its release or a later one, and on none before it."""

from __future__ import annotations

import threading

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from noonmark.service.health import Health
from noonmark.service.runner import Service, StartError
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.migrations import migrate
from noonmark.store.migrations.revisions import known_revisions
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


@pytest.mark.parametrize("revision", ["0003_pre_live_logs", "0999_pre_of_a_later_release"])
def test_its_own_schema_and_a_later_one_are_worked_with(database_url: str, revision: str):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = %s", [revision])
    assert await_install(service(database_url)).shards == migrate.DEFAULT_SHARDS


def test_an_earlier_schema_is_refused_with_what_to_do(database_url: str):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '0001_pre_baseline'")
    with pytest.raises(
        StartError, match=r"is at revision 0001_pre_baseline.*needs 0003_pre_live_logs.*db migrate"
    ):
        await_install(service(database_url))


def test_a_database_without_a_schema_is_refused(postgres_server):
    with pytest.raises(StartError, match="has no noonmark schema"):
        await_install(service(postgres_server.url))
