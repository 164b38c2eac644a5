"""What processes can read beyond the formats of release 0.2; a new format is used once all that read it can.

A process of release 0.2 registers none, so a rollout in either direction needs no order of steps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Final

import psycopg

from noonmark.store.database.statements import statement

RUN_BATCHES: Final = "run_batches"
"""Reads run messages with several runs."""

OUTBOX_ARRAYS: Final = "outbox_arrays"
"""Reads rows of the outbox with several runs."""

WORKFLOWS: Final = "workflows"
"""Has its part in running workflows."""

WORKER_CAPABILITIES: Final[Sequence[str]] = (RUN_BATCHES, WORKFLOWS)
"""What a worker of this release registers."""

MEMBER_CAPABILITIES: Final[Mapping[str, Sequence[str]]] = {
    "dispatcher": (OUTBOX_ARRAYS, WORKFLOWS),
    "trigger": (WORKFLOWS,),
}
"""What a member of this release registers, by its role."""


def release() -> str:
    """Return the release of this process, as it registers it."""
    return version("noonmark")


def reads_batches(connection: psycopg.Connection, pool: str) -> bool:
    """Return whether every live worker of a pool reads run messages with several runs, and there is one."""
    row = connection.execute(
        statement("have_workers_capability"), {"pool": pool, "capability": RUN_BATCHES}
    ).fetchone()
    return row is not None and bool(row[0])


def reads_arrays(connection: psycopg.Connection, timeout_seconds: float) -> bool:
    """Return whether every live dispatcher reads rows of the outbox with several runs, and there is one.

    Args:
        connection: in autocommit mode.
        timeout_seconds: a member without a heartbeat for longer is not live.
    """
    row = connection.execute(
        statement("have_members_capability"),
        {"role": "dispatcher", "capability": OUTBOX_ARRAYS, "timeout_seconds": timeout_seconds},
    ).fetchone()
    return row is not None and bool(row[0])


def without_workflows(
    connection: psycopg.Connection, pools: Collection[str], timeout_seconds: float
) -> Sequence[str]:
    """Return what is live and has no part in running workflows, such as workers of release 0.2.

    Args:
        connection: to Postgres.
        pools: of the tasks.
        timeout_seconds: a trigger or dispatcher without a heartbeat for longer is not live.
    """
    rows = connection.execute(
        statement("find_without_capability"),
        {
            "roles": ["dispatcher", "trigger"],
            "pools": sorted(pools),
            "capability": WORKFLOWS,
            "timeout_seconds": timeout_seconds,
        },
    ).fetchall()
    return [f"a worker of pool {pool!r}" if pool else f"a {what}" for what, pool in rows]
