"""Fixtures of the scenarios: a cluster of its own for each, and a proxy before its Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from tests.support.cli import Called, call
from tests.support.cluster import Cluster, cluster
from tests.support.proxy import Network, Proxy
from tests.support.stack import Kafka


@pytest.fixture
def noonmark(database_url: str, kafka_server: Kafka, topic_prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without a process yet, with topics and a migrated database of its own."""
    with cluster(database_url, kafka_server.bootstrap, topic_prefix, tmp_path) as made:
        yield made


@pytest.fixture
def network() -> Iterator[Network]:
    """The loop of a test's proxies."""
    made = Network()
    yield made
    made.close()


@dataclass(frozen=True, slots=True)
class Way:
    """A way to Postgres of one's own: the proxy, and the URL that goes through it."""

    proxy: Proxy
    url: str


@pytest.fixture
def way(database_url: str, network: Network) -> Way:
    """A proxied way to the test's database."""
    parts = urlsplit(database_url)
    assert parts.port, "the server of the tests must listen on TCP"
    proxy = network.proxy(parts.port)
    user = parts.netloc.rpartition("@")[0]
    return Way(proxy, urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}")))


@pytest.fixture
def command(noonmark: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    """Runs `noonmark` against the cluster, as somebody who operates it does."""
    monkeypatch.chdir(noonmark.folder)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", noonmark.dsn)
    monkeypatch.setenv("NOONMARK_KAFKA_BOOTSTRAP", noonmark.bootstrap)
    monkeypatch.setenv("NOONMARK_TOPIC_PREFIX", noonmark.prefix)
    return call
