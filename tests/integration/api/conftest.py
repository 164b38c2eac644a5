"""The API in this process, over an emptied database, with keys of any role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx
import psycopg
import pytest
from anyio.from_thread import start_blocking_portal
from tests.integration.api.scene import Scene, plant_keys
from tests.integration.store.world import World, open_world
from tests.support.asgi import Caller, calling
from tests.support.keys import make_token

from noonmark.api.app import build_app
from noonmark.api.backend.context import ApiContext
from noonmark.api.main import make_parts, read_cursor_key
from noonmark.auth.authenticator import Authenticator
from noonmark.cli.connections.in_process import InProcessTransport
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import PartitionCounts, Topics
from noonmark.settings import Settings

pytestmark = pytest.mark.postgres

COUNTS = PartitionCounts(submissions=1, submissions_bulk=1, runs=1, lifecycle=1)


@pytest.fixture
def settings(
    emptied_database: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Settings:
    """Of the API; with a Kafka that answers only for tests that are marked `kafka`."""
    monkeypatch.setenv("NOONMARK_DATABASE_URL", emptied_database)
    if request.node.get_closest_marker("kafka"):
        bootstrap = request.getfixturevalue("kafka_server").bootstrap
        topics = Topics(request.getfixturevalue("topic_prefix"))
        ensure_topics(
            KafkaConfig(bootstrap, topic_prefix=topics.prefix), topics.topic_specs(["default"], counts=COUNTS)
        )
        monkeypatch.setenv("NOONMARK_KAFKA_BOOTSTRAP", bootstrap)
        monkeypatch.setenv("NOONMARK_TOPIC_PREFIX", topics.prefix)
    return Settings.load(api_connections=4)


@pytest.fixture
def database(emptied_database: str) -> Iterator[psycopg.Connection]:
    """A connection as the owner, on autocommit, to plant and to look."""
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    """The same database, with what plants jobs and runs in it; its namespace is `tests`."""
    with open_world(emptied_database) as opened:
        yield opened


@pytest.fixture
def parts(settings: Settings, database: psycopg.Connection) -> Iterator[ApiContext]:
    row = database.execute("select shards from install").fetchone()
    assert row is not None
    made = make_parts(settings, shards=row[0], cursor_key=read_cursor_key(database))
    yield made
    made.close()


@pytest.fixture
def server(parts: ApiContext, settings: Settings) -> Iterator[httpx.Client]:
    """The whole application behind its gate; without credentials."""
    authenticator = Authenticator(settings.dsn, settings)
    app = build_app(parts, authenticator)
    with (
        closing(authenticator),
        start_blocking_portal() as portal,
        httpx.Client(transport=InProcessTransport(app, portal), base_url="http://127.0.0.1") as client,
    ):
        yield client
    authenticator.close()


Call = Callable[..., httpx.Response]


@pytest.fixture
def token(database: psycopg.Connection) -> Callable[..., str]:
    """Makes a key: `token("editor", "acme")`, `token()` for a platform admin; returns the token."""

    def make(role: str | None = None, namespace: str = "default", **options: Any) -> str:
        return make_token(database, role, namespace, **options)

    return make


@pytest.fixture
def api(server: httpx.Client, token: Callable[..., str]) -> Call:
    """Calls as an admin of the platform, or with `key=`; checks the status: `api("GET", "/v1/jobs", 200)`."""
    admin = token()

    def call(
        method: str, path: str, status: int | None = None, *, key: str | None = None, **options: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key or admin}", **options.pop("headers", {})}
        answer = server.request(method, path, headers=headers, **options)
        if status is not None:
            assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    return call


@pytest.fixture
def call(parts: ApiContext, settings: Settings) -> Iterator[Caller]:
    """Sends requests to the whole application as they stand; without credentials unless `key=` is given."""
    authenticator = Authenticator(settings.dsn, settings)
    with calling(build_app(parts, authenticator)) as caller:
        yield caller
    authenticator.close()


@pytest.fixture
def key(token: Callable[..., str]) -> str:
    """Token of an admin of the platform."""
    return token()


@pytest.fixture
def scene(parts: ApiContext, settings: Settings) -> Iterator[Scene]:
    """One object of every kind, keys of every kind, and a caller that sends paths as they stand."""
    authenticator = Authenticator(settings.dsn, settings)
    with (
        closing(authenticator),
        open_world(settings.dsn) as world,
        calling(build_app(parts, authenticator)) as call,
    ):
        made = Scene(call, world, plant_keys(world.db))
        made.plant()
        yield made
