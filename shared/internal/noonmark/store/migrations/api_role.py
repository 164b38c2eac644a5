"""The role that the API takes on in the database, and nobody logs in as."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import sql

from noonmark.store.database.scope import API_ROLE

_MAKE: Final = sql.SQL("create role {} nologin").format(sql.Identifier(API_ROLE))


class RoleError(RuntimeError):
    """The role is missing and may not be made here; the message holds the statements that make it."""


def ensure_api_role(connection: psycopg.Connection) -> None:
    """Make the role where it is missing, and let the connected user take it on. Safe to repeat.

    Roles are of the whole server: another of its databases may have made it already, or makes it just now.

    Args:
        connection: in autocommit.

    Raises:
        RoleError: the user may not make roles.
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
            f"user {user} may not make the role {API_ROLE}, which the API works as: let an administrator of"
            f" the server run `{statements}`, then migrate again"
        ) from error


def lend_statement(connection: psycopg.Connection) -> str:
    """Return what an administrator runs to lend the role to the connected user."""
    row = connection.execute("select current_user").fetchone()
    assert row is not None
    return f"{_lend_to(row[0]).as_string(connection)};"


def _lend_to(user: str) -> sql.Composed:
    return sql.SQL("grant {} to {}").format(sql.Identifier(API_ROLE), sql.Identifier(user))


def may_take_on(connection: psycopg.Connection) -> bool:
    """Tell whether the connected user can work as the API's role."""
    row = connection.execute(
        "select to_regrole(%(role)s) is not null and pg_has_role(current_user, to_regrole(%(role)s),"
        " case when current_setting('server_version_num')::int >= 160000 then 'SET' else 'MEMBER' end)",
        {"role": API_ROLE},
    ).fetchone()
    return bool(row and row[0])


def _unless_there(connection: psycopg.Connection, statement: sql.Composed) -> None:
    """Run a statement that somebody else may have run a moment ago."""
    try:
        connection.execute(statement)
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        return
