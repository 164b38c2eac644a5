"""Pools: which groups of workers exist, each with a key that signs its run messages."""

from __future__ import annotations

import psycopg

from noonmark.store.migrate import ensure_pool_key


def register_pool(connection: psycopg.Connection, name: str) -> bool:
    """Make a pool known and give it a signing key; safe to repeat. Tell whether it is new.

    Raises:
        psycopg.errors.CheckViolation: the name is none for a pool.
    """
    made = connection.execute("insert into pools (name) values (%s) on conflict do nothing", [name]).rowcount
    ensure_pool_key(connection, name)
    return made == 1


def pool_names(connection: psycopg.Connection) -> list[str]:
    """Return the registered pools, sorted."""
    return [row[0] for row in connection.execute("select name from pools order by name").fetchall()]
