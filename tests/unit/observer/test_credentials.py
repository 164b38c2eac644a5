"""The settings of Kafka's security as Faust's client takes them."""

import ssl
from pathlib import Path

import pytest

from noonmark.kafka.config import KafkaConfig
from noonmark.observer.credentials import CredentialsError, broker_urls, credentials

CERTIFICATES = Path(__file__).parents[2] / "support" / "certificates"


def config(**settings) -> KafkaConfig:
    return KafkaConfig("broker:9092", **settings)


def test_every_broker_is_named():
    assert broker_urls("one:9092, two:9093") == ["kafka://one:9092", "kafka://two:9093"]


def test_a_plain_connection_has_no_credentials():
    assert credentials(config()) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [("PLAIN", "PLAIN"), ("SCRAM-SHA-256", "SCRAM-SHA-256"), ("SCRAM-SHA-512", "SCRAM-SHA-512")],
)
def test_a_user_and_a_password_over_tls(name, known):
    found = credentials(
        config(security_protocol="SASL_SSL", sasl_mechanism=name, sasl_username="me", sasl_password="secret")
    )

    assert (found.protocol.value, found.mechanism.value) == ("SASL_SSL", known)
    assert (found.username, found.password) == ("me", "secret")
    assert found.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert found.ssl_context.check_hostname
    assert "secret" not in repr(found)


def test_a_client_id_and_secret_get_tokens():
    found = credentials(
        config(
            security_protocol="SASL_SSL",
            sasl_mechanism="OAUTHBEARER",
            sasl_username="me",
            sasl_password="secret",
            oauth_token_url="https://login.example.com/token",
            oauth_ca_location=str(next(CERTIFICATES.glob("*.pem"))),
        )
    )

    assert (found.protocol.value, found.mechanism.value) == ("SASL_SSL", "OAUTHBEARER")
    assert "secret" not in repr(found)


def test_a_password_without_tls_says_so():
    found = credentials(
        config(
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="me",
            sasl_password="secret",
        )
    )

    assert (found.protocol.value, found.ssl_context) == ("SASL_PLAINTEXT", None)


def test_certificates_of_the_broker_are_checked_against_the_authority_that_is_named():
    (authority, *_) = sorted(CERTIFICATES.glob("*ca*.pem")) or sorted(CERTIFICATES.glob("*.pem"))

    found = credentials(config(security_protocol="SSL", ssl_ca_location=str(authority)))

    assert found.protocol.value == "SSL"
    assert len(found.context.get_ca_certs()) >= 1


def test_a_certificate_that_is_not_there_is_told(tmp_path):
    with pytest.raises(CredentialsError, match="cannot read the certificates"):
        credentials(config(security_protocol="SSL", ssl_ca_location=str(tmp_path / "none.pem")))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security_protocol": "TLS"}, "NOONMARK_KAFKA_SECURITY_PROTOCOL 'TLS' is unknown"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"},
            "does not support NOONMARK_KAFKA_SASL_MECHANISM 'GSSAPI'",
        ),
    ],
)
def test_what_the_client_cannot_do_is_refused(settings, said):
    with pytest.raises(CredentialsError, match=said):
        credentials(config(**settings))
