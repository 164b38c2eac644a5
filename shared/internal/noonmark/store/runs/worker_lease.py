"""A worker's lease: registered, renewed, ended. `leases` lapses the leases of silent workers."""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from noonmark.store.cluster.capabilities import WORKER_CAPABILITIES, release
from noonmark.store.database.statements import statement
from noonmark.store.runs.locked_runs import is_lock_timeout


class Identity(NamedTuple):
    """The identity of a worker: a row of `workers`. A lapsed worker registers again and gets a new one."""

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
    """Register this process as a worker with a lease and return its identity.

    Args:
        connection: in autocommit mode.
        pool: the pool that it works for.
        host: the name of this host.
        pid: the id of this process.
        lease_seconds: the lease lapses after this long without a heartbeat.
        catalogue: what it can run, see `noonmark.store.cluster.catalogues.catalogue_text`.
        slots: the number of runs that it runs at a time.
    """
    row = connection.execute(
        statement("register_worker"),
        {
            "pool": pool,
            "host": host,
            "pid": pid,
            "lease_seconds": lease_seconds,
            "catalogue": catalogue,
            "slots": slots,
            "release": release(),
            "capabilities": list(WORKER_CAPABILITIES),
        },
    ).fetchone()
    assert row is not None
    return Identity(*row)


def beat(connection: psycopg.Connection, identity: Identity) -> bool:
    """Renew the lease; False if it has lapsed and every run of the worker must stop."""
    return connection.execute(statement("renew_worker_lease"), identity._asdict()).fetchone() is not None


def why_not_renewed(error: psycopg.Error) -> str:
    """Return in one line why a lease could not be renewed."""
    lines = str(error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    if is_lock_timeout(error):
        reason += ": another session has locked this worker's row of `workers`"
    return reason


def leave(connection: psycopg.Connection, identity: Identity) -> None:
    """End the lease of a worker that has no runs left."""
    connection.execute(statement("end_worker_lease"), identity._asdict())


def lapse(connection: psycopg.Connection, identity: Identity) -> bool:
    """End the lease of a worker that is about to be ended with its runs; False if it has lapsed already."""
    return connection.execute(statement("lapse_worker"), identity._asdict()).fetchone() is not None
