"""Transactions of the API: each one sees the namespaces of its caller and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from noonmark.store.database.connect import connect
from noonmark.store.database.scope import enter_scope

Changed = TypeVar("Changed")

Namespaces = Collection[str] | None
"""None: all of them."""

TRIES: Final = 3
"""Of a change that lost a deadlock: others make jobs of the same names and keys."""

_LOST: Final = frozenset({"40001", "40P01"})

_GIVE_WAY_SECONDS: Final = 0.05

_SURE_SECONDS: Final = 1.0
"""A connection that was used so short a time ago is not asked whether it is still there."""


def repeated(change: Callable[[], Changed]) -> Changed:
    """Make a change, and make it again where it lost a deadlock; all of it is one transaction."""
    for left in reversed(range(TRIES)):
        try:
            return change()
        except (DBAPIError, psycopg.Error) as error:
            if not left or not is_lost(error):
                raise
            give_way()
    raise AssertionError("unreachable")


def give_way() -> None:
    """Let the one go on that a deadlock was decided for, before a change is made again: it may wake late."""
    time.sleep(_GIVE_WAY_SECONDS)


def is_lost(error: Exception) -> bool:
    """Tell whether a change was rolled back for another's sake, and may be made again as a whole."""
    raw = error.orig if isinstance(error, DBAPIError) and error.orig else error
    return isinstance(raw, psycopg.Error) and raw.sqlstate in _LOST


@dataclass(frozen=True, slots=True)
class Session:
    """One open transaction, for functions of either kind.

    Attributes:
        sql: for reads composed with SQLAlchemy.
        raw: the driver's own, for statements of our files. Both are the same transaction.
    """

    sql: Connection
    raw: psycopg.Connection


class _TimedCursor(psycopg.Cursor[Any]):
    """Reads answers in a pipeline so that the server's clock for idle transactions runs meanwhile.

    The driver asks for an answer alone, and to the server a session is at work until it is told that
    this is all for now: a process that stops there, or whose host is gone, would keep its locks without end.
    """

    def __init__(self, pipeline: psycopg.Pipeline, connection: psycopg.Connection, **options: Any) -> None:
        super().__init__(connection, **options)
        self._answers = pipeline

    def fetchone(self) -> Any:
        """Return a row."""
        self._answers.sync()
        return super().fetchone()

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        self._answers.sync()
        return super().fetchall()


class Database:
    """A pool of connections; row-level security is the second wall behind the routes' own checks."""

    def __init__(self, dsn: str, *, size: int, application: str = "api") -> None:
        """Connect when first asked.

        Args:
            dsn: libpq URL.
            size: connections at most; a request that gets none within 5 s ends with a 503.
            application: shown in `pg_stat_activity`.
        """
        self._engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: connect(dsn, application=application, statement_timeout_seconds=15),
            pool_size=size,
            max_overflow=0,
            pool_timeout=5,
        )
        event.listen(self._engine, "checkout", _check)
        event.listen(self._engine, "checkin", _note_use)

    @contextmanager
    def reading(self, namespaces: Namespaces) -> Iterator[Session]:
        """Open a read-only transaction, all of whose statements see the same moment."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("set transaction isolation level repeatable read, read only")
            yield self._session(connection, namespaces)

    @contextmanager
    def changing(self, namespaces: Namespaces) -> Iterator[Session]:
        """Open a transaction that commits when the block ends, and rolls back when it raises."""
        with self._engine.connect() as connection:
            yield self._session(connection, namespaces)
            connection.commit()

    @contextmanager
    def pipelining(self, namespaces: Namespaces) -> Iterator[psycopg.Connection]:
        """Open a transaction as `changing` does, whose statements need not wait for each other's answers.

        Only a fetch waits; what else fails is raised there or at the end. A cursor knows nothing before its
        fetch, not even how many rows there were. When the block is left, the commit is confirmed.
        """
        with self._engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert isinstance(raw, psycopg.Connection)
            try:
                with raw.pipeline() as pipeline:
                    raw.cursor_factory = partial(_TimedCursor, pipeline)  # type: ignore[assignment]
                    yield self._session(connection, namespaces).raw
                    # Not SQLAlchemy's, which takes a transaction for ended once its COMMIT has failed. After
                    # an error of an earlier statement the server has not even read the COMMIT, and whoever
                    # gets the connection next would find the failed transaction. So it is rolled back before.
                    raw.commit()
            finally:
                raw.cursor_factory = psycopg.Cursor

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._engine.dispose()

    @staticmethod
    def _session(connection: Connection, namespaces: Namespaces) -> Session:
        if not connection.in_transaction():
            connection.begin()
        raw = connection.connection.driver_connection
        assert isinstance(raw, psycopg.Connection)
        enter_scope(raw, namespaces)
        return Session(connection, raw)


def _note_use(_raw: Any, entry: ConnectionPoolEntry) -> None:
    entry.info["used_at"] = time.monotonic()


def _check(raw: Any, entry: ConnectionPoolEntry, _proxy: Any) -> None:
    """Let the pool connect anew where the server has ended a connection that lay idle."""
    if time.monotonic() - entry.info.get("used_at", time.monotonic()) < _SURE_SECONDS:
        return
    try:
        raw.execute("select")
        raw.rollback()
    except psycopg.Error as error:
        raise DisconnectionError(str(error)) from error
