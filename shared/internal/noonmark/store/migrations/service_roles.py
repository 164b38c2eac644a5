"""Roles of the database with which services connect that do not own the tables: what grants them their rights.

An administrator creates the roles (`noonmark rights postgres` prints how). Every `noonmark db migrate` then grants
those that exist exactly the rights in `noonmark.store.access.service_rights`. Without roles, services connect as the
owner, and nothing is granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import psycopg
from psycopg import sql

from noonmark.store.access.service_rights import (
    ALL_SERVICES_ROLE,
    FUNCTION_RIGHTS,
    SERVICES,
    TABLES,
    role_of,
    table_rights,
)
from noonmark.store.database.scope import API_ROLE

__all__ = ["create_statements", "grant_service_rights", "grant_statements"]

_POLICY: Final = "services"


def create_statements() -> Iterator[str]:
    """Yield the statements with which an administrator creates the roles; no user logs in with them."""
    yield f"create role {ALL_SERVICES_ROLE} nologin;"
    for service in SERVICES:
        yield f"create role {role_of(service)} nologin in role {ALL_SERVICES_ROLE};"
    yield f"grant {API_ROLE} to {role_of('api')};"


def grant_statements(services: Iterable[str] = SERVICES, *, schema: str = "public") -> Iterator[str]:
    """Yield the statements with which the owner grants exactly the rights of these services."""
    place = sql.Identifier(schema).as_string(None)
    for service in services:
        role = role_of(service)
        yield f"revoke all on all tables in schema {place} from {role};"
        yield f"grant usage on schema {place} to {role};"
        for verbs, tables in _by_verbs(service).items():
            yield f"grant {verbs} on {', '.join(f'{place}.{table}' for table in tables)} to {role};"
        for function in FUNCTION_RIGHTS.get(service, ()):
            yield f"grant execute on function {place}.{function} to {role};"


def grant_service_rights(connection: psycopg.Connection) -> None:
    """Grant the roles that exist their rights on the current schema, in the open transaction. Safe to repeat.

    Args:
        connection: of the owner of the tables.
    """
    row = connection.execute(
        "select current_schema(), to_regrole(%s) is not null", [ALL_SERVICES_ROLE]
    ).fetchone()
    assert row is not None
    schema, wanted = row
    if not wanted:
        return
    there = [name for name in SERVICES if _exists(connection, role_of(name))]
    for statement in grant_statements(there, schema=schema):
        connection.execute(sql.SQL(statement))
    _let_services_see_all_rows(connection)


def _exists(connection: psycopg.Connection, role: str) -> bool:
    row = connection.execute("select to_regrole(%s) is not null", [role]).fetchone()
    return bool(row and row[0])


def _let_services_see_all_rows(connection: psycopg.Connection) -> None:
    """Add the policy that an owner does not need to the tables that have none yet."""
    missing = connection.execute(
        "select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')"
        " and relrowsecurity and not relispartition"
        " and not exists (select from pg_policy where polrelid = pg_class.oid and polname = %s)",
        [_POLICY],
    ).fetchall()
    for (table,) in missing:
        connection.execute(
            sql.SQL("create policy {} on {} to {} using (true) with check (true)").format(
                sql.Identifier(_POLICY), sql.Identifier(table), sql.Identifier(ALL_SERVICES_ROLE)
            )
        )


def _by_verbs(service: str) -> dict[str, list[str]]:
    """Return tables by the verbs that are granted on them, so that few statements are needed."""
    found: dict[str, list[str]] = {}
    for table in TABLES:
        if verbs := table_rights(service, table):
            found.setdefault(", ".join(verbs), []).append(table)
    return found
