"""Fixtures that every test may use; servers start only when a test asks for them."""

from collections.abc import Iterator

import pytest
import structlog
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


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Let no test see how another, or a command in this process, set up logging."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
