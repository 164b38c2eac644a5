"""Making API keys: the one place where a token exists in the clear."""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from noonmark.auth.tokens import ApiToken, new_signing_secret
from noonmark.core.access.roles import Principal
from noonmark.core.access.submission_signature import PublisherKey
from noonmark.store.access.api_keys import (
    KeyMaterial,
    KeyRow,
    NewKey,
    check_ends_before,
    check_may_make,
    insert_key,
)


class IssuedKey(NamedTuple):
    """A new key with its secrets, to be shown once.

    Attributes:
        row: what is kept of it.
        token: what its holder sends.
        signing_key: what its holder signs events with; None: it signs none.
    """

    row: KeyRow
    token: ApiToken
    signing_key: PublisherKey | None


def issue_key(connection: psycopg.Connection, maker: Principal, wanted: NewKey) -> IssuedKey:
    """Make a key inside the caller's transaction.

    Raises:
        KeyRequestError: it means nothing or is out of bounds.
        KeyNotAllowedError: it could do what its maker may not.
    """
    check_may_make(maker, wanted)
    check_ends_before(connection, maker, wanted)
    token = ApiToken.mint()
    signing_secret = new_signing_secret() if wanted.signs else None
    material = KeyMaterial(token.key_id, token.secret_hash, signing_secret)
    row = insert_key(connection, material, wanted, created_by=maker.id)
    signing_key = None if signing_secret is None else PublisherKey(token.key_id, signing_secret)
    return IssuedKey(row, token, signing_key)
