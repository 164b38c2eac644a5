"""The connections of a service to servers that it verifies, as a user of its own: what the chart gives, and the tests use."""

from __future__ import annotations


def connections(
    *,
    database_url: str,
    database_ca: str,
    bootstrap: str,
    topic_prefix: str,
    kafka_user: str,
    kafka_password: str,
    kafka_ca: str,
) -> dict[str, str]:
    """Return the environment for `verify-full` with Postgres, and for TLS and SCRAM with Kafka."""
    return {
        "NOONMARK_DATABASE_URL": database_url,
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": database_ca,
        "NOONMARK_TOPIC_PREFIX": topic_prefix,
        "NOONMARK_KAFKA_BOOTSTRAP": bootstrap,
        "NOONMARK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "NOONMARK_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "NOONMARK_KAFKA_SASL_USERNAME": kafka_user,
        "NOONMARK_KAFKA_SASL_PASSWORD": kafka_password,
        "NOONMARK_KAFKA_SSL_CA_LOCATION": kafka_ca,
    }
