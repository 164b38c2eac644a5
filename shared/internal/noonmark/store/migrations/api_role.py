"""The database role that the API's transactions use; no user logs in with it."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import sql

from noonmark.store.database.scope import API_ROLE

_MAKE: Final = sql.SQL("create role {} nologin").format(sql.Identifier(API_ROLE))


class RoleError(RuntimeError):
    """The role does not exist and cannot be created; the message contains the statements that create it."""


def ensure_api_role(connection: psycopg.Connection) -> None:
    """Create the role if it does not exist, and grant it to the connected user. Safe to repeat.

    Roles belong to the whole server: another database may have created it already, or create it at this moment.

    Args:
        connection: a connection in autocommit.

    Raises:
        RoleError: the user may not create roles.
    """
    row = connection.execute("select current_user, to_regrole(%s) is not null", [API_ROLE]).fetchone()
    assert row is not None
    user, there = row
    try:
        if not there:
            _unless_there(connection, _MAKE)
        if not may_take_on(connection):
            _unless_there(connection, _lend_to(user))
    except psycopg.errors.InsufficientPrivilege as error:
        statements = f"{_MAKE.as_string(connection)}; {_lend_to(user).as_string(connection)};"
        raise RoleError(
            f"user {user} cannot create the role {API_ROLE}, which the API uses: ask an administrator of the"
            f" server to run `{statements}`, then migrate again"
        ) from error


def lend_statement(connection: psycopg.Connection) -> str:
    """Return the statement with which an administrator grants the role to the connected user."""
    row = connection.execute("select current_user").fetchone()
    assert row is not None
    return f"{_lend_to(row[0]).as_string(connection)};"


def _lend_to(user: str) -> sql.Composed:
    return sql.SQL("grant {} to {}").format(sql.Identifier(API_ROLE), sql.Identifier(user))


def may_take_on(connection: psycopg.Connection) -> bool:
    """Return whether the connected user can use the API's role."""
    row = connection.execute(
        "select to_regrole(%(role)s) is not null and pg_has_role(current_user, to_regrole(%(role)s),"
        " case when current_setting('server_version_num')::int >= 160000 then 'SET' else 'MEMBER' end)",
        {"role": API_ROLE},
    ).fetchone()
    return bool(row and row[0])


def _unless_there(connection: psycopg.Connection, statement: sql.Composed) -> None:
    """Run a create statement; ignore that another connection has just created the object."""
    try:
        connection.execute(statement)
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        return
