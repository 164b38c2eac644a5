"""Fixtures that every test may use; servers start only when a test asks for them."""

from tests.support.stack import (
    database_url,
    kafka_server,
    postgres_server,
    server_dir,
    service_env,
    template_database,
    topic_prefix,
)

__all__ = [
    "database_url",
    "kafka_server",
    "postgres_server",
    "server_dir",
    "service_env",
    "template_database",
    "topic_prefix",
]
