"""A cache of API keys, whose entries are valid for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeVar

import psycopg

from noonmark.auth.tokens import is_key_id
from noonmark.core.access.roles import Permission, Principal, Role
from noonmark.store.access.api_keys import StoredKey, mark_used, read_keys
from noonmark.store.database.connect import connect

T = TypeVar("T")
V = TypeVar("V")

KEEP_SECONDS: Final = 4.0
"""How long a cached key is valid; together with the time of a query, this is less than 5 s."""

NOTE_SECONDS: Final = 5.0
"""Minimum time between two writes of the keys' uses, which are written in one statement for all keys."""

_MOST: Final = 10_000
"""Maximum number of cached keys, and of cached unknown ids, so that guessing ids cannot fill the memory."""

_TIMEOUT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class KnownKey:
    """A cached key.

    Attributes:
        key_id: id of the key.
        principal: the principal it authenticates.
        secret_hash: SHA-256 of the secret.
        signing_secret: the secret that signs events; None if it cannot sign.
        revoked: whether it is revoked.
        ends_at: when it expires on the cache's clock, by the time left in the database; None for never.
        read_at: time just before it was read, on the same clock.
    """

    key_id: str
    principal: Principal
    secret_hash: bytes
    signing_secret: bytes | None
    revoked: bool
    ends_at: float | None
    read_at: float


class KeyCache:
    """Reads keys on its own connection, with one statement for all stale ones. Thread-safe."""

    def __init__(
        self,
        dsn: str,
        *,
        keep_seconds: float = KEEP_SECONDS,
        most: int = _MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty cache; nothing is read yet.

        Args:
            dsn: libpq URL of the database, as its owner.
            keep_seconds: how long a cached key is valid.
            most: maximum number of cached keys, and of cached unknown ids.
            clock: monotonic clock, in seconds.
        """
        self._dsn = dsn
        self._keep = keep_seconds
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._connection: psycopg.Connection | None = None
        self._known: dict[str, KnownKey] = {}
        self._unknown: dict[str, float] = {}
        self._used: set[str] = set()
        self._noted_at: float | None = None

    def recall(self, key_id: str) -> KnownKey | None:
        """Return a cached key, even if it is revoked or expired, without waiting."""
        key = self._known.get(key_id)
        if key is None or self._clock() - key.read_at >= self._keep:
            return None
        return key

    def find(self, key_id: str) -> KnownKey | None:
        """Return a key, even if it is revoked or expired; None if the id is unknown.

        Raises:
            psycopg.OperationalError: the database is unavailable.
        """
        if (key := self.recall(key_id)) is not None:
            return key
        if self._is_unknown(key_id) or not is_key_id(key_id):
            return None
        with self._lock:
            # Another thread may have read it while this one waited.
            if (key := self.recall(key_id)) is not None or self._is_unknown(key_id):
                return key
            self._read(key_id)
            return self._known.get(key_id)

    def expired(self, key: KnownKey) -> bool:
        """Return whether a key has expired, by the database's clock."""
        return key.ends_at is not None and self._clock() >= key.ends_at

    def valid(self, key: KnownKey) -> bool:
        """Return whether a key is neither revoked nor expired."""
        return not key.revoked and not self.expired(key)

    def remember_use(self, key: KnownKey) -> None:
        """Record in memory that a key was used, without waiting."""
        self._used.add(key.key_id)

    def note_uses(self) -> None:
        """Write the uses of keys to the database, unless that was done a moment ago. Errors are retried."""
        now = self._clock()
        if not self._used or (self._noted_at is not None and now - self._noted_at < NOTE_SECONDS):
            return
        with self._lock:
            self._note(now)

    def close(self) -> None:
        """Write the last uses and close the connection."""
        with self._lock:
            self._note(self._clock())
            self._disconnect()

    def _is_unknown(self, key_id: str) -> bool:
        read_at = self._unknown.get(key_id)
        return read_at is not None and self._clock() - read_at < self._keep

    def _read(self, key_id: str) -> None:
        """Read a key, together with all stale keys that were used since the last write."""
        now = self._clock()
        stale = [
            name
            for name in list(self._used)
            if (key := self._known.get(name)) is not None and now - key.read_at >= self._keep
        ]
        wanted = sorted({key_id, *stale})
        rows = {row.key_id: row for row in self._on_connection(lambda db: read_keys(db, wanted))}
        for name in wanted:
            row = rows.get(name)
            if row is None:
                self._known.pop(name, None)
                _put(self._unknown, name, now, self._most)
            else:
                self._unknown.pop(name, None)
                _put(self._known, name, _as_known(row, now), self._most)

    def _note(self, now: float) -> None:
        used, self._used = self._used, set()
        if not used:
            return
        self._noted_at = now
        try:
            self._on_connection(lambda db: mark_used(db, sorted(used)))
        except psycopg.Error:
            # A request must not fail because of this. The uses are written later.
            self._used |= used

    def _on_connection(self, work: Callable[[psycopg.Connection], T]) -> T:
        """Run one statement; retry once on a new connection if the old one was broken."""
        fresh = self._connection is None
        try:
            return work(self._connected())
        except psycopg.OperationalError:
            self._disconnect()
            if fresh:
                raise
        try:
            return work(self._connected())
        except psycopg.OperationalError:
            self._disconnect()
            raise

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = connect(
                self._dsn,
                application="auth",
                autocommit=True,
                statement_timeout_seconds=_TIMEOUT_SECONDS,
            )
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _put(cache: dict[str, V], name: str, value: V, most: int) -> None:
    """Add an entry; if the cache is full, remove the one that was read longest ago."""
    cache.pop(name, None)
    if len(cache) >= most:
        del cache[next(iter(cache))]
    cache[name] = value


def _as_known(row: StoredKey, now: float) -> KnownKey:
    return KnownKey(
        key_id=row.key_id,
        principal=principal_of(row),
        secret_hash=row.secret_hash,
        signing_secret=row.signing_secret,
        revoked=row.revoked,
        ends_at=None if row.seconds_left is None else now + row.seconds_left,
        read_at=now,
    )


def principal_of(row: StoredKey) -> Principal:
    """Return the principal of a key. Roles and scopes that this release does not know grant nothing."""
    roles = {role.label: role for role in Role}
    known = {permission.value: permission for permission in Permission}
    return Principal(
        id=f"key:{row.key_id}",
        name=row.name,
        grants={place: roles[role] for place, role in row.grants.items() if role in roles},
        platform=row.platform,
        scopes=None if row.scopes is None else frozenset(known[s] for s in row.scopes if s in known),
        rate_per_minute=row.rate_per_minute,
        expires_at=row.expires_at,
    )
