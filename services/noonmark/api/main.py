"""`noonmark api`: builds the parts of the API and serves them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from noonmark.api.app import build_app
from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.creation_together import TogetherCreator
from noonmark.api.backend.database import Database
from noonmark.api.backend.group_commit import MAX_WAITING, GroupCommit
from noonmark.api.backend.lag import LaneLags
from noonmark.api.backend.live_events import LiveRuns
from noonmark.api.backend.log_followers import LogFollowers
from noonmark.api.backend.request_slots import RequestSlots
from noonmark.api.backend.submit import SubmissionAcceptor
from noonmark.api.http.cursors import Cursors
from noonmark.api.server.server import ServeLoop
from noonmark.auth.authenticator import Authenticator
from noonmark.kafka.lag.backlog import LaneBacklogs
from noonmark.kafka.topics import Topics
from noonmark.service.run_traces import RunTraces
from noonmark.service.runner import Loop, Service, run_service
from noonmark.service.startup import await_install, await_read, kafka_config
from noonmark.settings import Settings
from noonmark.store.database.hints import HintSender
from noonmark.store.views.lookups import read_cursor_key

CREATING_THREADS: Final = 4
"""Batches of new jobs at once: one is written, the others wait for their commit."""

SWITCH_SECONDS: Final = 0.0005


def make_parts(
    settings: Settings,
    *,
    shards: int,
    cursor_key: bytes,
    application: str = "api",
    traces: RunTraces | None = None,
) -> ApiContext:
    """Build the parts that the routes share."""
    topics = Topics(settings.topic_prefix)
    database = Database(settings.dsn, size=settings.api_connections, application=application)
    submitter = SubmissionAcceptor(topics, HintSender(settings.dsn), shards=shards, traces=traces)
    return ApiContext(
        settings,
        database,
        submitter,
        Cursors(cursor_key),
        topics,
        LaneBacklogs(kafka_config(settings), topics),
        GroupCommit(TogetherCreator(database, submitter), threads=CREATING_THREADS, max_waiting=MAX_WAITING),
        LiveRuns(kafka_config(settings), topics.lifecycle, most=settings.api_event_streams),
        LaneLags(kafka_config(settings), topics, settings.bound_topics),
        LogFollowers(most=settings.api_event_streams),
        RequestSlots.for_connections(settings.api_connections),
        traces=traces,
    )


def build(service: Service) -> Sequence[Loop]:
    """Build the only loop of the API."""
    settings = service.settings
    install = await_install(service)
    key = await_read(service, read_cursor_key)
    parts = make_parts(settings, shards=install.shards, cursor_key=key, traces=service.traces)
    authenticator = Authenticator(settings.dsn, settings)
    _tune()
    return [ServeLoop(service, build_app(parts, authenticator), parts, authenticator)]


def _tune() -> None:
    """Tune the interpreter for a server: many short-lived values, and two busy threads."""
    # A thread that has received a database result waits this long while another thread computes.
    sys.setswitchinterval(SWITCH_SECONDS)


def run(settings: Settings) -> int:
    """Run the service; return its exit code."""
    return run_service("api", settings, build)
