"""`noonmark api`: build the parts and serve them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg

from noonmark.api.app import build_app
from noonmark.api.creating import Creator
from noonmark.api.database import Database
from noonmark.api.gathering import Gatherer
from noonmark.api.lags import LaneLags
from noonmark.api.live import LiveRuns
from noonmark.api.paging import Cursors
from noonmark.api.parts import Parts
from noonmark.api.server import ServeLoop
from noonmark.api.submitting import Submitter
from noonmark.auth.authenticator import Authenticator
from noonmark.kafka.backlog import LaneBacklogs
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install, await_read, kafka_config
from noonmark.settings import Settings
from noonmark.store.hints import HintSender

CREATING_THREADS: Final = 4
"""Batches of new jobs at once: one is written, the others are in their commit."""

CREATIONS_WAITING: Final = 5_000


def make_parts(settings: Settings, *, shards: int, cursor_key: bytes, application: str = "api") -> Parts:
    """Make what the routes work with."""
    topics = Topics(settings.topic_prefix)
    database = Database(settings.dsn, size=settings.api_connections, application=application)
    submitter = Submitter(topics, HintSender(settings.dsn), shards=shards)
    return Parts(
        settings,
        database,
        submitter,
        Cursors(cursor_key),
        topics,
        LaneBacklogs(kafka_config(settings), topics),
        Gatherer(Creator(database, submitter), threads=CREATING_THREADS, room=CREATIONS_WAITING),
        LiveRuns(kafka_config(settings), topics.lifecycle, most=settings.api_event_streams),
        LaneLags(kafka_config(settings), topics, settings.bound_topics),
    )


def read_cursor_key(connection: psycopg.Connection) -> bytes:
    """Read the key that signs the cursors of this installation."""
    row = connection.execute("select cursor_key from install").fetchone()
    assert row is not None
    return bytes(row[0])


def build(service: Service) -> Sequence[Loop]:
    """Make the API's only loop."""
    settings = service.settings
    install = await_install(service)
    key = await_read(service, read_cursor_key)
    parts = make_parts(settings, shards=install.shards, cursor_key=key)
    authenticator = Authenticator(settings.dsn, settings)
    return [ServeLoop(service, build_app(parts, authenticator), parts, authenticator)]


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("api", settings, build)
