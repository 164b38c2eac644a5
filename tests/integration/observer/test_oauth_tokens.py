"""Tokens of the observer's Kafka client: kept while they are fresh, and asked for again in time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator

import pytest
from aiokafka.errors import KafkaConnectionError
from tests.support.issuer import Clock
from tests.support.token_endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint

from noonmark.kafka.config import KafkaConfig
from noonmark.observer.oauth_tokens import ClientCredentials


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint() as opened:
        yield opened


def tokens(endpoint: TokenEndpoint, clock: Clock, **changes: str) -> ClientCredentials:
    given = {
        "sasl_username": CLIENT,
        "sasl_password": SECRET,
        "oauth_token_url": endpoint.url,
        "oauth_scope": "kafka",
    }
    return ClientCredentials(
        KafkaConfig("broker:9092", **{**given, **changes}), ssl.create_default_context(), clock
    )


def test_a_token_serves_until_a_fifth_of_its_life_is_left(endpoint: TokenEndpoint) -> None:
    clock, endpoint.life = Clock(), 100
    provider = tokens(endpoint, clock)
    first = asyncio.run(provider.token())
    clock.at += 79
    assert asyncio.run(provider.token()) == first
    assert endpoint.given == ["kafka"]
    clock.at += 2
    asyncio.run(provider.token())
    assert endpoint.given == ["kafka", "kafka"]


def test_a_refusal_names_the_endpoint_and_not_the_secret(endpoint: TokenEndpoint) -> None:
    with pytest.raises(KafkaConnectionError, match=f"{endpoint.url} gave no token: status 401") as caught:
        asyncio.run(tokens(endpoint, Clock(), sasl_password="another-secret").token())
    assert "another-secret" not in str(caught.value)


def test_an_answer_without_a_token_is_told(endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TokenEndpoint, "answer", lambda *_: (200, {"token_type": "Bearer"}))
    with pytest.raises(KafkaConnectionError, match="gave no token: the answer holds no token"):
        asyncio.run(tokens(endpoint, Clock()).token())


def test_an_endpoint_that_is_away_is_told(endpoint: TokenEndpoint) -> None:
    with pytest.raises(KafkaConnectionError, match="gave no token"):
        asyncio.run(tokens(endpoint, Clock(), oauth_token_url="http://127.0.0.1:1/token").token())
