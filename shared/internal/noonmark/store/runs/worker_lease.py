"""A worker's lease: registered, renewed, ended. The lapse of leases is in `leases`."""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from noonmark.store.database.statements import statement


class Identity(NamedTuple):
    """Who writes: a row of `workers`. A lapsed worker gets a new one, never the old one again."""

    worker: int
    epoch: int


def register(
    connection: psycopg.Connection,
    *,
    pool: str,
    host: str,
    pid: int,
    lease_seconds: float,
    catalogue: str = "{}",
    slots: int | None = None,
) -> Identity:
    """Make this process a worker with a lease, of so many slots; `catalogue`: see `store.catalogues`."""
    row = connection.execute(
        statement("register_worker"),
        {
            "pool": pool,
            "host": host,
            "pid": pid,
            "lease_seconds": lease_seconds,
            "catalogue": catalogue,
            "slots": slots,
        },
    ).fetchone()
    assert row is not None
    return Identity(*row)


def beat(connection: psycopg.Connection, identity: Identity) -> bool:
    """Renew the lease; False when it has lapsed and every run of it must stop."""
    return connection.execute(statement("renew_worker_lease"), identity._asdict()).fetchone() is not None


def leave(connection: psycopg.Connection, identity: Identity) -> None:
    """End the lease of a worker that holds nothing any more."""
    connection.execute(statement("end_worker_lease"), identity._asdict())
