"""Ownership of shards: heartbeats in Postgres and rendezvous hashing, without session locks.

Ownership only saves work. Two owners of a shard for a moment do no harm: claims skip each other's
locks, the run key turns a double insert into nothing, and the fence refuses a message sent twice.
"""

from __future__ import annotations

import hashlib
import os
import socket
from uuid import UUID

import psycopg

from noonmark.core.ids import uuid7
from noonmark.store.cluster.capabilities import MEMBER_CAPABILITIES, release
from noonmark.store.database.statements import statement


def owner_of(shard: int, members: list[UUID]) -> UUID | None:
    """Return the member with the highest hash for a shard; the same in every process and on every host."""
    return max(
        members,
        key=lambda m: hashlib.blake2b(m.bytes + shard.to_bytes(4, "big"), digest_size=8).digest(),
        default=None,
    )


class Membership:
    """The membership of one process in its role, and the shards that it owns."""

    def __init__(self, role: str, *, shards: int, timeout_seconds: float) -> None:
        """Create a member; it owns nothing before its first `beat`.

        Args:
            role: `trigger` or `dispatcher`.
            shards: the number of shards (or slices) to distribute.
            timeout_seconds: a member without a heartbeat for longer loses its shards.
        """
        self.id = uuid7()
        self.role = role
        self.owned: tuple[int, ...] = ()
        self.leads = False
        self.shards = shards
        self.timeout_seconds = timeout_seconds
        self._release = release()
        self._capabilities = list(MEMBER_CAPABILITIES.get(role, ()))

    def beat(self, connection: psycopg.Connection) -> bool:
        """Renew the membership and compute the owned shards; return whether they have changed."""
        rows = connection.execute(
            statement("renew_member"),
            {
                "role": self.role,
                "id": self.id,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "release": self._release,
                "capabilities": self._capabilities,
                "timeout_seconds": self.timeout_seconds,
            },
        ).fetchall()
        members: list[UUID] = [row[0] for row in rows]
        owned = tuple(shard for shard in range(self.shards) if owner_of(shard, members) == self.id)
        self.leads = owner_of(-1 & 0xFFFFFFFF, members) == self.id
        changed = owned != self.owned
        self.owned = owned
        return changed

    def leave(self, connection: psycopg.Connection) -> None:
        """Give up all shards at once."""
        connection.execute(statement("delete_member"), {"role": self.role, "id": self.id})
        self.owned = ()
        self.leads = False
