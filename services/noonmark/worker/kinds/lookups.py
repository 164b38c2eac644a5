"""What kinds of work ask Postgres for while they run: from a thread of its own, never on their event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import psycopg

from noonmark.store.database.connect import connect

T = TypeVar("T")


class PostgresLookups:
    """One connection, made at the first call and again after it broke. Belongs to one event loop."""

    def __init__(self, dsn: str) -> None:
        """Take the database's address; nothing is opened yet."""
        self._dsn = dsn
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lookups")
        self._connection: psycopg.Connection | None = None

    async def call(self, ask: Callable[[psycopg.Connection], T]) -> T:
        """Call with the connection, in autocommit mode.

        Raises:
            psycopg.Error: the database could not be asked.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, ask)

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _ask(self, ask: Callable[[psycopg.Connection], T]) -> T:
        fresh = self._connection is None
        try:
            return ask(self._open())
        except psycopg.OperationalError:
            self._close()
            if fresh:
                raise
            # The connection had broken while it was idle; all that is asked here may be asked twice.
            return ask(self._open())

    def _open(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = connect(self._dsn, application="worker lookups", autocommit=True)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
