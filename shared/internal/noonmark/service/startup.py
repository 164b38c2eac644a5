"""What a service reads before it works, waiting while the database is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import psycopg

from noonmark.kafka.config import KafkaConfig
from noonmark.service.backoff import retry_transient
from noonmark.service.database_errors import DbFault
from noonmark.service.runner import Service, StartError
from noonmark.settings import Settings
from noonmark.store.database.connect import connect
from noonmark.store.migrations.revisions import known_revisions, too_old

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Install:
    """Facts fixed when the database was first migrated."""

    shards: int


def await_install(service: Service) -> Install:
    """Read the installation's facts, waiting while the database is away.

    Raises:
        StartError: the database has no noonmark schema, or that of an earlier release.
    """

    def read(connection: psycopg.Connection) -> Install:
        try:
            row = connection.execute(
                "select shards, (select version_num from alembic_version) from install"
            ).fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        if row is None:
            raise StartError(
                "the database holds no noonmark schema: run `noonmark db migrate`, then start again"
            )
        shards, revision = row
        if too_old(revision):
            raise StartError(
                f"the schema is at {revision}, this release needs {known_revisions()[-1]}: run"
                " `noonmark db migrate` of this release, then start again"
            )
        return Install(shards=shards)

    return await_read(service, read)


def await_read(service: Service, read: Callable[[psycopg.Connection], T]) -> T:
    """Read something that the service cannot be built without, waiting while the database is away.

    Args:
        service: what starts; its stop event ends the waiting.
        read: one transaction; called again from the start after a fault that may pass.

    Raises:
        StoppedError: the service was told to stop while it waited.
        StartError: what `read` raised.
    """

    def attempt() -> T:
        with connect(service.settings.dsn, application=service.name) as connection:
            return read(connection)

    hint = _default_address(service.settings)

    def tell(error: Exception, _: DbFault) -> None:
        nonlocal hint
        service.log.warning("database_unavailable", error=str(error).strip(), **hint)
        hint = {}

    return retry_transient(attempt, service.stop, on_fault=tell)


def _default_address(settings: Settings) -> dict[str, str]:
    """Say so where nobody named the database: an address that was never chosen is the likeliest mistake."""
    if "database_url" in settings.model_fields_set:
        return {}
    return {"hint": f"NOONMARK_DATABASE_URL is not set, so its default {settings.dsn} was used"}


def kafka_config(settings: Settings) -> KafkaConfig:
    """Read the broker's address and credentials off the settings."""
    return KafkaConfig(
        bootstrap=settings.kafka_bootstrap,
        topic_prefix=settings.topic_prefix,
        group_protocol=settings.kafka_group_protocol,
        security_protocol=settings.kafka_security_protocol,
        sasl_mechanism=settings.kafka_sasl_mechanism or None,
        sasl_username=settings.kafka_sasl_username or None,
        sasl_password=settings.kafka_sasl_password.get_secret_value() or None,
        ssl_ca_location=settings.kafka_ssl_ca_location or None,
        ssl_certificate_location=settings.kafka_ssl_certificate_location or None,
        ssl_key_location=settings.kafka_ssl_key_location or None,
    )
