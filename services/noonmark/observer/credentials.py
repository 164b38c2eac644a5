"""Converts the Kafka security settings to the credentials of Faust's client."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

import faust
from faust.types.auth import SASLMechanism

from noonmark.kafka.config import KafkaConfig
from noonmark.observer.oauth_tokens import ClientCredentials

_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class CredentialsError(ValueError):
    """Faust's client does not support the settings; the message is a sentence for the operator."""


def broker_urls(bootstrap: str) -> list[str]:
    """Return the brokers of `host:port,…` as Faust's URLs."""
    return [f"kafka://{server.strip()}" for server in bootstrap.split(",") if server.strip()]


def credentials(config: KafkaConfig) -> Any:
    """Return Faust's credentials; None for a plain connection.

    Raises:
        CredentialsError: the protocol or mechanism is unknown, or a certificate cannot be read.
    """
    context = _tls(config) if config.security_protocol in ("SSL", "SASL_SSL") else None
    if config.security_protocol == "PLAINTEXT":
        return None
    if config.security_protocol == "SSL":
        return faust.SSLCredentials(context)
    if config.security_protocol not in ("SASL_PLAINTEXT", "SASL_SSL"):
        raise CredentialsError(
            f"NOONMARK_KAFKA_SECURITY_PROTOCOL {config.security_protocol!r} is unknown; use PLAINTEXT, SSL,"
            " SASL_PLAINTEXT or SASL_SSL"
        )
    if config.sasl_mechanism not in _MECHANISMS:
        raise CredentialsError(
            f"the observer does not support NOONMARK_KAFKA_SASL_MECHANISM {config.sasl_mechanism!r}; use "
            + ", ".join(_MECHANISMS)
        )
    if config.sasl_mechanism == "OAUTHBEARER":
        tokens = ClientCredentials(config, _trusting(config.oauth_ca_location))
        return faust.OAuthCredentials(oauth_cb=tokens, ssl_context=context)
    return faust.SASLCredentials(
        username=config.sasl_username,
        password=config.sasl_password,
        ssl_context=context,
        mechanism=_mechanism(config.sasl_mechanism),
    )


def _mechanism(name: str) -> SASLMechanism:
    try:
        return SASLMechanism(name)
    except ValueError:
        raise CredentialsError(f"Faust does not support NOONMARK_KAFKA_SASL_MECHANISM {name!r}") from None


def _tls(config: KafkaConfig) -> ssl.SSLContext:
    context = _trusting(config.ssl_ca_location)
    try:
        if config.ssl_certificate_location:
            context.load_cert_chain(config.ssl_certificate_location, config.ssl_key_location)
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(error) from error
    return context


def _trusting(location: str | None) -> ssl.SSLContext:
    """Trust the CAs of a file or folder, those of the system if there is none."""
    try:
        folder = bool(location) and Path(location or "").is_dir()
        return ssl.create_default_context(
            cafile=None if folder else location or None, capath=location if folder else None
        )
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> CredentialsError:
    return CredentialsError(
        f"cannot read the certificates of NOONMARK_KAFKA_SSL_… or NOONMARK_KAFKA_OAUTH_CA_LOCATION: {error}; "
        "check the paths and the files"
    )
