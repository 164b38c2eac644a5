"""One real Postgres and one real Kafka per test session, and a world of its own for every test in them.

NOONMARK_TEST_DATABASE_URL and NOONMARK_TEST_KAFKA_BOOTSTRAP name servers to use instead of starting
them; NOONMARK_PG_BIN starts another Postgres than the wheel's 18. Tests that kill a server start
their own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from psycopg import sql
from tests.support.publish import unsigned

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, start_kafka
from noonmark.devstack.postgres.server import start_postgres

QUICK_GROUPS = {
    # How soon a consumer gets its partitions, and how long a killed one keeps them, is the broker's to say.
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
}

_SCRAM_ITERATIONS_SINCE = 160000

NOT_DURABLE = {
    # No test of the session's server turns off the machine's power, so its files need not reach the disk; a copy of
    # a database takes a tenth of the time. Tests of what a crash leaves start servers of their own.
    "fsync": "off",
    "full_page_writes": "off",
}


@dataclass(frozen=True, slots=True)
class Postgres:
    """The session's server; `url` belongs to a role that may create databases."""

    url: str

    def url_of(self, database: str) -> str:
        """The URL of another database of this server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))

    def copy(self, template: str, name: str) -> None:
        """Makes a database like the template, by copying its files."""
        self.run(f"create database {name} template {template} strategy file_copy")

    def drop(self, name: str) -> None:
        """Drops a database, and ends its sessions."""
        self.run(f"drop database {name} with (force)")

    def run(self, *statements: str) -> None:
        """Executes statements outside a transaction."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@dataclass(frozen=True, slots=True)
class Kafka:
    """The session's broker."""

    bootstrap: str

    def delete_topics(self, prefix: str) -> None:
        """Deletes every topic of one test."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        doomed = [name for name in admin.list_topics(timeout=30).topics if name.startswith(f"{prefix}.")]
        if doomed:
            for future in admin.delete_topics(doomed, operation_timeout=30).values():
                future.result(60)


@pytest.fixture(scope="session")
def server_dir() -> Iterator[Path]:
    """Data of the session's servers; short and reachable for the user that Postgres runs as."""
    folder = Path(tempfile.mkdtemp(prefix="noonmark-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server(server_dir: Path) -> Iterator[Postgres]:
    """A real Postgres, one per session."""
    given = os.environ.get("NOONMARK_TEST_DATABASE_URL")
    if given:
        yield Postgres(given)
        return
    server = start_postgres(server_dir / "postgres", settings=NOT_DURABLE)
    _make_logins_cheap(server.url)
    yield Postgres(server.url)
    server.stop()


@pytest.fixture(scope="session")
def kafka_server(server_dir: Path) -> Iterator[Kafka]:
    """A real Kafka, one per session."""
    given = os.environ.get("NOONMARK_TEST_KAFKA_BOOTSTRAP")
    if given:
        yield Kafka(given)
        return
    # A third of the broker's CPU time in a minute of tests goes to compiling it for a load that never comes.
    server = start_kafka(server_dir / "kafka", settings=QUICK_GROUPS, java_options=[COMPILED_LIGHTLY])
    yield Kafka(server.bootstrap)
    server.stop()


@pytest.fixture(scope="session")
def template_database(postgres_server: Postgres) -> Iterator[str]:
    """A database that was migrated once; every test gets a copy."""
    from noonmark.store.migrations.migrate import migrate  # noqa: PLC0415 - only for tests that want a database

    name = f"template_{uuid.uuid4().hex[:12]}"
    postgres_server.run(f"create database {name}")
    migrate(postgres_server.url_of(name))
    # A database that somebody is connected to cannot be copied; autovacuum counts too.
    postgres_server.run(f"alter database {name} allow_connections false")
    yield name
    postgres_server.drop(name)


@pytest.fixture
def database_url(postgres_server: Postgres, template_database: str) -> Iterator[str]:
    """URL of a fresh, migrated database for this test alone."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    postgres_server.copy(template_database, name)
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest.fixture
def topic_prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """Prefix of every topic and group of this test; its topics are deleted afterwards."""
    prefix = f"t{uuid.uuid4().hex[:12]}"
    yield prefix
    if "kafka_server" in request.fixturenames:
        kafka: Kafka = request.getfixturevalue("kafka_server")
        kafka.delete_topics(prefix)


@pytest.fixture
def service_env(database_url: str, kafka_server: Kafka, topic_prefix: str) -> dict[str, str]:
    """Environment for a service process of this test: its database, the broker, its prefix."""
    return {
        **os.environ,
        "NOONMARK_DATABASE_URL": database_url,
        "NOONMARK_KAFKA_BOOTSTRAP": kafka_server.bootstrap,
        "NOONMARK_TOPIC_PREFIX": topic_prefix,
        "NOONMARK_BOUND_TOPICS": unsigned(topic_prefix),
        "PYTHONUNBUFFERED": "1",
    }


def _make_logins_cheap(url: str) -> None:
    """Has the password hashed once, not 4096 times, which half of the time of every connection goes to."""
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.info.server_version >= _SCRAM_ITERATIONS_SINCE:
            connection.execute("set scram_iterations = 1")
            connection.execute(
                sql.SQL("alter role current_user password {}").format(connection.info.password)
            )
