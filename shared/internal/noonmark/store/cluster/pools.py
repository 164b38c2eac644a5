"""Pools: groups of workers, each with keys that sign its run messages."""

from __future__ import annotations

import secrets
from typing import NamedTuple

import psycopg


class PoolKey(NamedTuple):
    """A valid signing key of a pool. The newest key signs; all are accepted."""

    key_id: str
    secret: bytes


def register_pool(connection: psycopg.Connection, name: str) -> bool:
    """Register a pool and create its signing key; safe to repeat. Return whether the pool is new.

    Raises:
        psycopg.errors.CheckViolation: the name is not a valid pool name.
    """
    created = connection.execute(
        "insert into pools (name) values (%s) on conflict do nothing", [name]
    ).rowcount
    connection.execute(
        """insert into pool_keys (pool, key_id, secret)
           select %(pool)s, %(key_id)s, %(secret)s
           where not exists (select from pool_keys where pool = %(pool)s and retired_at is null)""",
        {"pool": name, **_new_key()},
    )
    return created == 1


def pool_names(connection: psycopg.Connection) -> list[str]:
    """Return the registered pools, sorted."""
    return [row[0] for row in connection.execute("select name from pools order by name").fetchall()]


def read_keys(connection: psycopg.Connection, pool: str) -> list[PoolKey]:
    """Return the valid keys of a pool, newest first; empty if the pool is not registered."""
    rows = connection.execute(
        "select key_id, secret from pool_keys where pool = %s and retired_at is null"
        " order by created_at desc, key_id",
        [pool],
    ).fetchall()
    return [PoolKey(row[0], bytes(row[1])) for row in rows]


def rotate_key(connection: psycopg.Connection, name: str) -> str | None:
    """Give a pool a new signing key; return its id, None if the pool does not exist.

    Dispatchers sign with it once they have read the keys again; messages signed with older keys are accepted
    until those keys are retired.
    """
    key = _new_key()
    created = connection.execute(
        """insert into pool_keys (pool, key_id, secret, created_at)
           select name, %(key_id)s, %(secret)s, clock_timestamp() from pools where name = %(pool)s""",
        {"pool": name, **key},
    ).rowcount
    return str(key["key_id"]) if created else None


def retire_key(connection: psycopg.Connection, name: str, key_id: str) -> bool:
    """Stop accepting messages signed with an older key; False if it does not exist or is the newest.

    Workers read the change within a minute. A message that is still on its way is refused, and its run is
    sent again.
    """
    retired = connection.execute(
        """update pool_keys set retired_at = now()
           where pool = %(pool)s and key_id = %(key_id)s and retired_at is null
             and exists (select from pool_keys as newer where newer.pool = pool_keys.pool
                         and newer.retired_at is null and newer.created_at > pool_keys.created_at)""",
        {"pool": name, "key_id": key_id},
    )
    return retired.rowcount == 1


def _new_key() -> dict[str, str | bytes]:
    return {"key_id": secrets.token_hex(4), "secret": secrets.token_bytes(32)}
