"""Upgrades a database to this release's schema, and reports its status."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config

from noonmark.core.zones.zones import zone_data_version
from noonmark.store.cluster.pools import register_pool
from noonmark.store.database.connect import connect
from noonmark.store.database.engines import engine_of
from noonmark.store.migrations.api_role import RoleError, ensure_api_role, lend_statement, may_take_on
from noonmark.store.migrations.revisions import SchemaRevision, known_revisions, read_revision
from noonmark.store.migrations.service_roles import grant_service_rights
from noonmark.store.schedules.time_facts import active_zone_data
from noonmark.store.schedules.zone_data import differing_zone_data, ensure_active

_MIGRATIONS = Path(__file__).parent
DEFAULT_SHARDS = 4
MINIMUM_SERVER = 150_000


class SchemaError(RuntimeError):
    """This release cannot use the database; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """What `noonmark db check` reports."""

    server_version: int
    revision: SchemaRevision
    shards: int | None
    days_ahead: int | None
    """Days from today for which ledger partitions exist; None if the database has no schema."""
    zone_data: str
    """Version of this process's zone data."""
    active_zone_data: str | None
    """Version that the installation plans with."""
    lend_role: str | None = None
    """The statement with which an administrator grants the API's role to this user; None if it is granted."""

    @property
    def current(self) -> str | None:
        """Revision of the database; None if it has no schema."""
        return self.revision.current

    @property
    def wanted(self) -> str:
        """Revision of this release."""
        return known_revisions()[-1]

    @property
    def usable(self) -> bool:
        """Whether this release can use the schema."""
        return self.revision.problem is None

    @property
    def notes(self) -> list[str]:
        """Sentences about what is unusual, but no problem."""
        return [self.revision.note] if self.revision.note is not None else []

    @property
    def problems(self) -> list[str]:
        """Sentences that say what is wrong and what to do; empty if the database is ready."""
        found = []
        if self.revision.problem is not None:
            found.append(self.revision.problem)
        elif self.days_ahead is not None and self.days_ahead < 1:
            found.append(
                "no ledger partition exists for tomorrow: start a trigger, or run `noonmark db migrate`"
            )
        if self.usable and self.lend_role is not None:
            found.append(
                "this user cannot use the API's role, so the API cannot answer any request: ask an administrator"
                f" of the server to run `{self.lend_role}`"
            )
        if self.usable and self.zone_data != self.active_zone_data:
            found.append(differing_zone_data(self.zone_data, self.active_zone_data))
        return found


def migrate(dsn: str, *, shards: int = DEFAULT_SHARDS, days_ahead: int = 3) -> None:
    """Upgrade the schema to this release and create the ledger's next days. Safe to repeat.

    Roles of services that exist are granted the rights that they need (`noonmark.store.migrations.service_roles`).
    The schema of a later release that this one can use is left as it is.

    Args:
        dsn: libpq URL of the database, as its owner.
        shards: number of shards of a new installation; an existing one keeps its number.
        days_ahead: number of days after today for which partitions are created.

    Raises:
        SchemaError: the server is too old, the database has another encoding than UTF8, the API's role does not
            exist and cannot be created, or the schema is of a later release and this one cannot use it.
    """
    with connect(dsn, application="migrate", autocommit=True) as connection:
        _check_server(connection)
        try:
            ensure_api_role(connection)
        except RoleError as error:
            raise SchemaError(str(error)) from error
    _upgrade(dsn)
    with connect(dsn, application="migrate") as connection:
        revision = read_revision(connection)
        if revision.problem is not None:
            raise SchemaError(revision.problem)
        connection.execute("insert into install (shards) values (%s) on conflict do nothing", [shards])
        register_pool(connection, "default")
        ensure_active(connection, zone_data_version())
        today = _today(connection)
        for ahead in range(-1, days_ahead + 1):
            make_day(connection, today + timedelta(days=ahead))
        if not revision.is_later:
            # The services of a later release may need more than this one knows.
            grant_service_rights(connection)


def _check_server(connection: psycopg.Connection) -> None:
    """Refuse a server or database on which no statement of this release can be relied on."""
    if connection.info.server_version < MINIMUM_SERVER:
        raise SchemaError(
            f"Postgres {connection.info.server_version // 10_000} is too old; noonmark needs 15 or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise SchemaError(
            f"database {connection.info.dbname!r} has the encoding {encoding}; noonmark needs UTF8: create the database"
            f" with `create database {connection.info.dbname} encoding 'UTF8' template template0`"
        )


def make_day(connection: psycopg.Connection, day: date) -> bool:
    """Create the ledger's partition of a day; return whether it was missing."""
    row = connection.execute("select noonmark_make_day(%s)", [day]).fetchone()
    return bool(row and row[0])


def status(dsn: str) -> SchemaStatus:
    """Read the status of the database, without any change.

    Raises:
        SchemaError: the server is too old, or the database has another encoding than UTF8.
    """
    with connect(dsn, application="migrate") as connection:
        _check_server(connection)
        revision = read_revision(connection)
        shards, days_ahead, active = None, None, None
        if revision.current is not None:
            row = connection.execute("select shards from install").fetchone()
            shards = row[0] if row else None
            days_ahead = _days_ahead(connection)
        if revision.problem is None:
            active = active_zone_data(connection)
        return SchemaStatus(
            server_version=connection.info.server_version,
            revision=revision,
            shards=shards,
            days_ahead=days_ahead,
            zone_data=zone_data_version(),
            active_zone_data=active,
            lend_role=None if may_take_on(connection) else lend_statement(connection),
        )


def _today(connection: psycopg.Connection) -> date:
    """Return the current day by the database's clock."""
    row = connection.execute("select (noonmark_now() at time zone 'UTC')::date").fetchone()
    assert row is not None
    today: date = row[0]
    return today


def _days_ahead(connection: psycopg.Connection) -> int:
    today = _today(connection)
    ahead = -1
    while connection.execute(
        "select to_regclass(%s)", [f"runs_{today + timedelta(days=ahead + 1):%Y%m%d}"]
    ).fetchone() != (None,):
        ahead += 1
    return ahead


def _upgrade(dsn: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with engine_of(dsn, application="migrate").connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
