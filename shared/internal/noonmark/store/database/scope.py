"""The second wall between tenants: row-level security, for the length of one transaction.

The services own the tables and are not bound. Whatever the API does for somebody, it does as the role
`noonmark_api`, which sees and changes the rows of the namespaces that it was given, and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from noonmark.store.database.statements import statement

API_ROLE: Final = "noonmark_api"


def enter_scope(connection: psycopg.Connection, namespaces: Collection[str] | None) -> None:
    """Bind the rest of the caller's transaction to namespaces; its end takes that back.

    A savepoint that is rolled back to a point before takes it back too: call this first of all.

    Args:
        connection: its transaction is open, and was begun as the owner.
        namespaces: whose rows exist from now on; None: those of all, none of them: no rows.
    """
    named = None if namespaces is None else sorted(namespaces)
    connection.execute(statement("enter_scope"), {"role": API_ROLE, "namespaces": named})


@contextmanager
def outside_scope(connection: psycopg.Connection) -> Iterator[None]:
    """Read something as the owner, whatever the open transaction is bound to; afterwards it is bound again.

    For facts that a process keeps for all its callers. If the block raises, the transaction is to be rolled
    back.
    """
    row = connection.execute("select current_setting('role'), set_config('role', 'none', true)").fetchone()
    assert row is not None
    yield
    connection.execute("select set_config('role', %s, true)", [row[0]])
