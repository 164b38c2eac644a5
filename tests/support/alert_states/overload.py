"""Handlers that hold every slot while more work arrives."""

from __future__ import annotations

from tests.support.alert_states.ground import Ground, Installation
from tests.support.publish import Load
from tests.support.recordings import Recording

SLOTS = 10


def _waiting(place: Installation) -> float:
    return place.metric("dispatcher", "start_backlog", lane="high")


def handlers_stuck(ground: Ground) -> Recording:
    """Handlers hold every slot for a minute, while runs arrive; then they end, and all of it starts late."""
    place, gate = ground.installation(), ground.folder / "gate"
    noonmark = place.noonmark
    place.start(worker_slots=str(SLOTS))
    stuck = Load()
    stuck.now(3 * SLOTS, "chaos.gate", payload={"gate": str(gate)})
    noonmark.publish(stuck)
    noonmark.wait(lambda: len(noonmark.calls(stuck.namespace)) == SLOTS, "every slot to be taken")
    late = Load()
    late.now(300)
    noonmark.publish(late)
    place.scrape_until(lambda: _waiting(place) > 100, "a backlog")
    while place.metric("dispatcher", "start_backlog_seconds", lane="high") < 65:
        before, begun = _waiting(place), len(late.events)
        late.now(60)
        noonmark.publish(late, events=late.events[begun:])
        noonmark.wait(lambda before=before: _waiting(place) > before, "the backlog to grow")
        place.scrape(4)
    gate.touch()
    for load in (stuck, late):
        noonmark.settle(load, 120)
    place.scrape(18)
    return place.recording
