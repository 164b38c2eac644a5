"""Runs migrations: one process at a time, with a short timeout for locks that live services hold."""

from alembic import context
from sqlalchemy import create_engine, pool, text

LOCK = "select pg_advisory_xact_lock(hashtext('noonmark_migrate'))"


def run() -> None:
    """Upgrade under an advisory lock, with lock and statement timeouts."""
    url = context.config.get_main_option("sqlalchemy.url")
    assert url is not None
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, transaction_per_migration=False)
        with context.begin_transaction():
            connection.execute(text("set local lock_timeout = '10s'"))
            connection.execute(text("set local statement_timeout = '15min'"))
            connection.execute(text(LOCK))
            context.run_migrations()


run()
