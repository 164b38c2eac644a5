"""`noonmark watchdog`: builds the loop and runs it."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.service.runner import Loop, Service, run_service
from noonmark.settings import Settings
from noonmark.watchdog.check_rounds import CheckRounds
from noonmark.watchdog.checks import make_checks
from noonmark.watchdog.heartbeat_loop import BeatLoop

_LONGEST_ROUND_SECONDS = 10.0


def build(service: Service) -> Sequence[Loop]:
    """Create the watchdog's loop. It waits for no server: one that is down at the start is to be reported."""
    settings = service.settings
    within = min(_LONGEST_ROUND_SECONDS, max(1.0, settings.watchdog_seconds))
    if not settings.watchdog_url.get_secret_value():
        service.log.warning(
            "beats_reach_nobody",
            hint="NOONMARK_WATCHDOG_URL is not set: only metrics and /readyz show what is wrong",
        )
    rounds = CheckRounds(make_checks(settings, within_seconds=within), within_seconds=within)
    return [BeatLoop(service, rounds, within_seconds=within)]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("watchdog", settings, build)
