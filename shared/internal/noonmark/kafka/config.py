"""The connection to Kafka: one frozen value, and the librdkafka properties that all clients share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from noonmark.kafka.client_log import CLIENT_LOGGER

__all__ = ["CLIENT_LOGGER", "GroupProtocol", "KafkaConfig"]

GroupProtocol = Literal["consumer", "classic"]


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """Address, names and credentials of one Kafka cluster. An empty string means the same as None.

    Attributes:
        bootstrap: `host:port[,host:port…]`.
        topic_prefix: first part of every topic and consumer group name.
        group_protocol: `consumer` (KIP-848, brokers from 4.0) or `classic` (cooperative-sticky).
        security_protocol: `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.
        sasl_mechanism: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`; only with a SASL protocol.
        sasl_username: user of the SASL mechanism; with `OAUTHBEARER` the client id.
        sasl_password: its password or client secret; kept out of `repr` and of every log line.
        oauth_token_url: gives tokens for the grant `client_credentials` (RFC 6749, section 4.4).
        oauth_scope: scope of these tokens.
        oauth_ca_location: file of CA certificates of that endpoint.
        ssl_ca_location: file or directory of trusted CA certificates.
        ssl_certificate_location: this client's certificate, for mutual TLS.
        ssl_key_location: this client's private key, for mutual TLS.
    """

    bootstrap: str
    topic_prefix: str = "noonmark"
    group_protocol: GroupProtocol = "consumer"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    oauth_token_url: str | None = None
    oauth_scope: str | None = None
    oauth_ca_location: str | None = None
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None

    def __post_init__(self) -> None:
        """Refuse values that no client could use.

        Raises:
            ValueError: the bootstrap is empty, or the group protocol unknown.
        """
        if not self.bootstrap.strip():
            raise ValueError("Kafka bootstrap is empty; set it to host:port of at least one broker")
        if self.group_protocol not in ("consumer", "classic"):
            raise ValueError(
                f"Kafka group protocol {self.group_protocol!r} is unknown; use consumer or classic"
            )

    def client(self, **overrides: Any) -> dict[str, Any]:
        """Return librdkafka properties for any kind of client.

        `overrides` name properties with `_` for `.` (`client_id="relay"` sets `client.id`); the few
        properties that contain underscores themselves (`error_cb`, `log_level`, `stats_cb`) keep them.
        """
        properties: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "noonmark",
            "security.protocol": self.security_protocol,
            # The kernel notices a peer that vanished without a FIN, instead of waiting for hours.
            "socket.keepalive.enable": True,
            "socket.nagle.disable": True,
            "socket.timeout.ms": 10_000,
            "socket.connection.setup.timeout.ms": 5_000,
            # A broker that returns after an outage is found within two seconds, not ten.
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 2_000,
            "logger": CLIENT_LOGGER,
        }
        credentials = {
            "sasl.mechanism": self.sasl_mechanism,
            **self._sasl(),
            "ssl.ca.location": self.ssl_ca_location,
            "ssl.certificate.location": self.ssl_certificate_location,
            "ssl.key.location": self.ssl_key_location,
        }
        properties.update({name: value for name, value in credentials.items() if value})
        properties.update({_property_name(name): value for name, value in overrides.items()})
        return properties

    def _sasl(self) -> dict[str, str | None]:
        if self.sasl_mechanism != "OAUTHBEARER":
            return {"sasl.username": self.sasl_username, "sasl.password": self.sasl_password}
        return {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": self.sasl_username,
            "sasl.oauthbearer.client.secret": self.sasl_password,
            "sasl.oauthbearer.token.endpoint.url": self.oauth_token_url,
            "sasl.oauthbearer.scope": self.oauth_scope,
            "https.ca.location": self.oauth_ca_location,
        }


_UNDERSCORED: Final = frozenset(
    {"error_cb", "stats_cb", "throttle_cb", "log_level", "on_commit", "on_delivery"}
)


def _property_name(name: str) -> str:
    return name if name in _UNDERSCORED else name.replace("_", ".")
