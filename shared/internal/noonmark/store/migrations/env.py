"""Runs migrations: one process at a time, with a short timeout for locks that live services hold."""

import psycopg
from alembic import context
from sqlalchemy import text

from noonmark.store.database.planned_once import create_functions
from noonmark.store.migrations.revisions import read_revision, record_usable_from

LOCK = "select pg_advisory_xact_lock(hashtext('noonmark_migrate'))"


def run() -> None:
    """Upgrade under an advisory lock, with lock and statement timeouts; leave the schema of a later release as it is."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        connection.execute(text("set local lock_timeout = '10s'"))
        connection.execute(text("set local statement_timeout = '15min'"))
        connection.execute(text("set local idle_in_transaction_session_timeout = '60s'"))
        connection.execute(text(LOCK))
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        # Read under the lock: a later release may have migrated while this process waited.
        if not read_revision(driver).is_later:
            context.run_migrations()
            record_usable_from(
                driver, max(each.module.usable_from for each in context.script.walk_revisions())
            )
        if read_revision(driver).problem_of_tables is None:
            create_functions(driver)


run()
