"""API keys: made, shown, read for authentication, ended. A secret is never stored and never read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import orjson
import psycopg

from noonmark.core.access.roles import EVERYWHERE, Permission, Principal, Role
from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement

LONGEST_NAME: Final = 100
MOST_GRANTS: Final = 100
MOST_PER_MINUTE: Final = 1_000_000
_FIRST_KEY: Final = 0x6E6F6F6E_6B657973
"""Advisory lock of whoever makes the first key."""
LONGEST_LIFE_SECONDS: Final = 10 * 366 * 86_400


class KeyRequestError(ValueError):
    """A key as it was asked for is not possible; the text says why and what to do.

    Attributes:
        pointer: JSON pointer of the field that is wrong.
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


class KeyNotAllowedError(Exception):
    """Somebody asked for a key that could do more than they may; the text says what."""


class StoredKey(NamedTuple):
    """A key as authentication reads it; `seconds_left` by the database's clock, None: it does not expire."""

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
    """A key as it is shown: nothing in it is secret. `signs`: it may sign events on Kafka."""

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
    """What a key is to be.

    Attributes:
        name: for people, 1 to 100 characters.
        grants: role per namespace; `*` for every namespace.
        platform: it may do everything everywhere.
        scopes: the only permissions it has, whatever its roles would allow; None: all of theirs.
        rate_per_minute: requests; None: the server's default.
        lives_seconds: from now, by the database's clock; None: until it is revoked.
        signs: it may sign events on Kafka.
    """

    name: str
    grants: Mapping[str, Role]
    platform: bool = False
    scopes: frozenset[Permission] | None = None
    rate_per_minute: int | None = None
    lives_seconds: float | None = None
    signs: bool = False


class KeyMaterial(NamedTuple):
    """What is stored of a new key's secrets."""

    key_id: str
    secret_hash: bytes
    signing_secret: bytes | None


def check_new_key(wanted: NewKey) -> None:
    """Refuse a key that means nothing or is out of bounds.

    Raises:
        KeyRequestError: the first problem found.
    """
    if not 0 < len(wanted.name) <= LONGEST_NAME or not wanted.name.isprintable():
        raise KeyRequestError("/name", f"a key needs a name of 1 to {LONGEST_NAME} printable characters")
    if not wanted.platform and not wanted.grants:
        raise KeyRequestError("/grants", "a key without a role could do nothing: grant one in a namespace")
    if wanted.platform and wanted.grants:
        raise KeyRequestError("/grants", "a platform key has every right already: leave its grants out")
    if len(wanted.grants) > MOST_GRANTS:
        raise KeyRequestError("/grants", f"a key has at most {MOST_GRANTS} grants")
    for place in wanted.grants:
        if place != EVERYWHERE and re.fullmatch(NAMESPACE_PATTERN, place) is None:
            raise KeyRequestError("/grants", f"{place!r} is no name of a namespace")
    if wanted.scopes is not None and not wanted.scopes:
        raise KeyRequestError("/scopes", "no scopes at all would allow nothing: leave them out for all")
    if wanted.rate_per_minute is not None and not 1 <= wanted.rate_per_minute <= MOST_PER_MINUTE:
        raise KeyRequestError("/rate_per_minute", f"use 1 to {MOST_PER_MINUTE} requests a minute")
    if wanted.lives_seconds is not None and not 0 < wanted.lives_seconds <= LONGEST_LIFE_SECONDS:
        raise KeyRequestError("/expires_in_seconds", "a key lives above 0 s and at most ten years")


