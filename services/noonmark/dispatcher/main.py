"""`noonmark dispatcher`: build the loops and run them."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.dispatcher.lag import LagLoop
from noonmark.dispatcher.relay import RelayLoop
from noonmark.kafka.topics import Topics
from noonmark.service.ownership import OwnershipLoop
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.hints import OUTBOX_CHANNEL, HintListener
from noonmark.store.members import Membership


def build(service: Service) -> Sequence[Loop]:
    """Make the dispatcher's loops."""
    settings = service.settings
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    membership = Membership(
        "dispatcher", shards=install.shards, timeout_seconds=settings.owner_timeout_seconds
    )
    relay = RelayLoop(service, membership, topics)
    return [
        OwnershipLoop(service, membership, (relay.wake,)),
        HintListener(settings.dsn, {OUTBOX_CHANNEL: relay.wake}),
        relay,
        LagLoop(service, membership, topics),
    ]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("dispatcher", settings, build)
