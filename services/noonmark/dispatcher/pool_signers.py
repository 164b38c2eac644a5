"""What the relay knows of a pool: the key that signs, and whether its workers read several runs at once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import psycopg

from noonmark.kafka.messages import Signer
from noonmark.store.cluster.capabilities import reads_batches
from noonmark.store.cluster.pools import read_keys

_FRESH_SECONDS: Final = 2.0


class PoolState(NamedTuple):
    """The signer of a pool, and whether all its live workers read messages with several runs."""

    signer: Signer
    reads_batches: bool


class PoolSigners:
    """Caches the state of each pool, and reads it every two seconds so that changes apply soon."""

    def __init__(self) -> None:
        self._states: dict[str, PoolState] = {}
        self._read_at: dict[str, float] = {}

    def read(self, connection: psycopg.Connection, pools: Iterable[str]) -> Mapping[str, PoolState]:
        """Return the states; a pool without one has no key, so nothing can be sent to it.

        Reads those of the pools that are not cached or were read too long ago.
        """
        now = time.monotonic()
        for pool in pools:
            if now - self._read_at.get(pool, -_FRESH_SECONDS) < _FRESH_SECONDS:
                continue
            keys = read_keys(connection, pool)
            self._read_at[pool] = now
            if keys:
                signer = Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)
                self._states[pool] = PoolState(signer, reads_batches(connection, pool))
            else:
                self._states.pop(pool, None)
        return self._states
