"""`noonmark intake`: builds the loops and runs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from noonmark.auth.authenticator import Authenticator
from noonmark.core.access.topic_bindings import read_bindings
from noonmark.intake.authorization import Authorizer
from noonmark.intake.read_loop import ReadLoop
from noonmark.intake.write_loop import WriteLoop
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Loop, Service, StartError, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.database.hints import HintSender
from noonmark.store.schedules.time_facts import DatabaseClock

SWITCH_SECONDS: Final = 0.0005
"""How long the writer waits for the interpreter after each answer of the database if the reader computes."""


def build(service: Service) -> Sequence[Loop]:
    """Create the intake's loops: one reads and checks while the other writes."""
    settings = service.settings
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    bound = read_bindings(settings.bound_topics)
    try:
        further = topics.further_submissions(bound)
    except ValueError as error:
        raise StartError(f"NOONMARK_BOUND_TOPICS: {error}") from error
    clock, authorizer = DatabaseClock(), Authorizer(bound, Authenticator(settings.dsn, settings))
    writer = WriteLoop(service, topics, clock, HintSender(settings.dsn), authorizer, shards=install.shards)
    reader = ReadLoop(service, topics, writer.handover, clock, authorizer, further=further)
    sys.setswitchinterval(SWITCH_SECONDS)
    return [writer, reader]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("intake", settings, build)
