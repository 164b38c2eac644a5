"""Reads what a service needs before it starts, waiting while the database is down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import psycopg

from noonmark.kafka.config import KafkaConfig
from noonmark.service.backoff import retry_transient
from noonmark.service.database_errors import DbFault, log_fault
from noonmark.service.runner import Service, StartError
from noonmark.settings import Settings
from noonmark.store.database.connect import connect
from noonmark.store.migrations.revisions import read_revision

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Install:
    """Facts of the installation, fixed by its first migration."""

    shards: int


def await_install(service: Service) -> Install:
    """Read the facts of the installation, waiting while the database is down.

    Raises:
        StartError: the database has no noonmark schema, or a schema that this release cannot use.
    """

    def read(connection: psycopg.Connection) -> Install:
        try:
            row = connection.execute("select shards from install").fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        if row is None:
            raise StartError(
                "the database has no noonmark schema: run `noonmark db migrate`, then start again"
            )
        revision = read_revision(connection)
        if revision.problem is not None:
            raise StartError(f"{revision.problem}, then start again")
        if revision.note is not None:
            service.log.info("schema_of_a_later_release", revision=revision.current)
        return Install(shards=row[0])

    return await_read(service, read)


def await_read(service: Service, read: Callable[[psycopg.Connection], T]) -> T:
    """Read something that the service needs to start, waiting while the database is down.

    Args:
        service: the process; its stop event ends the wait.
        read: one transaction; called again from the start after a transient fault.

    Raises:
        StoppedError: the service was stopped while it waited.
        StartError: `read` raised it.
    """

    def attempt() -> T:
        with connect(service.settings.dsn, application=service.name) as connection:
            return read(connection)

    hint = _default_address(service.settings)

    def warn(error: Exception, _: DbFault) -> None:
        nonlocal hint
        log_fault(service.log, error, **hint)
        hint = {}

    return retry_transient(attempt, service.stop, on_fault=warn)


def _default_address(settings: Settings) -> dict[str, str]:
    """Return a hint if the database URL is not set: then this is the most likely mistake."""
    if "database_url" in settings.model_fields_set:
        return {}
    return {"hint": f"NOONMARK_DATABASE_URL is not set, so its default {settings.dsn} was used"}


def kafka_config(settings: Settings) -> KafkaConfig:
    """Return the address and credentials of the broker from the settings."""
    return KafkaConfig(
        bootstrap=settings.kafka_bootstrap,
        topic_prefix=settings.topic_prefix,
        group_protocol=settings.kafka_group_protocol,
        security_protocol=settings.kafka_security_protocol,
        sasl_mechanism=settings.kafka_sasl_mechanism or None,
        sasl_username=settings.kafka_sasl_username or None,
        sasl_password=settings.kafka_sasl_password.get_secret_value() or None,
        oauth_token_url=settings.kafka_oauth_token_url or None,
        oauth_scope=settings.kafka_oauth_scope or None,
        oauth_ca_location=settings.kafka_oauth_ca_location or None,
        ssl_ca_location=settings.kafka_ssl_ca_location or None,
        ssl_certificate_location=settings.kafka_ssl_certificate_location or None,
        ssl_key_location=settings.kafka_ssl_key_location or None,
    )
