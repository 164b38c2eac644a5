"""The transaction in which a handler's rows and its run's outcome commit together, or not at all."""

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
    """Open the transaction; the server ends it after so many seconds.

    Args:
        connection: in autocommit, and idle.
        mark: names the attempt.
        seconds: what is left of the attempt.
    """
    connection.execute("begin")
    milliseconds = str(min(max(int(seconds * 1000), 1), _LONGEST_MS))
    connection.execute(statement("open_handler_transaction"), {"mark": mark, "milliseconds": milliseconds})


def lease(connection: psycopg.Connection) -> LeasedConnection:
    """Return a connection for a handler on the same session: what is set on it is not set on its owner's."""
    lent = LeasedConnection(connection.pgconn)
    lent.prepare_threshold = connection.prepare_threshold
    lent.lock = connection.lock  # they use the session by turns
    return lent


def take_over(connection: psycopg.Connection, mark: str) -> bool:
    """Make the transaction fit for what is recorded in it; False where it is not this attempt's any more.

    Roles, search paths, timeouts and temporary tables of the handler do not reach what comes after.
    """
    if (
        connection.info.transaction_status != TransactionStatus.INTRANS
        or connection.pgconn.pipeline_status != PipelineStatus.OFF
    ):
        return False
    row = connection.execute(statement("finish_handler_transaction")).fetchone()
    return row is not None and row[0] == mark


def commit(connection: psycopg.Connection) -> None:
    """Commit. An error that cuts the connection leaves the result unknown."""
    connection.execute("commit")


def clear(connection: psycopg.Connection) -> None:
    """Undo what is not committed, and make the session forget the handler: the next one is another job's.

    Raises:
        psycopg.Error: it cannot be used any more.
    """
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise psycopg.OperationalError("the handler left the connection in pipeline mode")
    if connection.info.transaction_status != TransactionStatus.IDLE:
        connection.execute("rollback")
    # Settings, temporary tables, advisory locks, LISTEN, cursors.
    connection.execute("discard all")


class LeasedConnection(psycopg.Connection):
    """A connection of a session that is somebody else's, until it is taken back."""

    _over = False

    def take_back(self) -> None:
        """Let nothing be executed through it any more: threads of the handler may still try."""
        with self.lock:
            self._over = True

    def wait(self, gen: PQGen[T], interval: float = _WAIT_SECONDS, timeout: float | None = None) -> T:
        """Execute something.

        Raises:
            psycopg.OperationalError: it was taken back.
        """
        if self._over:
            raise psycopg.OperationalError("the attempt is over, and its transaction with it")
        return super().wait(gen, interval, timeout)

    def __del__(self, _warn: object = None) -> None:
        """Leave the session open: it lives on with its owner."""