def check_may_make(maker: Principal, wanted: NewKey) -> None:
    """Refuse a key that could do what its maker may not.

    Raises:
        KeyNotAllowedError: with the first thing that it could.
    """
    if maker.scopes is not None and (wanted.scopes is None or not wanted.scopes <= maker.scopes):
        raise KeyNotAllowedError("a credential with scopes makes keys with the same scopes or fewer")
    most = maker.rate_per_minute
    if most is not None and (wanted.rate_per_minute is None or wanted.rate_per_minute > most):
        raise KeyNotAllowedError(f"a credential with a rate makes keys with one, of at most {most} a minute")
    if maker.platform and maker.may(Permission.KEYS_WRITE):
        return
    if wanted.platform or EVERYWHERE in wanted.grants:
        raise KeyNotAllowedError("only a platform admin makes platform keys, or keys for every namespace")
    check_may_end(maker, wanted.grants, platform=False)


def check_ends_before(connection: psycopg.Connection, maker: Principal, wanted: NewKey) -> None:
    """Refuse a key that lives longer than the one it is made with: its maker would never have to come back.

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
            f"a key that expires makes none that outlive it: yours ends at {maker.expires_at.isoformat()}, so"
            f" ask for an end within {max(0, int(row[0]))} s"
        )


def check_may_end(maker: Principal, grants: Mapping[str, object], *, platform: bool) -> None:
    """Refuse to end (or make) a key that reaches where somebody is no admin.

    Raises:
        KeyNotAllowedError: with the first such namespace.
    """
    if maker.platform and maker.may(Permission.KEYS_WRITE):
        return
    if platform or EVERYWHERE in grants:
        raise KeyNotAllowedError("only a platform admin ends platform keys, or keys for every namespace")
    for place in sorted(grants):
        if not maker.may(Permission.KEYS_WRITE, place):
            raise KeyNotAllowedError(f"the key reaches into namespace {place}, where you are no admin")


def insert_key(
    connection: psycopg.Connection, material: KeyMaterial, wanted: NewKey, *, created_by: str
) -> KeyRow:
    """Write a new key inside the caller's transaction; who may is checked before, by `check_may_make`.

    Raises:
        KeyRequestError: it means nothing or is out of bounds.
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
    """Return keys for authentication, ended ones too; ids that are none are left out."""
    with connection.cursor(row_factory=row_of(StoredKey)) as cursor:
        return cursor.execute(statement("read_api_keys"), {"key_ids": list(key_ids)}).fetchall()


def mark_used(connection: psycopg.Connection, key_ids: Sequence[str]) -> None:
    """Write down that keys are in use, unless that was done a moment ago by any process."""
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
        connection: sees those that it may see.
        namespace: only keys that reach into it.
        ended: revoked and expired ones too.
        limit: most that are returned.
        after: go on above this id.
    """
    with connection.cursor(row_factory=row_of(KeyRow)) as cursor:
        return cursor.execute(
            statement("list_api_keys"),
            {"namespace": namespace, "ended": ended, "limit": limit, "after": after, "key_id": None},
        ).fetchall()


def find_key(connection: psycopg.Connection, key_id: str) -> KeyRow | None:
    """Return a key, ended ones too; None where there is none, or none that may be seen."""
    with connection.cursor(row_factory=row_of(KeyRow)) as cursor:
        return cursor.execute(
            statement("list_api_keys"),
            {"namespace": None, "ended": True, "limit": 1, "after": None, "key_id": key_id},
        ).fetchone()


def revoke_key(connection: psycopg.Connection, key_id: str) -> bool:
    """End a key for good; False if it is revoked already, or not there. Refused everywhere within 5 s."""
    return connection.execute(statement("revoke_api_key"), {"key_id": key_id}).rowcount == 1


def lock_first_key(connection: psycopg.Connection) -> None:
    """Let nobody else look for a first key until the transaction ends: two at once would make two."""
    connection.execute("select pg_advisory_xact_lock(%s)", [_FIRST_KEY])


def has_platform_key(connection: psycopg.Connection) -> bool:
    """Tell whether a platform admin's key is valid."""
    row = connection.execute(
        "select exists (select from api_keys where platform and revoked_at is null"
        " and (expires_at is null or expires_at > noonmark_now()))"
    ).fetchone()
    return bool(row and row[0])
