"""Processes that stand still for a while, as in a virtual machine that is moved, and go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.alert_states.ground import Ground, Installation
from tests.support.publish import Load
from tests.support.recordings import Recording

RUNS = 120
PAUSES = 7


def processes_paused(ground: Ground) -> Recording:
    """A worker with runs in flight stands still again and again, one of two triggers twice as often."""
    place = ground.installation()
    place.start("trigger")
    place.scrape(2)
    for number in range(PAUSES):
        _pause(place, ground.folder / f"gate-{number}")
        with _paused_trigger(place):
            pass
        _await_measured(place)
        place.scrape(4)
    return place.recording


def _pause(place: Installation, gate: Path) -> None:
    noonmark = place.noonmark
    worker = noonmark.node("worker")
    load = Load()
    load.now(RUNS, "chaos.blocking_gate", payload={"gate": str(gate)}, max_retries=9)
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"running": RUNS}, "every run to begin")
    worker.pause()
    lost = "select count(*) from runs where namespace = %s and losses = 1"
    with _paused_trigger(place):
        noonmark.wait(lambda: noonmark.value(lost, load.namespace) == RUNS, "its runs to be lost")
    gate.touch()
    worker.resume()
    noonmark.settle(load, 120)
    noonmark.wait(worker.ready, "the worker to have a lease again")


@contextmanager
def _paused_trigger(place: Installation) -> Iterator[None]:
    """Let the newest trigger stand still until the other one has all shards, and the block is over."""
    other, paused = (node for node in place.noonmark.nodes if node.service == "trigger")

    def shares() -> tuple[float, float]:
        return tuple(node.metric("noonmark_owned_shards", role="trigger") for node in (other, paused))

    before = shares()
    paused.pause()
    place.noonmark.wait(
        lambda: other.metric("noonmark_owned_shards", role="trigger") == sum(before), "shards to move"
    )
    yield
    paused.resume()
    place.noonmark.wait(lambda: shares() == before, "shards to move back")


def _await_measured(place: Installation) -> None:
    """Wait until the services have measured that the pause is over; they do so every few seconds."""
    triggers = [node for node in place.noonmark.nodes if node.service == "trigger"]

    def is_over() -> bool:
        live = max(node.metric("noonmark_workers", state="live") for node in triggers)
        return live == 1 and not place.metric("dispatcher", "start_backlog")

    place.noonmark.wait(is_over, "the pause to be over")
