"""`noonmark dispatcher`: build the loops and run them."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.dispatcher.app_outbox import AppOutboxLoop
from noonmark.dispatcher.event_relay import EventRelay
from noonmark.dispatcher.lag_loop import LagLoop
from noonmark.dispatcher.run_relay import RunRelay
from noonmark.kafka.topics import Topics
from noonmark.outbox.bindings import parse_bindings
from noonmark.service.ownership import OwnershipLoop
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import OUTBOX_CHANNEL, HintListener, HintSender


def build(service: Service) -> Sequence[Loop]:
    """Create the dispatcher's loops."""
    settings = service.settings
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    membership = Membership(
        "dispatcher", shards=install.shards, timeout_seconds=settings.owner_timeout_seconds
    )
    hints = HintSender(settings.dsn)
    runs = RunRelay(service, membership, topics, hints, shards=install.shards)
    events = EventRelay(service, membership)
    return [
        OwnershipLoop(service, membership, (runs.wake, events.wake)),
        HintListener(settings.dsn, {OUTBOX_CHANNEL: runs.wake}),
        runs,
        events,
        LagLoop(service, membership, topics),
        *app_outboxes(service, topics, hints, shards=install.shards),
    ]


def app_outboxes(service: Service, topics: Topics, hints: HintSender, *, shards: int) -> list[Loop]:
    """Create a loop for each application's outbox: every dispatcher relays all of them, by turns."""
    bindings = parse_bindings(service.settings.app_outboxes.get_secret_value())
    if not bindings:
        return []
    return [AppOutboxLoop(service, bound, topics, hints, shards=shards) for bound in bindings]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("dispatcher", settings, build)
