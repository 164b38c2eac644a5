"""Sessions that tests take turns in, as they do in the database: each test gets them as if they were new.

A new session first reads what it needs of the catalog. That takes ten times as long as to empty the database.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from noonmark.store.database.connect import connect

_MOST: Final = 2
_free: dict[str, list[psycopg.Connection]] = {}


def keep(url: str) -> None:
    """From now on, keep sessions in this database when they are given back."""
    _free[url] = []


def close_kept(url: str) -> None:
    """Close the sessions that were kept, and keep no more of them."""
    for connection in _free.pop(url):
        connection.close()


def take(url: str) -> psycopg.Connection:
    """Return a session in autocommit mode: one that was given back, or a new one."""
    for connection in _taken_out(url):
        if _renewed(connection):
            return connection
        connection.close()
    return connect(url, application="test", autocommit=True)


def give_back(url: str, connection: psycopg.Connection) -> None:
    """Keep a session for another test if it is in the state in which it was taken; close it otherwise."""
    kept = _free.get(url)
    if kept is not None and len(kept) < _MOST and _renewed(connection):
        kept.append(connection)
    else:
        connection.close()


def _taken_out(url: str) -> list[psycopg.Connection]:
    kept = _free.get(url)
    return [kept.pop()] if kept else []


def _renewed(connection: psycopg.Connection) -> bool:
    """Forget what was set, prepared and locked in a session; return whether that was possible."""
    if connection.closed or connection.info.transaction_status is not TransactionStatus.IDLE:
        return False
    if not connection.autocommit or connection.row_factory is not tuple_row:
        return False
    try:
        connection.execute("discard all")
    except psycopg.Error:
        return False
    return True
