"""The traces that clients' submissions belong to. Used only if tracing is on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

import psycopg

from noonmark.store.database.statements import statement


def keep(connection: psycopg.Connection, traceparents: Mapping[UUID, str]) -> None:
    """Store the `traceparent` of jobs in the transaction that creates them."""
    connection.execute(
        statement("insert_traces"),
        {"ids": list(traceparents), "traceparents": list(traceparents.values())},
    )


def submitted(connection: psycopg.Connection, job_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the `traceparent` of each of these jobs that has one."""
    ids = list(set(job_ids))
    if not ids:
        return {}
    return dict(connection.execute(statement("read_traces"), {"ids": ids}).fetchall())
