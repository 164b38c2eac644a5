"""Access tokens for Faust's client; librdkafka gets those of the other services by itself."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Final

import httpx
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from noonmark.kafka.config import KafkaConfig
from noonmark.telemetry.logs import get_logger

_LOG: Final = get_logger()
_TIMEOUT_SECONDS: Final = 10.0
_FRESH_SHARE: Final = 0.8
"""A token is replaced after this share of its life, so that none expires on its way."""

_SHORT_LIFE_SECONDS: Final = 60.0
"""Life of a token whose provider does not tell it (RFC 6749, section 5.1: `expires_in` is recommended)."""


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Gets tokens with the grant `client_credentials` (RFC 6749, section 4.4), and keeps fresh ones."""

    def __init__(
        self,
        config: KafkaConfig,
        context: ssl.SSLContext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is requested yet.

        Args:
            config: with `oauth_token_url`, client id and secret.
            context: TLS of the token endpoint.
            clock: monotonic seconds.
        """
        self._url = config.oauth_token_url or ""
        self._auth = httpx.BasicAuth(config.sasl_username or "", config.sasl_password or "")
        self._form = {"grant_type": "client_credentials"}
        if config.oauth_scope:
            self._form["scope"] = config.oauth_scope
        self._context = context
        self._clock = clock
        self._token, self._renew_at = "", 0.0

    async def token(self) -> str:
        """Return a token that is fresh enough for a new connection.

        Raises:
            KafkaConnectionError: the provider gave none; the message shows neither secret nor token.
        """
        if not self._token or self._clock() >= self._renew_at:
            asked_at = self._clock()
            try:
                self._token, life = await self._request()
            except (httpx.HTTPError, ValueError) as error:
                # Faust's client reports only that it could not connect.
                _LOG.warning("kafka_token_not_received", url=self._url, error=str(error))
                raise KafkaConnectionError(f"{self._url} gave no token: {error}") from error
            self._renew_at = asked_at + life * _FRESH_SHARE
        return self._token

    async def _request(self) -> tuple[str, float]:
        async with httpx.AsyncClient(verify=self._context, timeout=_TIMEOUT_SECONDS) as client:
            reply = await client.post(self._url, data=self._form, auth=self._auth)
        if not reply.is_success:
            raise ValueError(f"status {reply.status_code}")
        answer = reply.json()
        match answer:
            case {"access_token": str(token)} if token:
                life = answer.get("expires_in")
                return token, life if isinstance(life, int | float) else _SHORT_LIFE_SECONDS
        raise ValueError("the answer holds no token")
