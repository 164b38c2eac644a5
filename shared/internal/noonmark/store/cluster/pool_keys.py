"""The signing keys of pools, as the dispatcher and the workers read them."""

from __future__ import annotations

from typing import NamedTuple

import psycopg


class PoolKey(NamedTuple):
    """A key that is valid now. The newest signs; all are accepted."""

    key_id: str
    secret: bytes


def read_keys(connection: psycopg.Connection, pool: str) -> list[PoolKey]:
    """Return the valid keys of a pool, newest first; none when the pool is not registered."""
    rows = connection.execute(
        "select key_id, secret from pool_keys where pool = %s and retired_at is null"
        " order by created_at desc, key_id",
        [pool],
    ).fetchall()
    return [PoolKey(row[0], bytes(row[1])) for row in rows]
