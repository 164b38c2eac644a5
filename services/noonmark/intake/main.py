"""`noonmark intake`: build the loops and run them."""

from __future__ import annotations

from collections.abc import Sequence

from noonmark.intake.clock import DatabaseClock
from noonmark.intake.reading import ReadLoop
from noonmark.intake.writing import WriteLoop
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.hints import HintSender


def build(service: Service) -> Sequence[Loop]:
    """Make the intake's loops: one reads and checks while the other writes."""
    settings = service.settings
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    clock = DatabaseClock()
    writer = WriteLoop(service, topics, clock, HintSender(settings.dsn), shards=install.shards)
    return [writer, ReadLoop(service, topics, writer.handover, clock)]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("intake", settings, build)
