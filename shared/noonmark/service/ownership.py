"""The beat of a trigger or dispatcher: who owns which shard, looked at once a second."""

from __future__ import annotations

import threading

import psycopg

from noonmark.service.dbloop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.members import Membership
from noonmark.telemetry.metrics import OWNED_SHARDS, OWNER_CHANGES

_BEAT_SECONDS = 0.8


class OwnershipLoop(DatabaseLoop):
    """Renews a membership and wakes those who work on what it owns."""

    def __init__(
        self, service: Service, membership: Membership, wake: tuple[threading.Event, ...] = ()
    ) -> None:
        """Take the membership to keep alive, and the events to set when what it owns has changed."""
        super().__init__(service, f"{membership.role}_ownership")
        self._membership = membership
        self._wake = wake

    def run_once(self, connection: psycopg.Connection) -> float:
        """Beat, and share out anew."""
        if self._membership.beat(connection):
            OWNER_CHANGES.labels(self._membership.role).inc()
            self._log.info("ownership_changed", owned=self._membership.owned, leads=self._membership.leads)
            for event in self._wake:
                event.set()
        OWNED_SHARDS.labels(self._membership.role).set(len(self._membership.owned))
        return _BEAT_SECONDS

    def ending(self, connection: psycopg.Connection) -> None:
        """Hand the shards over at once."""
        self._membership.leave(connection)
