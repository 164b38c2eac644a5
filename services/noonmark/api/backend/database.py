"""Transactions of the API: each one sees only the namespaces of its caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from noonmark.store.database.engines import engine_of
from noonmark.store.database.planned_once import PlannedCall
from noonmark.store.database.scope import enter_scope

Changed = TypeVar("Changed")

Namespaces = Collection[str] | None
"""None: all namespaces."""

TRIES: Final = 3
"""Attempts of a change that loses a deadlock, for example to requests with the same job names and keys."""

_LOST: Final = frozenset({"40001", "40P01"})

_GIVE_WAY_SECONDS: Final = 0.05

_SURE_SECONDS: Final = 1.0
"""A connection that was used this recently is not checked before use."""


def repeated(change: Callable[[], Changed]) -> Changed:
    """Run a change, and repeat it if it loses a deadlock. The whole change must be one transaction."""
    for left in reversed(range(TRIES)):
        try:
            return change()
        except (DBAPIError, psycopg.Error) as error:
            if not left or not is_lost(error):
                raise
            give_way()
    raise AssertionError("unreachable")


def give_way() -> None:
    """Wait before a change is repeated, so that the winner of the deadlock can continue first."""
    time.sleep(_GIVE_WAY_SECONDS)


def is_lost(error: Exception) -> bool:
    """Return whether a change was rolled back because of a conflict, so that it can be repeated."""
    raw = error.orig if isinstance(error, DBAPIError) and error.orig else error
    return isinstance(raw, psycopg.Error) and raw.sqlstate in _LOST


@dataclass(frozen=True, slots=True)
class Session:
    """One open transaction, for both kinds of functions.

    Attributes:
        sql: for SQLAlchemy queries.
        raw: the driver's connection, for statements in .sql files. Both share the same transaction.
    """

    sql: Connection
    raw: psycopg.Connection


class _TimedCursor(psycopg.Cursor[Any]):
    """Syncs the pipeline before each fetch, so that the server's timeout for idle transactions applies.

    Without a sync message, the server considers the session active. A process that hangs there, or whose host
    is gone, would keep its locks forever.
    """

    def __init__(self, pipeline: psycopg.Pipeline, connection: psycopg.Connection, **options: Any) -> None:
        super().__init__(connection, **options)
        self._answers = pipeline

    def fetchone(self) -> Any:
        """Return one row."""
        self._answers.sync()
        return super().fetchone()

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        self._answers.sync()
        return super().fetchall()


class Database:
    """A pool of connections. Row-level security is a second check, in addition to those of the routes."""

    def __init__(self, dsn: str, *, size: int, application: str = "api") -> None:
        """Create a pool that connects on first use.

        Args:
            dsn: libpq URL.
            size: most connections; a request that gets none within 5 s fails with 503.
            application: name in `pg_stat_activity`.
        """
        self._engine = engine_of(
            dsn,
            application=application,
            statement_timeout_seconds=15,
            pool_size=size,
            max_overflow=0,
            pool_timeout=5,
        )
        event.listen(self._engine, "checkout", _check)
        event.listen(self._engine, "checkin", _note_use)

    @contextmanager
    def reading(self, namespaces: Namespaces) -> Iterator[Session]:
        """Open a read-only transaction in which all statements see the same snapshot."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("set transaction isolation level repeatable read, read only")
            yield self._session(connection, namespaces)

    @contextmanager
    def changing(self, namespaces: Namespaces) -> Iterator[Session]:
        """Open a transaction that commits at the end of the block, and rolls back if the block raises."""
        with self._engine.connect() as connection:
            yield self._session(connection, namespaces)
            connection.commit()

    @contextmanager
    def pipelining(self, namespaces: Namespaces) -> Iterator[psycopg.Connection]:
        """Open a transaction like `changing` whose statements are pipelined: they do not wait for results.

        Only a fetch waits; other errors are raised there or at the end. Before its fetch, a cursor has no
        result, not even a row count. At the end of the block, the commit is confirmed.
        """
        with self._engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert isinstance(raw, psycopg.Connection)
            try:
                with raw.pipeline() as pipeline:
                    raw.cursor_factory = partial(_TimedCursor, pipeline)  # type: ignore[assignment]
                    yield self._session(connection, namespaces).raw
                    # Not SQLAlchemy's commit, which considers a transaction finished when its COMMIT fails.
                    # After an error of an earlier statement the server has not read the COMMIT, and the next
                    # user of the connection would find a failed transaction. Here it is rolled back first.
                    raw.commit()
            finally:
                raw.cursor_factory = psycopg.Cursor

    def call(self, function: PlannedCall, parameters: Mapping[str, Any]) -> Any:
        """Call a function that is a whole transaction, with one round trip; return its first row.

        The function restricts the transaction to namespaces itself.
        """
        pooled = self._engine.raw_connection()
        try:
            raw = pooled.driver_connection
            assert isinstance(raw, psycopg.Connection)
            raw.autocommit = True
            try:
                cursor = psycopg.RawCursor(raw)
                return cursor.execute(function.text, [parameters[name] for name in function.names]).fetchone()
            finally:
                # A failure here would replace the error of the function.
                if raw.closed:
                    pooled.invalidate()
                else:
                    raw.autocommit = False
        finally:
            pooled.close()

    def close(self) -> None:
        """Close the connections that are not in use."""
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
    """Make the pool reconnect if the server has closed an idle connection."""
    if time.monotonic() - entry.info.get("used_at", time.monotonic()) < _SURE_SECONDS:
        return
    try:
        raw.execute("select")
        raw.rollback()
    except psycopg.Error as error:
        raise DisconnectionError(str(error)) from error
