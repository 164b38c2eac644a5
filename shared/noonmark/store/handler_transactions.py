"""The transaction in which a handler's rows and its run's outcome commit together, or not at all."""

from __future__ import annotations

import psycopg
from psycopg.pq import TransactionStatus

from noonmark.store.statements import statement

_LONGEST_MS = 2**31 - 1


def begin(connection: psycopg.Connection, mark: str, *, seconds: float) -> None:
    """Open the transaction; the server ends it after so many seconds.

    Args:
        connection: in autocommit, and idle.
        mark: names the attempt.
        seconds: what is left of the attempt.
    """
    connection.execute("begin")
    milliseconds = str(min(max(int(seconds * 1000), 1), _LONGEST_MS))
    connection.execute(statement("open_handler_transaction"), {"mark": mark, "milliseconds": milliseconds})


def is_open(connection: psycopg.Connection, mark: str) -> bool:
    """Tell whether the transaction of this attempt is still open and fit to be committed."""
    if connection.info.transaction_status != TransactionStatus.INTRANS:
        return False
    row = connection.execute("select current_setting('noonmark.attempt', true)").fetchone()
    return row is not None and row[0] == mark


def commit(connection: psycopg.Connection) -> None:
    """Commit. An error that cuts the connection leaves the result unknown."""
    connection.execute("commit")


def roll_back(connection: psycopg.Connection) -> None:
    """Undo everything; nothing to do where the server has done so."""
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.execute("rollback")
