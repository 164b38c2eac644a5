"""Connections to Postgres: every one has timeouts and notices a dead peer."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

_KEEPALIVE = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    # A half-open connection must fail before a lease does.
    "tcp_user_timeout": 10_000,
    "target_session_attrs": "read-write",
}

_SERVER_KEEPALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
"""The server must notice a dead host too: the session of that host keeps its locks until then."""

_IDLE_IN_TRANSACTION_MS = 5000
"""A process stopped inside its transaction holds locks that the next owner of its shards skips. The server
ends its session, which releases them, so that the work continues within seconds.
"""


def connect(
    dsn: str,
    *,
    application: str,
    autocommit: bool = False,
    statement_timeout_seconds: float = 30,
    lock_timeout_seconds: float | None = None,
) -> psycopg.Connection:
    """Open a connection.

    Statements are never prepared by name: each is planned with the current values and table sizes (no generic
    plan from a time when a queue was empty survives), and any transaction pooler may be used.

    Args:
        dsn: libpq URL or connection string; `options` in it are kept.
        application: shown in `pg_stat_activity`.
        autocommit: True if each statement is its own transaction.
        statement_timeout_seconds: the server cancels a statement after this.
        lock_timeout_seconds: the server cancels a statement that waits for one lock for this long; by default
            for half of the other time.

    Raises:
        psycopg.OperationalError: no server answers, or this process lacks descriptors or memory now.
    """
    try:
        lock_timeout = statement_timeout_seconds / 2 if lock_timeout_seconds is None else lock_timeout_seconds
        return _open(dsn, application, autocommit, statement_timeout_seconds, lock_timeout)
    except OSError as error:
        # psycopg passes on what the selector that it waits with raises: to callers, it is an outage too.
        raise psycopg.OperationalError(f"cannot connect: {error}") from error


def _open(
    dsn: str,
    application: str,
    autocommit: bool,
    statement_timeout_seconds: float,
    lock_timeout_seconds: float,
) -> psycopg.Connection:
    given = conninfo_to_dict(dsn).get("options") or ""
    return psycopg.connect(
        dsn,
        autocommit=autocommit,
        prepare_threshold=None,
        application_name=f"noonmark-{application}",
        # Start-up options, not SET: a transaction pooler that ignores them leaves no session state behind.
        options=f"{given} -c statement_timeout={int(statement_timeout_seconds * 1000)}"
        f" -c lock_timeout={int(lock_timeout_seconds * 1000)}"
        f" -c idle_in_transaction_session_timeout={_IDLE_IN_TRANSACTION_MS} -c TimeZone=UTC"
        f" {_SERVER_KEEPALIVE}",
        **_KEEPALIVE,  # type: ignore[arg-type]
    )
