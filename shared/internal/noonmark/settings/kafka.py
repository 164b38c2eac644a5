"""Settings of the Kafka connection and of the topics that noonmark creates."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from noonmark.settings.checks import checked_brokers, checked_token_url


class KafkaSettings(BaseSettings):
    """How every service connects to Kafka, and how topics are named and created."""

    kafka_bootstrap: Annotated[str, AfterValidator(checked_brokers)] = Field(
        "localhost:9092", description="Brokers to connect to first: host:port, several with commas."
    )
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="Protocol of the connection to the brokers."
    )
    kafka_sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "", description="SASL mechanism; only with a SASL protocol."
    )
    kafka_sasl_username: str = Field(
        "", description="User of the SASL mechanism; with OAUTHBEARER the client id."
    )
    kafka_sasl_password: SecretStr = Field(
        SecretStr(""), description="Password of that user; with OAUTHBEARER the client secret."
    )
    kafka_oauth_token_url: Annotated[str, AfterValidator(checked_token_url)] = Field(
        "",
        description="Token endpoint of the identity provider, for OAUTHBEARER: services get tokens there, "
        "with the grant client_credentials.",
    )
    kafka_oauth_scope: str = Field("", description="Scope of these tokens, if the provider needs one.")
    kafka_oauth_ca_location: str = Field(
        "", description="File of CA certificates that the provider's certificate is checked against."
    )
    kafka_ssl_ca_location: str = Field("", description="File or folder of trusted CA certificates.")
    kafka_ssl_certificate_location: str = Field("", description="Client certificate, for mutual TLS.")
    kafka_ssl_key_location: str = Field("", description="Private key of the client certificate.")
    kafka_group_protocol: Literal["consumer", "classic"] = Field(
        "consumer",
        description="consumer: KIP-848 where the brokers support it (Kafka 4), otherwise classic.",
    )
    kafka_partitions: int = Field(
        6, ge=1, le=1000, description="Number of partitions of topics that noonmark creates."
    )
    kafka_replication: int = Field(
        -1, ge=-1, le=10, description="Replication factor of these topics. -1: the broker's default."
    )
    topic_prefix: str = Field(
        "noonmark",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$",
        description="First part of the name of every topic and consumer group.",
    )

    @model_validator(mode="after")
    def _check_sasl(self) -> Self:
        uses_sasl = self.kafka_security_protocol.startswith("SASL_")
        if uses_sasl and not self.kafka_sasl_mechanism:
            raise ValueError(
                f"NOONMARK_KAFKA_SECURITY_PROTOCOL={self.kafka_security_protocol} needs "
                "NOONMARK_KAFKA_SASL_MECHANISM"
            )
        if self.kafka_sasl_mechanism and not uses_sasl:
            raise ValueError(
                f"NOONMARK_KAFKA_SASL_MECHANISM={self.kafka_sasl_mechanism} is not used with "
                f"NOONMARK_KAFKA_SECURITY_PROTOCOL={self.kafka_security_protocol}: use SASL_SSL"
            )
        needed = {
            "NOONMARK_KAFKA_OAUTH_TOKEN_URL": self.kafka_oauth_token_url,
            "NOONMARK_KAFKA_SASL_USERNAME (the client id)": self.kafka_sasl_username,
            "NOONMARK_KAFKA_SASL_PASSWORD (the client secret)": self.kafka_sasl_password.get_secret_value(),
        }
        missing = [name for name, value in needed.items() if not value]
        if self.kafka_sasl_mechanism == "OAUTHBEARER" and missing:
            raise ValueError(f"NOONMARK_KAFKA_SASL_MECHANISM=OAUTHBEARER needs {' and '.join(missing)}")
        return self
