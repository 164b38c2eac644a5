"""Whether this trigger plans with the zone data that are active: with others it claims no zoned job."""

from __future__ import annotations

import time
from typing import Final

import psycopg
from structlog.typing import FilteringBoundLogger

from noonmark.store.schedules.time_facts import active_zone_data
from noonmark.telemetry.metrics import ZONE_DATA_INFO

_LOOK_SECONDS: Final = 1.0


class ZoneWatch:
    """Compares the active version with this process's own, now and then, and tells of changes.

    It saves vain claims and tells the operator; what keeps a claim right is the claim's own look.
    """

    def __init__(self, version: str, log: FilteringBoundLogger) -> None:
        """Take the version that this process plans with."""
        self._version = version
        self._log = log
        self._active: str | None = version
        self._check_at = 0.0
        self._show()

    def agrees(self, connection: psycopg.Connection) -> bool:
        """Whether the versions were the same at the last look, at most a second ago."""
        now = time.monotonic()
        if now >= self._check_at:
            self._check_at = now + _LOOK_SECONDS
            active = active_zone_data(connection)
            if active != self._active:
                self._active = active
                self._log_mismatch()
        return self._active == self._version

    def _log_mismatch(self) -> None:
        self._show()
        if self._active == self._version:
            self._log.info("zone_data_active", version=self._version)
            return
        self._log.warning(
            "zone_data_differ",
            version=self._version,
            active=self._active,
            effect="jobs with a time zone are left to triggers with the active version",
            hint="run `noonmark zones activate` with this version, or start the trigger with the active one",
        )

    def _show(self) -> None:
        active = "yes" if self._active == self._version else "no"
        ZONE_DATA_INFO.replace({(self._version, active): 1})
