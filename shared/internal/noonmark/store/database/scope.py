"""Row-level security between tenants, in addition to the API's own checks, for the length of one transaction.

The services own the tables and are not restricted. Everything that the API does for a caller, it does as the
role `noonmark_api`, which reads and changes only the rows of the namespaces that were set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from noonmark.store.database.statements import statement

API_ROLE: Final = "noonmark_api"


def enter_scope(connection: psycopg.Connection, namespaces: Collection[str] | None) -> None:
    """Restrict the rest of the caller's transaction to namespaces; its end removes the restriction.

    A rollback to an earlier savepoint removes it too: call this first in the transaction.

    Args:
        connection: its transaction is open, and was begun as the owner.
        namespaces: whose rows are visible from now on; None: all namespaces; empty: no rows.
    """
    named = None if namespaces is None else sorted(namespaces)
    connection.execute(statement("enter_scope"), {"role": API_ROLE, "namespaces": named})


@contextmanager
def outside_scope(connection: psycopg.Connection) -> Iterator[None]:
    """Read as the owner, whatever the open transaction is restricted to; afterwards it is restricted again.

    For facts that a process caches for all its callers. If the block raises, roll the transaction back.
    """
    row = connection.execute("select current_setting('role'), set_config('role', 'none', true)").fetchone()
    assert row is not None
    yield
    connection.execute("select set_config('role', %s, true)", [row[0]])
