"""`noonmark worker`: build the parts and run them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from noonmark.core.words import Lane
from noonmark.handlers import HandlerLoadError, Registry, load_handlers
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Loop, Service, StartError, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.events import EventTopics
from noonmark.store.hints import HintSender
from noonmark.worker.engine import Engine
from noonmark.worker.execute import Executors
from noonmark.worker.http import HttpExecutor
from noonmark.worker.isolation import Isolation
from noonmark.worker.lanes import Keyring, LaneReader
from noonmark.worker.lease import Lease
from noonmark.worker.recorder import Recorder

_BUFFER_PER_SLOT = 8


def build(service: Service, path: Path | None = None) -> Sequence[Loop]:
    """Make the worker's parts and tie them together."""
    settings = service.settings
    registry = _handlers(settings, path)
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    events = EventTopics(lifecycle=topics.lifecycle, dead=topics.dead)
    hints = HintSender(settings.dsn)
    lease = Lease(service, settings.pool)
    engine = Engine(service, settings.pool, events, hints, lease, shards=install.shards)
    recorder = Recorder(
        service,
        events,
        hints,
        engine.batches,
        shards=install.shards,
        identity=lambda: lease.identity,
        settled=engine.settled,
    )
    executors = Executors(
        registry,
        HttpExecutor(settings.http_allow_networks),
        Isolation(settings.handlers, path),
        recorder.put,
        threads=settings.worker_slots,
    )
    keyring = Keyring(service, settings.pool)
    buffer = max(1000, settings.worker_slots * _BUFFER_PER_SLOT)
    readers = [
        LaneReader(service, settings.pool, lane, keyring, buffer=buffer, wake=engine.wake) for lane in Lane
    ]
    engine.attach(readers, executors, recorder)
    return [*readers, recorder, engine]


def run(settings: Settings, path: Path | None = None) -> int:
    """Run the service; return its exit code.

    Args:
        settings: read by the command line.
        path: directory to import handler modules from.
    """
    return run_service("worker", settings, lambda service: build(service, path))


def _handlers(settings: Settings, path: Path | None) -> Registry:
    try:
        return load_handlers(settings.handlers, path)
    except HandlerLoadError as error:
        raise StartError(str(error)) from error
