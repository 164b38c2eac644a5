"""Connections to Postgres: every one bounded in time and able to notice a dead peer."""

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
"""The server notices as well: the session of a host that is gone keeps its locks until then."""

_IDLE_IN_TRANSACTION_MS = 5000
"""A process that is stopped inside its transaction holds locks that the next owner of its shards skips:
they go with the session, so that the work moves within seconds."""


def connect(
    dsn: str, *, application: str, autocommit: bool = False, statement_timeout_seconds: float = 30
) -> psycopg.Connection:
    """Open a connection.

    Statements are never prepared by name: each is planned with the values and table sizes of its
    moment (no generic plan made while a queue was empty survives), and any transaction pooler may
    stand in between.

    Args:
        dsn: libpq URL; `options` in it count as well.
        application: shown in `pg_stat_activity`.
        autocommit: True where each statement is a transaction of its own.
        statement_timeout_seconds: the server ends a statement after this.
    """
    given = conninfo_to_dict(dsn).get("options") or ""
    return psycopg.connect(
        dsn,
        autocommit=autocommit,
        prepare_threshold=None,
        application_name=f"noonmark-{application}",
        # Start-up options, not SET: a transaction pooler that ignores them leaves no session state behind.
        options=f"{given} -c statement_timeout={int(statement_timeout_seconds * 1000)}"
        f" -c lock_timeout={int(statement_timeout_seconds * 500)}"
        f" -c idle_in_transaction_session_timeout={_IDLE_IN_TRANSACTION_MS} -c TimeZone=UTC"
        f" {_SERVER_KEEPALIVE}",
        **_KEEPALIVE,  # type: ignore[arg-type]
    )


def sqlalchemy_url(dsn: str) -> str:
    """Name the psycopg 3 driver in a libpq URL."""
    for scheme in ("postgresql://", "postgres://"):
        if dsn.startswith(scheme):
            return "postgresql+psycopg://" + dsn.removeprefix(scheme)
    return dsn
