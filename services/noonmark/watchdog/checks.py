"""The watchdog's checks: of Postgres, of Kafka, and of the progress that the services write to Postgres."""

from __future__ import annotations

import time
from collections.abc import Mapping

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from noonmark.core.ids import uuid7
from noonmark.kafka.topics import Topics
from noonmark.service.startup import kafka_config
from noonmark.settings import Settings
from noonmark.store.cluster import processes
from noonmark.store.database.connect import connect
from noonmark.watchdog.check_rounds import Check
from noonmark.watchdog.process_checks import StalledHeads, process_problem

POSTGRES = "postgres"
KAFKA = "kafka"
TRIGGER, DISPATCHER, OBSERVER = "trigger", "dispatcher", "observer"


def make_checks(settings: Settings, *, within_seconds: float) -> tuple[Check, ...]:
    """Create the checks of an installation."""
    database = _PostgresChecks(settings, within_seconds)
    brokers = _KafkaChecks(settings, within_seconds)
    return (
        Check("check_postgres", (POSTGRES,), database.writes, _database_error),
        Check("check_services", (TRIGGER, DISPATCHER, OBSERVER), database.services, _unknown),
        Check("check_kafka", (KAFKA,), brokers.leaders, _broker_error),
    )


class _PostgresChecks:
    """Runs each check on a new connection, because the ability to connect is part of what is checked."""

    def __init__(self, settings: Settings, within_seconds: float) -> None:
        self._dsn = settings.dsn
        self._within_seconds = within_seconds
        self._stale_seconds = settings.watchdog_stale_seconds
        self._id = uuid7()
        self._timers = StalledHeads("due timer")
        self._outbox = StalledHeads("outbox row")

    def _connect(self) -> psycopg.Connection:
        return connect(
            self._dsn,
            application="watchdog",
            autocommit=True,
            statement_timeout_seconds=self._within_seconds,
        )

    def writes(self) -> Mapping[str, str]:
        """Commit a row: a server that is read-only or has a full disk fails the check."""
        with self._connect() as connection:
            processes.note(connection, "watchdog", self._id, None)
        return {POSTGRES: ""}

    def services(self) -> Mapping[str, str]:
        """Check the services by the progress that they wrote, and by queues whose first item stays."""
        stale = self._stale_seconds
        with self._connect() as connection:
            seen = processes.read(connection)
            due, unsent = processes.due_heads(connection), processes.outbox_heads(connection)
        now = time.monotonic()
        # Call both every time: they track since when each first item has been the same.
        stalled = self._timers.problem(due, now, stale), self._outbox.problem(unsent, now, stale)
        return {
            TRIGGER: process_problem(TRIGGER, seen, stale) or stalled[0],
            DISPATCHER: process_problem(DISPATCHER, seen, stale) or stalled[1],
            OBSERVER: process_problem(OBSERVER, seen, stale),
        }


class _KafkaChecks:
    """Checks that brokers answer and that every partition of our topics has a leader."""

    def __init__(self, settings: Settings, within_seconds: float) -> None:
        self._config = kafka_config(settings)
        self._topics = Topics(settings.topic_prefix)
        self._within_seconds = within_seconds

    def leaders(self) -> Mapping[str, str]:
        """Read the metadata of our topics with a new client, which has no cached metadata."""
        client = AdminClient(self._config.client(client_id="noonmark-watchdog"))
        found = client.list_topics(timeout=self._within_seconds)
        lifecycle = found.topics.get(self._topics.lifecycle)
        if lifecycle is None:
            return {
                KAFKA: f"topic {self._topics.lifecycle} does not exist, or this client may not DESCRIBE it"
            }
        ours = [lifecycle, *(topic for name, topic in found.topics.items() if self._topics.parse_runs(name))]
        leaderless = [topic.topic for topic in ours if any(p.leader < 0 for p in topic.partitions.values())]
        if leaderless:
            problem = f"{len(leaderless)} topics have a partition without a leader, such as {leaderless[0]}"
            return {KAFKA: problem}
        return {KAFKA: ""}


def _database_error(error: Exception) -> str:
    return f"does not answer: {_one_line(error)}"


def _unknown(error: Exception) -> str:
    return f"unknown: {_one_line(error)}"


def _broker_error(error: Exception) -> str:
    text = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return f"does not answer: {' '.join(text.split())[:300]}"


def _one_line(error: Exception) -> str:
    text = str(error) if isinstance(error, psycopg.Error) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]
