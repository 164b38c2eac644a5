"""Whether this trigger plans with the active zone data: if not, it claims no job with a time zone."""

from __future__ import annotations

import time
from typing import Final

import psycopg
from structlog.typing import FilteringBoundLogger

from noonmark.store.schedules.time_facts import active_zone_data
from noonmark.telemetry.metrics import ZONE_DATA_INFO

_CHECK_SECONDS: Final = 1.0


class ZoneWatch:
    """Compares the active version with this process's own now and then, and logs changes.

    It saves useless claims and informs the operator; the claim itself checks the version again.
    """

    def __init__(self, version: str, log: FilteringBoundLogger) -> None:
        """Set the version that this process plans with."""
        self._version = version
        self._log = log
        self._active: str | None = version
        self._check_at = 0.0
        self._show()

    def agrees(self, connection: psycopg.Connection) -> bool:
        """Whether the versions were equal at the last check, at most a second ago."""
        now = time.monotonic()
        if now >= self._check_at:
            self._check_at = now + _CHECK_SECONDS
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
