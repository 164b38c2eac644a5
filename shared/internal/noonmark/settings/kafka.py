"""Settings of the Kafka connection and of the topics that noonmark creates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings

from noonmark.settings.checks import checked_brokers


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
    kafka_sasl_username: str = Field("", description="User of the SASL mechanism.")
    kafka_sasl_password: SecretStr = Field(SecretStr(""), description="Password of that user.")
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
