"""Queries of running attempts to Postgres, in a separate thread so that they never block an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import psycopg

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.store.database.connect import connect

T = TypeVar("T")

_MOST_SECONDS: Final = 20.0
"""A lookup that takes longer, or waits longer for those before it, fails the attempt: nothing was sent."""


@asynccontextmanager
async def without_timeout(attempt: RunningAttempt) -> AsyncIterator[None]:
    """Hold the timeout of an attempt during its lookups: that bounds its target, not noonmark's database.

    Raises:
        psycopg.OperationalError: the lookups took longer than 20 s.
    """
    attempt.hold_clock()
    try:
        async with asyncio.timeout(_MOST_SECONDS):
            yield
    except TimeoutError:
        raise psycopg.OperationalError(f"no answer within {_MOST_SECONDS:g} s") from None
    attempt.start_clock()


class PostgresLookups:
    """One connection, opened at the first call and again after it broke. Belongs to one event loop."""

    def __init__(self, dsn: str) -> None:
        """Store the URL of the database; nothing is opened yet."""
        self._dsn = dsn
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lookups")
        self._connection: psycopg.Connection | None = None

    async def call(self, query: Callable[[psycopg.Connection], T]) -> T:
        """Call a function with the connection, in autocommit mode.

        Raises:
            psycopg.Error: the database is down, or refused the query.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._query, query)

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _query(self, query: Callable[[psycopg.Connection], T]) -> T:
        fresh = self._connection is None
        try:
            return query(self._open())
        except psycopg.OperationalError:
            self._close()
            if fresh:
                raise
            # The connection broke while it was idle; every query here can be repeated.
            return query(self._open())

    def _open(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = connect(self._dsn, application="worker lookups", autocommit=True)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
