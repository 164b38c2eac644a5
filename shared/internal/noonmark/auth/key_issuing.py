"""Creates API keys. Only here a new token exists in clear text."""

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
        row: the stored row, without secrets.
        token: the token that its holder sends.
        signing_key: the key with which its holder signs events; None if it cannot sign.
    """

    row: KeyRow
    token: ApiToken
    signing_key: PublisherKey | None


def issue_key(connection: psycopg.Connection, maker: Principal, wanted: NewKey) -> IssuedKey:
    """Create a key in the caller's transaction.

    Raises:
        KeyRequestError: its definition is not valid.
        KeyNotAllowedError: it would have permissions that its creator does not have.
    """
    check_may_make(maker, wanted)
    check_ends_before(connection, maker, wanted)
    token = ApiToken.mint()
    signing_secret = new_signing_secret() if wanted.signs else None
    material = KeyMaterial(token.key_id, token.secret_hash, signing_secret)
    row = insert_key(connection, material, wanted, created_by=maker.id)
    signing_key = None if signing_secret is None else PublisherKey(token.key_id, signing_secret)
    return IssuedKey(row, token, signing_key)
