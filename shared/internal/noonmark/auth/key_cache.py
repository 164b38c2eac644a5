"""API keys as this process knows them, a few seconds at a time."""

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
"""How long a key is believed without another look: with the time that the look takes, less than 5 s."""

NOTE_SECONDS: Final = 5.0
"""Uses are written down at most so often, all in one statement, and never per request."""

_MOST: Final = 10_000
"""Keys that are remembered, and as many ids that are none: whoever guesses must not fill the memory."""

_TIMEOUT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, repr=False)
class KnownKey:
    """A key as it was read.

    Attributes:
        key_id: its id.
        principal: whose it is.
        secret_hash: SHA-256 of the secret.
        signing_secret: what its events are signed with; None: it signs none.
        revoked: it was ended.
        ends_at: on the cache's clock, by the time that the database had left for it; None: never.
        read_at: on the same clock, just before it was read.
    """

    key_id: str
    principal: Principal
    secret_hash: bytes
    signing_secret: bytes | None
    revoked: bool
    ends_at: float | None
    read_at: float


class KeyCache:
    """Reads keys on a connection of its own, one statement for all that are stale. Thread-safe."""

    def __init__(
        self,
        dsn: str,
        *,
        keep_seconds: float = KEEP_SECONDS,
        most: int = _MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is read yet.

        Args:
            dsn: libpq URL of the database, as its owner.
            keep_seconds: how long a key is believed without another look.
            most: keys that are remembered, and ids that are none.
            clock: of this process, in seconds.
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
        """Return a key that was read a moment ago, ended ones too, without waiting for anything."""
        key = self._known.get(key_id)
        if key is None or self._clock() - key.read_at >= self._keep:
            return None
        return key

    def find(self, key_id: str) -> KnownKey | None:
        """Return a key, ended ones too; None where there is none of this id.

        Raises:
            psycopg.OperationalError: the database is away.
        """
        if (key := self.recall(key_id)) is not None:
            return key
        if self._known_to_be_none(key_id) or not is_key_id(key_id):
            return None
        with self._lock:
            # Another thread may have read it while this one waited.
            if (key := self.recall(key_id)) is not None or self._known_to_be_none(key_id):
                return key
            self._read(key_id)
            return self._known.get(key_id)

    def expired(self, key: KnownKey) -> bool:
        """Tell whether the time of a key is over, by the database's clock."""
        return key.ends_at is not None and self._clock() >= key.ends_at

    def valid(self, key: KnownKey) -> bool:
        """Tell whether a key is neither revoked nor expired."""
        return not key.revoked and not self.expired(key)

    def remember_use(self, key: KnownKey) -> None:
        """Keep in mind that a key was used, without waiting for anything."""
        self._used.add(key.key_id)

    def note_uses(self) -> None:
        """Write down which keys were used, if it was not done a moment ago. Without the database, later."""
        now = self._clock()
        if not self._used or (self._noted_at is not None and now - self._noted_at < NOTE_SECONDS):
            return
        with self._lock:
            self._note(now)

    def close(self) -> None:
        """Write down the last uses and close the connection."""
        with self._lock:
            self._note(self._clock())
            self._disconnect()

    def _known_to_be_none(self, key_id: str) -> bool:
        read_at = self._unknown.get(key_id)
        return read_at is not None and self._clock() - read_at < self._keep

    def _read(self, key_id: str) -> None:
        """Read a key, and with it the others that were used since and are stale by now."""
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
            # A request must not fail for it; the keys are still in use, or have just been.
            self._used |= used

    def _on_connection(self, work: Callable[[psycopg.Connection], T]) -> T:
        """Do one statement, once more on a new connection where the old one had died."""
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
    """Put an entry in; where there are too many, the one that was read longest ago goes."""
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
    """Return whose a key is. What is stored and means nothing to this release grants nothing."""
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
