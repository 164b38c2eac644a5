"""The membership of a trigger, dispatcher or observer: renewed about once a second, with its shards."""

from __future__ import annotations

import threading
import time

import psycopg

from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.store.cluster import processes
from noonmark.store.cluster.members import Membership
from noonmark.telemetry.metrics import LEADER_CHANGES, LEADS, OWNED_SHARDS, OWNER_CHANGES, SHARDS

_BEAT_SECONDS = 0.8
_PROGRESS_SECONDS = 2.0
_FAILING_SECONDS = 60.0
"""A loop whose passes fail for less may have met an outage."""


class OwnershipLoop(DatabaseLoop):
    """Renews a membership, and wakes the loops that work on the owned shards when these change.

    It also writes whether all loops of the process make progress, because its heartbeat alone does not show
    that another loop hangs. The watchdog reads this.
    """

    def __init__(
        self, service: Service, membership: Membership, wake: tuple[threading.Event, ...] = ()
    ) -> None:
        """Renew this membership, and set the events in `wake` when the owned shards change."""
        super().__init__(service, f"{membership.role}_ownership")
        self._membership = membership
        self._wake = wake
        self._progress_at = 0.0
        self._beaten_at = time.monotonic()
        SHARDS.labels(membership.role).set(membership.shards)
        OWNER_CHANGES.labels(membership.role)
        LEADER_CHANGES.labels(membership.role)
        service.health.before_scrape(self.show_expired)

    def run_once(self, connection: psycopg.Connection) -> float:
        """Send a heartbeat and update the owned shards."""
        led, began = self._membership.leads, time.monotonic()
        if self._membership.beat(connection):
            OWNER_CHANGES.labels(self._membership.role).inc()
            self._log.info("ownership_changed", owned=self._membership.owned, leads=self._membership.leads)
            for event in self._wake:
                event.set()
        self._beaten_at = began
        if led != self._membership.leads:
            LEADER_CHANGES.labels(self._membership.role).inc()
        LEADS.labels(self._membership.role).set(self._membership.leads)
        OWNED_SHARDS.labels(self._membership.role).set(len(self._membership.owned))
        if time.monotonic() >= self._progress_at:
            self._progress_at = time.monotonic() + _PROGRESS_SECONDS
            processes.note(connection, self._membership.role, self._membership.id, self._stuck())
        return _BEAT_SECONDS

    def show_expired(self) -> None:
        """Show that this process owns nothing, if its membership has expired without a heartbeat.

        Otherwise the alert about shards without an owner would count those of a process that cannot work.
        """
        if time.monotonic() - self._beaten_at > self._membership.timeout_seconds:
            LEADS.labels(self._membership.role).set(0)
            OWNED_SHARDS.labels(self._membership.role).set(0)

    def ending(self, connection: psycopg.Connection) -> None:
        """Release the shards at once."""
        self._membership.leave(connection)
        processes.leave(connection, self._membership.role, self._membership.id)

    def _stuck(self) -> str | None:
        """Return which loops of the process hang, or fail again and again while the database answers us."""
        health = self._service.health
        found = {**health.failing(_FAILING_SECONDS), **health.live()[1].get("stuck", {})}
        return "; ".join(f"{name}: {why}" for name, why in found.items()) or None
