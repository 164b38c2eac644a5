"""The API key of the user who started a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psycopg

from noonmark.auth.key_issuing import issue_key
from noonmark.auth.tokens import ApiToken
from noonmark.core.access.roles import Principal
from noonmark.devstack.state import write_private
from noonmark.store.access.api_keys import NewKey, read_keys

KEY_FILE: Final = "api-key"

_MAKER: Final = Principal("local:dev-stack", "development stack", platform=True)


def ensure_key(database_url: str, file: Path) -> None:
    """Creates a platform admin's key unless the file has one that this database knows.

    Only the file has its token, and only its owner may read the file.
    """
    with psycopg.connect(database_url) as connection:
        if not _is_good(connection, file):
            issued = issue_key(connection, _MAKER, NewKey("development stack", {}, platform=True))
            connection.commit()
            write_private(file, f"{issued.token}\n")


def _is_good(connection: psycopg.Connection, file: Path) -> bool:
    try:
        token = ApiToken.parse(file.read_text(encoding="ascii").strip())
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    if token is None:
        return False
    return any(
        not key.revoked and key.platform and token.matches(key.secret_hash)
        for key in read_keys(connection, [token.key_id])
    )
