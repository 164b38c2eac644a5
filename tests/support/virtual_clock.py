"""A database whose clock a test sets: every session sees exactly the time it was told, or fails."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg

_CLOCK = """
create or replace function noonmark_now() returns timestamptz language sql stable parallel safe
as $$ select current_setting('noonmark.virtual_now')::timestamptz $$
"""


def install_clock(connection: psycopg.Connection) -> None:
    """Let `noonmark_now()` read a setting of the session; the ledger then reaches back to the year 2000.

    Args:
        connection: in autocommit mode, of a database that no service uses.
    """
    connection.execute(_CLOCK)
    # No server is killed here: no test depends on the disk.
    connection.execute(f"alter database {connection.info.dbname} set synchronous_commit = off")
    connection.execute("update install set ledger_floor = '2000-01-01T00:00:00Z'")


def tell_time(connection: psycopg.Connection, now: datetime) -> None:
    """Let one session see this time until it is told another."""
    connection.execute(
        "select set_config('noonmark.virtual_now', %s, false)", [now.astimezone(UTC).isoformat()]
    )
