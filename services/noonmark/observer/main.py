"""`noonmark observer`: builds the loops and runs them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import psycopg

from noonmark.kafka.topics import Topics
from noonmark.observer.delivery_loop import delivery_loops
from noonmark.observer.stream import StreamLoop
from noonmark.observer.watch_loop import WatchLoop
from noonmark.service.ownership import OwnershipLoop
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install, await_read
from noonmark.settings import Settings
from noonmark.store.alerts import statistics
from noonmark.store.cluster.members import Membership
from noonmark.store.database.hints import HintSender


def build(service: Service, *, rebuild: bool = False) -> Sequence[Loop]:
    """Create the observer's loops."""
    settings = service.settings
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    if rebuild:
        await_read(service, _forget)
        service.log.info("observations_forgotten", topic=topics.lifecycle)
    # One shard: the observer that owns it runs the alert checks. Kafka distributes the outcomes.
    membership = Membership("observer", shards=1, timeout_seconds=settings.owner_timeout_seconds)
    watch = WatchLoop(service, membership, topics, HintSender(settings.dsn), shards=install.shards)
    return [
        OwnershipLoop(service, membership, (watch.wake,)),
        StreamLoop(service, topics),
        watch,
        *delivery_loops(service),
    ]


def _forget(connection: psycopg.Connection) -> None:
    statistics.forget(connection)


def run(settings: Settings, *, rebuild: bool = False) -> int:
    """Run the service; return its exit code.

    Args:
        settings: the settings of the process.
        rebuild: whether to delete the statistics first and rebuild them from the topic.
    """
    return run_service("observer", settings, partial(build, rebuild=rebuild))
