"""All services on a broker that refuses clients without a token of the identity provider (OAUTHBEARER)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cluster import SERVICES, Cluster, cluster
from tests.support.node import Node
from tests.support.publish import Load
from tests.support.token_endpoint import CLIENT, SECRET, TokenEndpoint, broker_settings, token_endpoint

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, start_kafka
from noonmark.devstack.processes.ports import free_port

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.slow]

SCOPE = "kafka"


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint() as opened:
        yield opened


@pytest.fixture
def guarded(
    endpoint: TokenEndpoint, database_url: str, server_dir: Path, topic_prefix: str, tmp_path: Path
) -> Iterator[Cluster]:
    """A cluster whose services reach the broker by a listener that asks for tokens."""
    port = free_port()
    server = start_kafka(
        server_dir / "kafka-tokens",
        settings=broker_settings(endpoint, port),
        # Kafka asks no URL that it was not told of in this way.
        java_options=[
            COMPILED_LIGHTLY,
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint.keys_url}",
        ],
    )
    try:
        with cluster(database_url, server.bootstrap, topic_prefix, tmp_path) as made:
            made.settings |= {
                "NOONMARK_KAFKA_BOOTSTRAP": f"127.0.0.1:{port}",
                "NOONMARK_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
                "NOONMARK_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
                "NOONMARK_KAFKA_SASL_USERNAME": CLIENT,
                "NOONMARK_KAFKA_SASL_PASSWORD": SECRET,
                "NOONMARK_KAFKA_OAUTH_TOKEN_URL": endpoint.url,
                "NOONMARK_KAFKA_OAUTH_SCOPE": SCOPE,
            }
            yield made
    finally:
        server.stop()


def test_every_service_connects_with_tokens_and_renews_them(
    guarded: Cluster, endpoint: TokenEndpoint
) -> None:
    # Shorter than the test: a client that kept its first token would be cut off.
    endpoint.life = 10
    guarded.start(*SERVICES, "observer")
    load = Load()
    load.now(20)
    guarded.take_in(load)
    guarded.settle(load)
    seen = "select coalesce(max(next_offset), 0) from observer_offsets"
    guarded.wait(lambda: guarded.value(seen) > 0, "the observer to read outcomes")
    first = len(endpoint.given)
    guarded.wait(lambda: len(endpoint.given) >= first + len(guarded.nodes), "tokens to be renewed")
    more = Load(namespace="renewed")
    more.now(20)
    guarded.take_in(more)
    guarded.settle(more)

    assert guarded.states(load.namespace) == {"succeeded": 20}
    assert guarded.states("renewed") == {"succeeded": 20}
    assert set(endpoint.given) == {SCOPE}
    assert endpoint.refused == 0


def test_another_secret_is_refused_told_and_not_shown(guarded: Cluster, endpoint: TokenEndpoint) -> None:
    nodes = [
        guarded.launch(service, kafka_sasl_password="another-secret")
        for service in ("dispatcher", "observer")
    ]
    for node in nodes:
        guarded.wait(
            lambda node=node: endpoint.url in whole_log(node), f"{node.name} to tell that it gets no token"
        )
        assert "another-secret" not in whole_log(node)
    assert endpoint.given == []


def whole_log(node: Node) -> str:
    """Tracebacks of Faust's client soon push a line out of the end that `node.log` shows."""
    return node.log_file.read_text(encoding="utf-8")
