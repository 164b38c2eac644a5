"""Fixtures of the acceptance tests: a cluster of real processes, on the session's servers or on its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, cluster
from tests.support.stack import Kafka


@pytest.fixture
def noonmark(database_url: str, kafka_server: Kafka, topic_prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without a process yet, with topics and a migrated database of its own."""
    with cluster(database_url, kafka_server.bootstrap, topic_prefix, tmp_path) as made:
        yield made
