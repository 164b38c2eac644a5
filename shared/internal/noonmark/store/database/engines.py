"""SQLAlchemy engines, in a module of their own because most processes need none."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, NullPool, create_engine

from noonmark.store.database.connect import connect


def engine_of(dsn: str, *, application: str, statement_timeout_seconds: float = 30, **options: Any) -> Engine:
    """Return an engine that opens its connections with `connect`, so that libpq alone reads the URL.

    Args:
        dsn: as for `connect`.
        application: as for `connect`.
        statement_timeout_seconds: as for `connect`.
        options: of `sqlalchemy.create_engine`; without any, connections are not pooled.
    """
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect(
            dsn, application=application, statement_timeout_seconds=statement_timeout_seconds
        ),
        **(options or {"poolclass": NullPool}),
    )
