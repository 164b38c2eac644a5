"""Asks the servers of a stack whether they answer: a process that runs may still be starting, or hang."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from noonmark.devstack.state import StackState
from noonmark.settings.postgres_url import database_address

_SECONDS: Final = 2


def silent_servers(current: StackState) -> dict[str, str]:
    """Why Postgres or Kafka of a ready stack does not answer, by name; empty if both do.

    A server that the supervisor is restarting is not asked: its row says so.
    """
    if current.phase != "ready":
        return {}
    found = {
        "postgres": postgres_silence(current.database_url) if current.database_url else "",
        "kafka": kafka_silence(current.kafka_bootstrap) if current.kafka_bootstrap else "",
    }
    return {name: why for name, why in found.items() if why and name not in current.restarting}


def postgres_silence(url: str, seconds: int = _SECONDS) -> str:
    """Why no Postgres answers within about these seconds, to follow its name; empty if one does."""
    try:
        with psycopg.connect(url, connect_timeout=seconds) as connection:
            connection.execute("select 1")
    except psycopg.Error as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return f"does not answer at {database_address(url)}: {reason}"
    return ""


def kafka_silence(bootstrap: str, seconds: float = _SECONDS) -> str:
    """Why no broker answers within these seconds, to follow its name; empty if one does."""
    # The client's own log would repeat every refused connection.
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": lambda _error: None}
    client = AdminClient(config)
    try:
        client.list_topics(timeout=seconds)
    except KafkaException as error:
        return f"does not answer at {bootstrap}: {error.args[0].str()}"
    return ""
