"""Services that are killed."""

from __future__ import annotations

from tests.support.alert_states.ground import Ground
from tests.support.alert_states.in_use import await_well, watched
from tests.support.publish import Load
from tests.support.recordings import Recording


def trigger_and_dispatcher_killed(ground: Ground) -> Recording:
    """First the watchdog's URL does not answer, then trigger and dispatcher die."""
    place = watched(ground)
    noonmark, beats = place.noonmark, "watchdog_beats_total"
    place.remove("watchdog")
    noonmark.start(
        "watchdog", watchdog_seconds="1", watchdog_stale_seconds="10", watchdog_url="http://127.0.0.1:9/"
    )
    place.scrape()
    for _ in range(8):
        before = place.metric("watchdog", beats, result="failed")
        noonmark.wait(
            lambda before=before: place.metric("watchdog", beats, result="failed") > before, "a beat to fail"
        )
        place.scrape()
    place.kill("trigger", "dispatcher")
    noonmark.wait(
        lambda: (
            not any(
                place.metric("watchdog", "watchdog_part_ok", part=part) for part in ("trigger", "dispatcher")
            )
        ),
        "the watchdog to notice",
    )
    place.scrape(8)
    return place.recording


def services_killed(ground: Ground) -> Recording:
    """Everything dies but trigger and dispatcher."""
    place = watched(ground)
    await_well(place)
    noonmark = place.noonmark
    place.scrape(2)
    place.kill("worker")
    load = Load()
    load.now(6, priority="high")
    noonmark.take_in(load)
    place.kill("intake", "api", "observer", "watchdog")
    noonmark.wait(
        lambda: place.metric("dispatcher", "start_backlog_seconds", lane="high") > 6, "an old backlog"
    )
    noonmark.wait(lambda: place.metric("trigger", "workers", state="live") == 0, "no worker to be seen")
    place.scrape(12)
    return place.recording
