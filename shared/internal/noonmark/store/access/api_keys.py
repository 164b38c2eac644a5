"""API keys: creates, lists, reads and revokes them. The secret itself is never stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import orjson
import psycopg

from noonmark.core.access.roles import EVERYWHERE, Permission, Principal, Role
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN, NAMESPACE_RULE
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement

LONGEST_NAME: Final = 100
MOST_GRANTS: Final = 100
MOST_PER_MINUTE: Final = 1_000_000
_FIRST_KEY: Final = 0x6E6F6F6E_6B657973
"""Advisory lock of the process that creates the first key."""
LONGEST_LIFE_SECONDS: Final = 10 * 366 * 86_400


class KeyRequestError(ValueError):
    """The requested key is not valid; the text says why and what to do.

    Attributes:
        pointer: JSON pointer of the field that is wrong.
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


class KeyNotAllowedError(Exception):
    """The requested key would have more permissions than its creator; the text says which."""


class StoredKey(NamedTuple):
    """A key as authentication reads it; `seconds_left` is by the database's clock, None without an end."""

    key_id: str
    name: str
    secret_hash: bytes
    signing_secret: bytes | None
    grants: dict[str, str]
    platform: bool
    scopes: list[str] | None
    rate_per_minute: int | None
    seconds_left: float | None
    revoked: bool
    expires_at: datetime | None = None


class KeyRow(NamedTuple):
    """A key for people, without secrets. `signs` means that it can sign events on Kafka."""

    key_id: str
    name: str
    grants: dict[str, str]
    platform: bool
    scopes: list[str] | None
    rate_per_minute: int | None
    signs: bool
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    state: str


@dataclass(frozen=True, slots=True)
class NewKey:
    """The definition of a new key.

    Attributes:
        name: a name for people, 1 to 100 characters.
        grants: role per namespace; `*` means every namespace.
        platform: whether it has every permission everywhere.
        scopes: limits the permissions of its roles to these; None means no limit.
        rate_per_minute: requests per minute; None means the server's default.
        lives_seconds: lifetime from now, by the database's clock; None means until it is revoked.
        signs: whether it can sign events on Kafka.
    """

    name: str
    grants: Mapping[str, Role]
    platform: bool = False
    scopes: frozenset[Permission] | None = None
    rate_per_minute: int | None = None
    lives_seconds: float | None = None
    signs: bool = False


class KeyMaterial(NamedTuple):
    """The stored parts of a new key's secrets."""

    key_id: str
    secret_hash: bytes
    signing_secret: bytes | None


def check_new_key(wanted: NewKey) -> None:
    """Check the definition of a key.

    Raises:
        KeyRequestError: the first problem found.
    """
    if not 0 < len(wanted.name) <= LONGEST_NAME or not wanted.name.isprintable():
        raise KeyRequestError(
            "/name", f"the name of the key is not valid; expected 1 to {LONGEST_NAME} printable characters"
        )
    if not wanted.platform and not wanted.grants:
        raise KeyRequestError(
            "/grants", "a key without a role has no permissions; expected a role in a namespace"
        )
    if wanted.platform and wanted.grants:
        raise KeyRequestError("/grants", "a platform key has every permission already: leave its grants out")
    if len(wanted.grants) > MOST_GRANTS:
        raise KeyRequestError(
            "/grants", f"the key has {len(wanted.grants)} grants; expected at most {MOST_GRANTS}"
        )
    for place in wanted.grants:
        if place != EVERYWHERE and re.fullmatch(NAMESPACE_PATTERN, place) is None:
            raise KeyRequestError(
                "/grants", f"{place!r} is not a valid namespace name; expected {NAMESPACE_RULE}"
            )
    if wanted.scopes is not None and not wanted.scopes:
        raise KeyRequestError("/scopes", "an empty list of scopes allows nothing: leave it out to allow all")
    if wanted.rate_per_minute is not None and not 1 <= wanted.rate_per_minute <= MOST_PER_MINUTE:
        raise KeyRequestError(
            "/rate_per_minute",
            f"{wanted.rate_per_minute} requests a minute are out of range; expected 1 to {MOST_PER_MINUTE}",
        )
    if wanted.lives_seconds is not None and not 0 < wanted.lives_seconds <= LONGEST_LIFE_SECONDS:
        raise KeyRequestError(
            "/expires_in_seconds",
            "the lifetime of the key is out of range; expected above 0 s and at most ten years",
        )


def check_may_make(maker: Principal, wanted: NewKey) -> None:
    """Refuse a key that would have permissions that its creator does not have.

    Raises:
        KeyNotAllowedError: it would; the error names the first such permission.
    """
    if maker.scopes is not None and (wanted.scopes is None or not wanted.scopes <= maker.scopes):
        raise KeyNotAllowedError(
            "a credential with scopes can only create keys with the same scopes or fewer"
        )
    most = maker.rate_per_minute
    if most is not None and (wanted.rate_per_minute is None or wanted.rate_per_minute > most):
        raise KeyNotAllowedError(
            f"a credential with a rate can only create keys with a rate of at most {most} a minute"
        )
    if maker.platform and maker.may(Permission.KEYS_WRITE):
        return
    if wanted.platform or EVERYWHERE in wanted.grants:
        raise KeyNotAllowedError(
            "only a platform admin can create platform keys, or keys for every namespace"
        )
    check_may_end(maker, wanted.grants, platform=False)


