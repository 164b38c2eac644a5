"""Fencing in the receiver: an attempt that was overtaken can change nothing any more.

A worker that was cut off may still call after another worker took over its run. Both calls have the run's id
and their fences. A call with a lower fence than one already seen is late, and the receiver must refuse it in
the transaction of its effects.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Final, Protocol

_TABLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?")
_MAX_KEY: Final = 1000


class StaleFence(Exception):  # noqa: N818 - the word that fencing tokens are known by
    """A newer attempt has already called: do nothing and answer 409, so that the caller stops.

    Attributes:
        key: of the run.
        fence: of the call.
        seen: the higher fence that was accepted before it.
    """

    def __init__(self, key: str, fence: int, seen: int) -> None:
        """Name both fences."""
        super().__init__(f"fence {fence} of {key} is stale: fence {seen} was accepted before it")
        self.key, self.fence, self.seen = key, fence, seen


class Verdict(StrEnum):
    """Whether an accepted call is new or repeated."""

    NEW = "new"
    """The first call of this attempt."""
    REPEATED = "repeated"
    """The same attempt again: if its effects were committed, do not repeat them; answer as before."""


class Cursor(Protocol):
    """A cursor of DB-API 2."""

    rowcount: int

    def execute(self, operation: str, parameters: Any = ..., /) -> Any:
        """Execute a statement."""

    def fetchone(self) -> Any:
        """Return a row of its result."""

    def close(self) -> None:
        """Close it."""


class Connection(Protocol):
    """A connection of DB-API 2, in a transaction of yours."""

    def cursor(self) -> Cursor:
        """Open a cursor."""


class FenceStore:
    """Stores the highest fence of each key in a table of your database.

    Works on Postgres 9.5 and SQLite 3.24, or newer, through any driver of DB-API 2.
    """

    def __init__(self, paramstyle: str, *, table: str = "noonmark_fences") -> None:
        """Create the store; it keeps no connection.

        Args:
            paramstyle: of the driver, such as `sqlite3.paramstyle` or `psycopg.paramstyle`.
            table: its name, with a schema if it needs one.

        Raises:
            ValueError: the paramstyle is not one of DB-API 2, or the table's name is not a plain name.
        """
        if _TABLE.fullmatch(table) is None:
            raise ValueError(
                f"{table!r} is not a plain name of a table: use lower-case letters, digits and _"
            )
        if paramstyle not in _MARKS:
            raise ValueError(
                f"{paramstyle!r} is not a paramstyle of DB-API 2: use one of {', '.join(_MARKS)}"
            )
        self._named = paramstyle in {"named", "pyformat"}
        key, fence = _MARKS[paramstyle]
        # One statement decides, and locks the row even if it changes nothing, so that concurrent calls have
        # # an order. A row that was not changed has an equal or higher fence.
        self._accept = (
            f"insert into {table} (key, fence, seen_at) values ({key}, {fence}, current_timestamp)"  # noqa: S608
            f" on conflict (key) do update set fence = excluded.fence, seen_at = excluded.seen_at"
            f" where {table.rpartition('.')[2]}.fence < excluded.fence"
        )
        self._seen = f"select fence from {table} where key = {key}"  # noqa: S608 - see above
        self.ddl: Final = (
            f"create table if not exists {table} (key varchar({_MAX_KEY}) primary key, fence bigint not null,"
            " seen_at timestamp not null)"
        )
        """The statement that creates the table, for your migrations."""

    def create(self, connection: Connection) -> None:
        """Create the table if it does not exist; you commit."""
        cursor = connection.cursor()
        try:
            cursor.execute(self.ddl)
        finally:
            cursor.close()

    def accept(self, connection: Connection, key: str, fence: int) -> Verdict:
        """Accept a fence in your transaction, together with the effects of the call.

        It locks the key's row until you commit or roll back; a call for the same key waits meanwhile. A
                rollback also undoes the fence, so the attempt can be repeated.

        Args:
            connection: in the transaction of your effects, not in autocommit.
            key: of the run: `SignedCall.id` or the header `Idempotency-Key`; at most 1,000 characters.
            fence: `SignedCall.fence`.

        Raises:
            StaleFence: a higher fence was accepted before.
            ValueError: the key or the fence is not valid.
        """
        if not 1 <= len(key) <= _MAX_KEY:
            raise ValueError(f"a key has 1 to {_MAX_KEY} characters")
        if isinstance(fence, bool) or not isinstance(fence, int) or fence < 0:
            raise ValueError(f"{fence!r} is not a fence: it is the number in the header Noonmark-Fence")
        cursor = connection.cursor()
        try:
            cursor.execute(self._accept, {"key": key, "fence": fence} if self._named else (key, fence))
            raised = cursor.rowcount == 1
            if raised:
                return Verdict.NEW
            cursor.execute(self._seen, {"key": key} if self._named else (key,))
            (seen,) = cursor.fetchone()
        finally:
            cursor.close()
        if seen > fence:
            raise StaleFence(key, fence, seen)
        return Verdict.REPEATED


_MARKS: Final = {
    "qmark": ("?", "?"),
    "format": ("%s", "%s"),
    "numeric": (":1", ":2"),
    "named": (":key", ":fence"),
    "pyformat": ("%(key)s", "%(fence)s"),
}
