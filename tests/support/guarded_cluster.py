"""An installation whose services have their own users in Kafka and Postgres, with the rights that are documented."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster import COUNTS, ROOT, Cluster
from tests.support.guarded_broker import GuardedBroker
from tests.support.guarded_connections import connections
from tests.support.guarded_database import GuardedDatabase

from noonmark.kafka.rights import kafka_rights
from noonmark.kafka.topics import Topics
from noonmark.store.access.service_rights import SERVICES, role_of
from noonmark.store.database.scope import API_ROLE
from noonmark.store.migrations.service_roles import create_statements

DATABASE, OWNER, PASSWORD = "scheduler", "scheduler_owner", "of-the-tests"
PREFIX = "least"


@dataclass(slots=True)
class GuardedCluster:
    """The cluster with its servers.

    Attributes:
        cluster: its own connections are those of the administrators.
        broker: where its topics are.
        database: where its tables are.
    """

    cluster: Cluster
    broker: GuardedBroker
    database: GuardedDatabase

    def environment(self, service: str, *, kafka_user: str | None = None) -> dict[str, str]:
        """The connections of a service, as the chart gives them."""
        user = OWNER if service == "migration" else login_of(service)
        principal = kafka_user or service
        return connections(
            database_url=self.database.url(DATABASE, user, PASSWORD),
            database_ca=str(self.database.authority.ca),
            bootstrap=self.broker.bootstrap,
            topic_prefix=PREFIX,
            kafka_user=principal,
            kafka_password=self.broker.passwords[principal],
            kafka_ca=str(self.broker.authority.ca),
        )

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `noonmark` as the owner of the tables, and as the migration's user of Kafka."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
        return subprocess.run(
            [sys.executable, "-m", "noonmark.cli.main", *arguments],
            env={**inherited, **self.environment("migration"), **environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def login_of(service: str) -> str:
    """The user of Postgres that a service connects as."""
    return f"scheduler_{service}"


@contextmanager
def guarded_cluster(
    broker: GuardedBroker, database: GuardedDatabase, folder: Path
) -> Iterator[GuardedCluster]:
    """Install on a broker and a server that have nothing yet, as an administrator does."""
    _create_roles(database)
    topics = Topics(PREFIX)
    for client, rights in kafka_rights(topics).items():
        broker.add_user(client)
        broker.grant(client, rights)
    cluster = Cluster(database.server.url_of(DATABASE), broker.inside, PREFIX, folder)
    made = GuardedCluster(cluster, broker, database)
    partitions = str(COUNTS.submissions)
    done = made.command("db", "migrate", NOONMARK_KAFKA_PARTITIONS=partitions, NOONMARK_KAFKA_REPLICATION="1")
    assert done.returncode == 0, done.stderr
    cluster.of_service |= {service: made.environment(service) for service in SERVICES}
    try:
        yield made
    finally:
        cluster.close()


def _create_roles(database: GuardedDatabase) -> None:
    """What `noonmark rights postgres` tells an administrator to run, and a user for each service."""
    login = f"login password '{PASSWORD}'"
    database.admin.run(
        f"create role {API_ROLE} nologin",
        f"create role {OWNER} {login}",
        f"grant {API_ROLE} to {OWNER}",
        *create_statements(),
        *(f"create role {login_of(service)} {login} in role {role_of(service)}" for service in SERVICES),
        f"create database {DATABASE} owner {OWNER}",
    )
