"""A healthy installation, and one whose jobs and messages are bad."""

from __future__ import annotations

import httpx
from tests.acceptance.test_forged_messages import message, send, signer
from tests.support.alert_states.ground import Ground, Installation
from tests.support.publish import Load
from tests.support.recordings import Recording

from noonmark.core.states import Lane
from noonmark.kafka.messages import Signer

PARTS = ("postgres", "kafka", "trigger", "dispatcher", "observer")


def watched(ground: Ground) -> Installation:
    """An installation of all services."""
    place = ground.installation()
    noonmark = place.noonmark
    place.start("observer")
    noonmark.start("watchdog", watchdog_seconds="1", watchdog_stale_seconds="30")
    noonmark.start("api", api_port="0")
    return place


def await_well(place: Installation) -> None:
    """Wait until the watchdog finds every part well; on a busy machine it is right not to for a while."""
    place.noonmark.wait(
        lambda: place.metric("watchdog", "watchdog_part_ok") == len(PARTS), "every part to make progress", 120
    )


def healthy(ground: Ground) -> Recording:
    """Everything works."""
    place = watched(ground)
    api = place.noonmark.node("api")
    for _ in range(15):
        load = Load()
        load.now(6)
        place.run(load)
        assert httpx.get(f"{api.api_url}/openapi.json", timeout=30).status_code == 200
        await_well(place)
        place.scrape()
    return place.recording


def jobs_and_messages_bad(ground: Ground) -> Recording:
    """Handlers fail, submissions are invalid, and something writes nonsense to a run topic."""
    place = watched(ground)
    await_well(place)
    place.scrape()
    send(place.noonmark, Lane.NORMAL, *(b"no json %d" % number for number in range(20)))
    rejected = "message_rejected_total"
    place.noonmark.wait(lambda: place.metric("worker", rejected, reason="malformed") == 20, "refusals")
    for _ in range(18):
        load = Load()
        load.now(
            *(40, "chaos.flaky"),
            ends=("dead",),
            payload={"fails": 9},
            retry_delay_seconds=0,
            max_retries=2,
        )
        load.invalid(10)
        place.run(load)
        place.scrape()
    return place.recording


def messages_forged(ground: Ground) -> Recording:
    """Someone who does not have the key of the pool writes run messages."""
    place = ground.installation()
    place.start()
    place.scrape(2)
    good = signer(place.noonmark)
    stranger = Signer({good.current: b"x" * 32}, good.current)
    send(place.noonmark, Lane.NORMAL, *(message(stranger) for _ in range(3)))
    rejected = "message_rejected_total"
    place.scrape_until(
        lambda: place.metric("worker", rejected, reason="bad_signature") == 3, "the forged ones to be counted"
    )
    place.scrape(2)
    return place.recording
