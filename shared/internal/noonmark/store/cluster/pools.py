"""Pools: which groups of workers exist, each with a key that signs its run messages."""

from __future__ import annotations

import secrets

import psycopg


def register_pool(connection: psycopg.Connection, name: str) -> bool:
    """Make a pool known and give it a signing key; safe to repeat. Tell whether it is new.

    Raises:
        psycopg.errors.CheckViolation: the name is none for a pool.
    """
    made = connection.execute("insert into pools (name) values (%s) on conflict do nothing", [name]).rowcount
    connection.execute(
        """insert into pool_keys (pool, key_id, secret)
           select %(pool)s, %(key_id)s, %(secret)s
           where not exists (select from pool_keys where pool = %(pool)s and retired_at is null)""",
        {"pool": name, **_new_key()},
    )
    return made == 1


def pool_names(connection: psycopg.Connection) -> list[str]:
    """Return the registered pools, sorted."""
    return [row[0] for row in connection.execute("select name from pools order by name").fetchall()]


def rotate_key(connection: psycopg.Connection, name: str) -> str | None:
    """Give a pool a new signing key; return its id, None where there is no such pool.

    Dispatchers sign with it from their next look at the keys on; messages signed with the older ones are
    believed until those are retired.
    """
    key = _new_key()
    made = connection.execute(
        """insert into pool_keys (pool, key_id, secret, created_at)
           select name, %(key_id)s, %(secret)s, clock_timestamp() from pools where name = %(pool)s""",
        {"pool": name, **key},
    ).rowcount
    return str(key["key_id"]) if made else None


def retire_key(connection: psycopg.Connection, name: str, key_id: str) -> bool:
    """Believe no message any more that an older key has signed; False where it is none, or the newest one.

    Workers learn of it within a minute. A message of it that is still under way is refused, and its run sent
    again.
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