def check_ends_before(connection: psycopg.Connection, maker: Principal, wanted: NewKey) -> None:
    """Refuse a key that lives longer than the credential that creates it.

    Raises:
        KeyNotAllowedError: it would.
    """
    if maker.expires_at is None:
        return
    row = connection.execute(
        "select extract(epoch from %s - noonmark_now())::double precision", [maker.expires_at]
    ).fetchone()
    assert row is not None
    if wanted.lives_seconds is None or wanted.lives_seconds > row[0]:
        raise KeyNotAllowedError(
            f"a key that expires cannot create keys that outlive it: yours ends at"
            f" {maker.expires_at.isoformat()}, so request a lifetime of at most {max(0, int(row[0]))} s"
        )


def check_may_end(maker: Principal, grants: Mapping[str, object], *, platform: bool) -> None:
    """Refuse to revoke (or create) a key with a grant in a namespace where the user is not an admin.

    Raises:
        KeyNotAllowedError: it has one; the error names the first such namespace.
    """
    if maker.platform and maker.may(Permission.KEYS_WRITE):
        return
    if platform or EVERYWHERE in grants:
        raise KeyNotAllowedError(
            "only a platform admin can revoke platform keys, or keys for every namespace"
        )
    for place in sorted(grants):
        if not maker.may(Permission.KEYS_WRITE, place):
            raise KeyNotAllowedError(f"the key has a grant in namespace {place}, where you are not an admin")


def insert_key(
    connection: psycopg.Connection, material: KeyMaterial, wanted: NewKey, *, created_by: str
) -> KeyRow:
    """Insert a new key in the caller's transaction. Call `check_may_make` before.

    Raises:
        KeyRequestError: its definition is not valid.
    """
    check_new_key(wanted)
    with connection.cursor(row_factory=row_of(KeyRow)) as cursor:
        row = cursor.execute(
            statement("insert_api_key"),
            {
                **material._asdict(),
                "name": wanted.name,
                "grants": orjson.dumps({n: role.label for n, role in wanted.grants.items()}).decode(),
                "platform": wanted.platform,
                "scopes": None if wanted.scopes is None else sorted(wanted.scopes),
                "rate_per_minute": wanted.rate_per_minute,
                "lives_seconds": wanted.lives_seconds,
                "created_by": created_by,
            },
        ).fetchone()
    assert row is not None
    return row


def read_keys(connection: psycopg.Connection, key_ids: Sequence[str]) -> list[StoredKey]:
    """Return keys for authentication, including revoked and expired ones; unknown ids are left out."""
    with connection.cursor(row_factory=row_of(StoredKey)) as cursor:
        return cursor.execute(statement("read_api_keys"), {"key_ids": list(key_ids)}).fetchall()


def mark_used(connection: psycopg.Connection, key_ids: Sequence[str]) -> None:
    """Record that keys are in use, unless a process did so within the last minute."""
    connection.execute(statement("mark_api_keys_used"), {"key_ids": sorted(key_ids)})


def list_keys(
    connection: psycopg.Connection,
    *,
    namespace: str | None = None,
    ended: bool = False,
    limit: int = 50,
    after: str | None = None,
) -> list[KeyRow]:
    """List keys by their ids.

    Args:
        connection: a connection, whose row policies apply.
        namespace: only keys with a grant in it.
        ended: whether to include revoked and expired keys.
        limit: maximum number of keys.
        after: only keys above this id.
    """
    with connection.cursor(row_factory=row_of(KeyRow)) as cursor:
        return cursor.execute(
            statement("list_api_keys"),
            {"namespace": namespace, "ended": ended, "limit": limit, "after": after, "key_id": None},
        ).fetchall()


def find_key(connection: psycopg.Connection, key_id: str) -> KeyRow | None:
    """Return a key, even if it is revoked or expired; None if it does not exist or is not visible."""
    with connection.cursor(row_factory=row_of(KeyRow)) as cursor:
        return cursor.execute(
            statement("list_api_keys"),
            {"namespace": None, "ended": True, "limit": 1, "after": None, "key_id": key_id},
        ).fetchone()


def revoke_key(connection: psycopg.Connection, key_id: str) -> bool:
    """Revoke a key permanently; return False if it is revoked or does not exist. It is refused within 5 s."""
    return connection.execute(statement("revoke_api_key"), {"key_id": key_id}).rowcount == 1


def lock_first_key(connection: psycopg.Connection) -> None:
    """Lock the creation of the first key until the transaction ends, so that only one is created."""
    connection.execute("select pg_advisory_xact_lock(%s)", [_FIRST_KEY])


def has_platform_key(connection: psycopg.Connection) -> bool:
    """Return whether there is a valid key of a platform admin."""
    row = connection.execute(
        "select exists (select from api_keys where platform and revoked_at is null"
        " and (expires_at is null or expires_at > noonmark_now()))"
    ).fetchone()
    return bool(row and row[0])
