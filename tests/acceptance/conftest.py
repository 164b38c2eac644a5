"""Fixtures of the acceptance tests: a cluster of real processes, on the session's servers or on its own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.cli import Called, call
from tests.support.cluster import Cluster, cluster
from tests.support.stack import Kafka


@pytest.fixture
def noonmark(database_url: str, kafka_server: Kafka, topic_prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without a process yet, with topics and a migrated database of its own."""
    with cluster(database_url, kafka_server.bootstrap, topic_prefix, tmp_path) as made:
        yield made


@pytest.fixture
def command(noonmark: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    """Runs `noonmark` against the cluster, from its folder, as somebody who operates it does."""
    monkeypatch.chdir(noonmark.folder)
    for name in [name for name in os.environ if name.startswith("NOONMARK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", noonmark.dsn)
    monkeypatch.setenv("NOONMARK_KAFKA_BOOTSTRAP", noonmark.bootstrap)
    monkeypatch.setenv("NOONMARK_TOPIC_PREFIX", noonmark.prefix)
    return call
