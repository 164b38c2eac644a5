"""The transaction in which a handler's rows and the outcome of its run commit together, or not at all."""

from __future__ import annotations

from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import PipelineStatus, TransactionStatus

from noonmark.store.database.statements import statement

_LONGEST_MS = 2**31 - 1
_WAIT_SECONDS = 0.1
T = TypeVar("T")


def begin(connection: psycopg.Connection, mark: str, *, seconds: float) -> None:
    """Open the transaction; the server ends it after `seconds`.

    Args:
        connection: in autocommit mode, and idle.
        mark: identifies the attempt.
        seconds: the time that the attempt has left.
    """
    connection.execute("begin")
    milliseconds = str(min(max(int(seconds * 1000), 1), _LONGEST_MS))
    connection.execute(statement("open_handler_transaction"), {"mark": mark, "milliseconds": milliseconds})


def lease(connection: psycopg.Connection) -> LeasedConnection:
    """Return a connection for a handler on the same session; attributes set on it do not affect its owner."""
    leased = LeasedConnection(connection.pgconn)
    leased.prepare_threshold = connection.prepare_threshold
    leased.lock = connection.lock  # they take turns on the session
    return leased


def take_over(connection: psycopg.Connection, mark: str) -> bool:
    """Prepare the transaction for recording the outcome; False if it no longer belongs to this attempt.

    Roles, search paths, timeouts and temporary tables of the handler do not affect what follows.
    """
    if (
        connection.info.transaction_status != TransactionStatus.INTRANS
        or connection.pgconn.pipeline_status != PipelineStatus.OFF
    ):
        return False
    row = connection.execute(statement("finish_handler_transaction")).fetchone()
    return row is not None and row[0] == mark


def commit(connection: psycopg.Connection) -> None:
    """Commit. If the connection breaks, the result is unknown."""
    connection.execute("commit")


def clear(connection: psycopg.Connection) -> None:
    """Roll back what is not committed and reset the session, because the next handler belongs to another job.

    Raises:
        psycopg.Error: the connection can no longer be used.
    """
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise psycopg.OperationalError("the handler left the connection in pipeline mode")
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.execute("rollback")
    # Settings, temporary tables, advisory locks, LISTEN, cursors.
    connection.execute("discard all")


class LeasedConnection(psycopg.Connection):
    """A connection that shares the session of its owner, until it is taken back."""

    _over = False

    def take_back(self) -> None:
        """Refuse every further statement: threads of the handler may still try."""
        with self.lock:
            self._over = True

    def wait(self, gen: PQGen[T], interval: float = _WAIT_SECONDS, timeout: float | None = None) -> T:
        """Execute something.

        Raises:
            psycopg.OperationalError: the connection was taken back.
        """
        if self._over:
            raise psycopg.OperationalError("the attempt is over, and its transaction with it")
        return super().wait(gen, interval, timeout)

    def __del__(self, _warn: object = None) -> None:
        """Leave the session open: its owner still uses it."""
