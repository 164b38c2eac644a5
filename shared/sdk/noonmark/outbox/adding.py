"""Enqueues jobs: writes a job document as a row, in the application's open transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from noonmark.outbox.errors import JobRefusedError, OutboxError
from noonmark.outbox.table import app_statement, named_statement

MAX_KEY_CHARS: Final = 200

_SYNC: Final = {
    "sqlalchemy": {"Session", "Connection", "scoped_session"},
    "psycopg": {"Connection", "Cursor"},
}
_ASYNC: Final = {
    "sqlalchemy": {"AsyncSession", "AsyncConnection", "async_scoped_session"},
    "psycopg": {"AsyncConnection", "AsyncCursor"},
}
_NOT_OPEN: Final = (
    "the connection is in autocommit mode, so the job would not be part of any transaction: begin one first,"
    " or turn autocommit off"
)


def add(target: Any, job: Mapping[str, Any], *, idempotency_key: str | None = None) -> UUID:
    """Enqueue a job in the open transaction of `target`: the job exists if, and only if, that commits.

    Args:
        target: a SQLAlchemy Session or Connection, or a psycopg connection or cursor, to the application's
            database, which has the table `noonmark_outbox`.
        job: a job document in the form of the API and of events; it is checked immediately.
        idempotency_key: of two jobs in a namespace with the same key, only the first is created. Default: the
            key in the document, or else a new unique key.

    Returns:
        The id of the row, for logs. The job gets its id when it is relayed.

    Raises:
        JobRefusedError: the document is not valid; nothing was written.
        OutboxError: `target` commits each statement, so there is no transaction.
        TypeError: `target` has another type.
    """
    library = _library_of(target, _SYNC)
    if library is None:
        wanted = "use add_async" if _library_of(target, _ASYNC) else _wanted(_SYNC)
        raise TypeError(f"{type(target).__name__} cannot take a job: {wanted}")
    row = _row_of(job, idempotency_key)
    if library == "psycopg":
        _check_open(connection := getattr(target, "connection", target))
        import psycopg  # noqa: PLC0415 - applications with SQLAlchemy may use another driver

        # Use a new cursor, because the application's may have other row factories and parameter styles.
        psycopg.Cursor(connection).execute(app_statement("add"), row._asdict())
        return row.id
    from sqlalchemy import text  # noqa: PLC0415 - applications with psycopg may not have it

    connection = target.connection() if hasattr(target, "flush") else target
    _check_sqlalchemy(connection)
    connection.execute(text(named_statement("add")), row._asdict())
    return row.id


async def add_async(target: Any, job: Mapping[str, Any], *, idempotency_key: str | None = None) -> UUID:
    """Enqueue a job as `add` does, through an async Session or connection of SQLAlchemy or psycopg."""
    library = _library_of(target, _ASYNC)
    if library is None:
        wanted = "use add" if _library_of(target, _SYNC) else _wanted(_ASYNC)
        raise TypeError(f"{type(target).__name__} cannot take a job: {wanted}")
    row = _row_of(job, idempotency_key)
    if library == "psycopg":
        _check_open(connection := getattr(target, "connection", target))
        import psycopg  # noqa: PLC0415

        await psycopg.AsyncCursor(connection).execute(app_statement("add"), row._asdict())
        return row.id
    from sqlalchemy import text  # noqa: PLC0415

    connection = await target.connection() if hasattr(target, "flush") else target
    _check_sqlalchemy(connection.sync_connection)
    await connection.execute(text(named_statement("add")), row._asdict())
    return row.id


class _Row(NamedTuple):
    id: UUID
    namespace: str | None
    document: str
    idempotency_key: str


def _row_of(job: Mapping[str, Any], idempotency_key: str | None) -> _Row:
    """Check a document and return its row.

    Raises:
        JobRefusedError: it is not valid.
    """
    from noonmark.core.ids import uuid7  # noqa: PLC0415 - pydantic's models take a while to load
    from noonmark.outbox.checking import checked  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import FieldError  # noqa: PLC0415

    document, text = checked(job)
    key = idempotency_key if idempotency_key is not None else document.get("idempotency_key")
    if key is not None and not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY_CHARS):
        expected = f"text of 1 to {MAX_KEY_CHARS} characters"
        raise JobRefusedError([FieldError("/idempotency_key", "is not a valid key", expected)])
    row_id = uuid7()
    return _Row(row_id, document.get("namespace"), text, key or str(row_id))


def _library_of(target: object, known: Mapping[str, set[str]]) -> str | None:
    """Return the library of a connection, without importing any library."""
    for cls in type(target).__mro__:
        library = cls.__module__.partition(".")[0]
        if cls.__name__ in known.get(library, ()):
            return library
    return None


def _wanted(known: Mapping[str, set[str]]) -> str:
    names = [f"{library}'s {name}" for library, classes in known.items() for name in sorted(classes)]
    return "give one of " + ", ".join(names)


def _check_open(connection: Any) -> None:
    """Refuse a psycopg connection that would commit the row at once.

    Raises:
        OutboxError: the connection is in autocommit mode, without an open transaction.
    """
    from psycopg.pq import TransactionStatus  # noqa: PLC0415

    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise OutboxError(_NOT_OPEN)


def _check_sqlalchemy(connection: Any) -> None:
    """Refuse a SQLAlchemy connection that is not to Postgres, or that has no transactions.

    Raises:
        OutboxError: the connection is of this kind.
    """
    if connection.dialect.name != "postgresql":
        raise OutboxError(f"the outbox needs Postgres, but this connection is to {connection.dialect.name}")
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise OutboxError(_NOT_OPEN)
