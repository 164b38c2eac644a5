"""The dead-man's switch: calls an address outside while every part makes progress, and falls silent else."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from noonmark.alerting.http_post import DeliveryRefusedError, Poster
from noonmark.service.runner import Service
from noonmark.telemetry.metrics import WATCHDOG_BEATS, WATCHDOG_PART_OK
from noonmark.watchdog.check_rounds import CheckRounds

_CALL_SECONDS: Final = 10.0


class BeatLoop:
    """Every so often asks all parts, shows what they said, and beats if nothing is wrong."""

    name = "beat"

    def __init__(self, service: Service, rounds: CheckRounds, *, within_seconds: float) -> None:
        """Make the loop.

        Args:
            service: the process.
            rounds: what asks the parts.
            within_seconds: how long a round may take.
        """
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._rounds = rounds
        self._url = service.settings.watchdog_url.get_secret_value()
        self._seconds = service.settings.watchdog_seconds
        self._poster = Poster(_CALL_SECONDS)
        most = self._seconds + within_seconds + 4 * _CALL_SECONDS
        self._progress = service.health.progress(self.name, most + 10.0)
        self._wrong: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Round after round until `stop` is set."""
        while not stop.is_set():
            began = time.monotonic()
            self.run_once()
            self._progress.beat()
            stop.wait(max(0.0, began + self._seconds - time.monotonic()))

    def run_once(self) -> bool:
        """Ask, show and beat once; return whether the beat was due."""
        found = self._rounds.ask()
        self._show(found)
        if any(found.values()):
            WATCHDOG_BEATS.labels("withheld").inc()
            return False
        self._beat()
        return True

    def _show(self, found: Mapping[str, str]) -> None:
        for part, why in found.items():
            WATCHDOG_PART_OK.labels(part).set(not why)
            # What follows the colon is for the log: /readyz is read without a credential.
            self._service.health.note(part, why.partition(": ")[0])
        wrong = {part: why for part, why in found.items() if why}
        if wrong and set(wrong) != set(self._wrong):
            self._log.error("beats_withheld", **wrong)
        elif self._wrong and not wrong:
            self._log.info("beats_go_on", after=sorted(self._wrong))
        self._wrong = wrong

    def _beat(self) -> None:
        if not self._url:
            WATCHDOG_BEATS.labels("no_url").inc()
            return
        try:
            self._poster.call(self._url)
        except DeliveryRefusedError as error:
            # Whoever waits for it outside will say so; here it is only shown.
            WATCHDOG_BEATS.labels("failed").inc()
            self._service.health.note("beat", "the address outside does not take it: see the log")
            self._log.warning("beat_not_taken", reason=str(error))
            return
        self._service.health.note("beat")
        WATCHDOG_BEATS.labels("sent").inc()
