"""What the watchdog asks: Postgres about itself and about what the others left there, and Kafka."""

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
from noonmark.watchdog.check_rounds import Question
from noonmark.watchdog.process_checks import StalledHeads, process_problem

POSTGRES = "postgres"
KAFKA = "kafka"
TRIGGER, DISPATCHER, OBSERVER = "trigger", "dispatcher", "observer"
PARTS = (POSTGRES, KAFKA, TRIGGER, DISPATCHER, OBSERVER)


def questions(settings: Settings, *, within_seconds: float) -> tuple[Question, ...]:
    """Make the questions of an installation."""
    database = _PostgresChecks(settings, within_seconds)
    brokers = _KafkaChecks(settings, within_seconds)
    return (
        Question("ask_postgres", (POSTGRES,), database.writes, _database_error),
        Question("ask_parts", (TRIGGER, DISPATCHER, OBSERVER), database.parts, _unknown),
        Question("ask_kafka", (KAFKA,), brokers.lead, _broker_error),
    )


class _PostgresChecks:
    """Each question on a connection of its own: that new ones can be made is part of the answer."""

    def __init__(self, settings: Settings, within_seconds: float) -> None:
        self._dsn = settings.dsn
        self._within_seconds = within_seconds
        self._stale_seconds = settings.watchdog_stale_seconds
        self._id = uuid7()
        self._timers = StalledHeads("due timer")
        self._outbox = StalledHeads("row of the outbox")

    def _connect(self) -> psycopg.Connection:
        return connect(
            self._dsn,
            application="watchdog",
            autocommit=True,
            statement_timeout_seconds=self._within_seconds,
        )

    def writes(self) -> Mapping[str, str]:
        """Commit a row: a server that is read-only, or whose disk is full, is of no use."""
        with self._connect() as connection:
            processes.note(connection, "watchdog", self._id, None)
        return {POSTGRES: ""}

    def parts(self) -> Mapping[str, str]:
        """Judge the others by what they wrote, and by what nobody took."""
        stale = self._stale_seconds
        with self._connect() as connection:
            seen = processes.read(connection)
            due, unsent = processes.due_heads(connection), processes.outbox_heads(connection)
        now = time.monotonic()
        # Both are looked at in any case: they must know since when a head stands.
        untaken = self._timers.problem(due, now, stale), self._outbox.problem(unsent, now, stale)
        return {
            TRIGGER: process_problem(TRIGGER, seen, stale) or untaken[0],
            DISPATCHER: process_problem(DISPATCHER, seen, stale) or untaken[1],
            OBSERVER: process_problem(OBSERVER, seen, stale),
        }


class _KafkaChecks:
    """One client for good; it connects again by itself."""

    def __init__(self, settings: Settings, within_seconds: float) -> None:
        self._config = kafka_config(settings)
        self._topics = Topics(settings.topic_prefix)
        self._within_seconds = within_seconds

    def lead(self) -> Mapping[str, str]:
        """Ask for our topics: each partition must have a leader. A new client believes no old answer."""
        client = AdminClient(self._config.client(client_id="noonmark-watchdog"))
        found = client.list_topics(timeout=self._within_seconds)
        lifecycle = found.topics.get(self._topics.lifecycle)
        if lifecycle is None:
            return {KAFKA: f"the topic {self._topics.lifecycle} is missing"}
        ours = [lifecycle, *(topic for name, topic in found.topics.items() if self._topics.parse_runs(name))]
        headless = [topic.topic for topic in ours if any(p.leader < 0 for p in topic.partitions.values())]
        if headless:
            return {KAFKA: f"{len(headless)} topics have a partition without a leader, such as {headless[0]}"}
        return {KAFKA: ""}


def _database_error(error: Exception) -> str:
    return f"does not answer: {_one_line(error)}"


def _unknown(error: Exception) -> str:
    return f"is not known: {_one_line(error)}"


def _broker_error(error: Exception) -> str:
    told = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return f"does not answer: {' '.join(told.split())[:300]}"


def _one_line(error: Exception) -> str:
    text = str(error) if isinstance(error, psycopg.Error) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:300]
