"""API keys for tests, made by the product's own function."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from noonmark.auth.key_issuing import issue_key
from noonmark.core.access.roles import Principal, Role
from noonmark.store.access.api_keys import NewKey

ADMIN: Final = Principal("test", "test", platform=True)


def make_token(
    connection: psycopg.Connection, role: str | None = None, namespace: str = "default", **options: Any
) -> str:
    """Make a key with a role in a namespace, or a platform admin's; return its token.

    Args:
        connection: as the owner.
        role: None: a platform admin's key.
        namespace: where it has the role.
        options: further fields of `NewKey`.
    """
    grants = {namespace: Role.named(role)} if role else {}
    wanted = NewKey(f"test {role or 'platform'}", grants, platform=role is None, **options)
    return str(issue_key(connection, ADMIN, wanted).token)
