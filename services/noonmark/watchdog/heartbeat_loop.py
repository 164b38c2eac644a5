"""The dead-man's switch: calls an external URL while every part makes progress, and otherwise does not."""

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
    """Checks all parts every `watchdog_seconds`, shows the results, and beats if nothing is wrong."""

    name = "beat"

    def __init__(self, service: Service, rounds: CheckRounds, *, within_seconds: float) -> None:
        """Create the loop.

        Args:
            service: the service that the loop runs in.
            rounds: runs the checks.
            within_seconds: how long a round of checks may take.
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
        """Run rounds until `stop` is set."""
        while not stop.is_set():
            began = time.monotonic()
            self.run_once()
            self._progress.beat()
            stop.wait(max(0.0, began + self._seconds - time.monotonic()))

    def run_once(self) -> bool:
        """Check, show and beat once; return whether the beat was due."""
        found = self._rounds.run()
        self._show(found)
        if any(found.values()):
            WATCHDOG_BEATS.labels("withheld").inc()
            return False
        self._beat()
        return True

    def _show(self, found: Mapping[str, str]) -> None:
        for part, why in found.items():
            WATCHDOG_PART_OK.labels(part).set(not why)
            # The text after the colon is only for the log, because /readyz needs no credential.
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
            # The external service raises the alarm for the missing beat; here the failure is only shown.
            WATCHDOG_BEATS.labels("failed").inc()
            self._service.health.note("beat", "the URL does not accept the beat: see the log")
            self._log.warning("beat_not_taken", reason=str(error))
            return
        self._service.health.note("beat")
        WATCHDOG_BEATS.labels("sent").inc()
