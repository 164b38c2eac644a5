"""The keys that sign a namespace's outbound calls."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import psycopg

from noonmark.core.access.webhook_signature import new_secret
from noonmark.store.database.statements import statement


class SigningKey(NamedTuple):
    """A key of a namespace. All keys that are not retired sign."""

    key_id: str
    secret: str
    created_at: datetime
    retired_at: datetime | None


def signing_keys(connection: psycopg.Connection, namespace: str) -> list[SigningKey]:
    """Return all keys of a namespace, including retired ones, newest first."""
    rows = connection.execute(
        "select key_id, secret, created_at, retired_at from signing_keys where namespace = %s"
        " order by key_id::int desc",
        [namespace],
    ).fetchall()
    return [SigningKey(*row) for row in rows]


def ensure_signing_keys(connection: psycopg.Connection, namespace: str) -> list[SigningKey]:
    """Return the valid keys of a namespace, newest first; create the first one if there is none."""
    keys = signing_keys(connection, namespace)
    if not keys:
        params = {"namespace": namespace, "secret": new_secret()}
        connection.execute(statement("ensure_signing_key"), params)
        keys = signing_keys(connection, namespace)
    return [key for key in keys if key.retired_at is None]


def rotate_signing_key(connection: psycopg.Connection, namespace: str) -> SigningKey:
    """Add a key to the valid ones and return the newest, which another process may have added at once."""
    params = {"namespace": namespace, "secret": new_secret()}
    connection.execute(statement("insert_signing_key"), params)
    return signing_keys(connection, namespace)[0]


def retire_signing_keys(
    connection: psycopg.Connection, namespace: str, key_id: str | None = None
) -> list[str]:
    """Retire one key, or all but the newest; return the retired ids. The newest key is never retired."""
    rows = connection.execute(
        statement("retire_signing_keys"), {"namespace": namespace, "key_id": key_id}
    ).fetchall()
    return sorted((row[0] for row in rows), key=int)
