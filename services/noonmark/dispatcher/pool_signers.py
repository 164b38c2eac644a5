"""The signers of the pools that this dispatcher sends to."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psycopg

from noonmark.kafka.messages import Signer
from noonmark.store.cluster.pool_keys import read_keys

_REFRESH_SECONDS = 2.0


class PoolKeys:
    """Remembers signers, and looks again now and then so that a new key is used soon."""

    def __init__(self) -> None:
        self._signers: dict[str, Signer] = {}
        self._read_at: dict[str, float] = {}

    def know(self, connection: psycopg.Connection, pools: Iterable[str]) -> None:
        """Read the keys of pools that are unknown or were read a while ago."""
        now = time.monotonic()
        for pool in pools:
            if now - self._read_at.get(pool, -_REFRESH_SECONDS) < _REFRESH_SECONDS:
                continue
            keys = read_keys(connection, pool)
            self._read_at[pool] = now
            if keys:
                self._signers[pool] = Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)
            else:
                self._signers.pop(pool, None)

    def get(self, pool: str) -> Signer | None:
        """Return the signer of a pool; None where it has no key and nothing can be sent to it."""
        return self._signers.get(pool)
